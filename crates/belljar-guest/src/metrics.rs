//! CPU, memory and disk as seen from inside: for people and dashboards. What is billed is counted by the host.

use belljar_types::GuestMetrics;

/// The kernel counts CPU time in these to user space, whatever it uses inside.
const TICKS_PER_SECOND: u64 = 100;

/// Looks once.
pub(crate) fn measure() -> GuestMetrics {
    let (memory_total_bytes, memory_available) = memory();
    let processes = processes();
    let resident = processes.iter().map(|p| p.resident).sum::<u64>();
    let (disk_total_bytes, disk_used_bytes) = disk();
    GuestMetrics {
        cpus: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        cpu_micros: processes.iter().map(|p| p.ticks).sum::<u64>() * (1_000_000 / TICKS_PER_SECOND),
        memory_total_bytes,
        // Where the kernel is shared, its own figure is the whole host's; the sandbox's processes cannot use more than they hold.
        memory_used_bytes: resident.min(memory_total_bytes.saturating_sub(memory_available)),
        disk_total_bytes,
        disk_used_bytes,
        processes: u32::try_from(processes.len()).unwrap_or(u32::MAX),
    }
}

struct Used {
    ticks: u64,
    resident: u64,
}

fn processes() -> Vec<Used> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Times of the process and of its children that ended: each is counted in exactly one living process.
fn parse_stat(stat: &[u8]) -> Option<Used> {
    let after = memchr::memrchr(b')', stat)? + 1;
    let text = std::str::from_utf8(stat.get(after..)?).ok()?;
    let fields: Vec<i64> = text.split_ascii_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let ticks = fields.get(10..14)?.iter().map(|ticks| u64::try_from(*ticks).unwrap_or(0)).sum();
    let pages = u64::try_from(*fields.get(20)?).unwrap_or(0);
    Some(Used { ticks, resident: pages * rustix::param::page_size() as u64 })
}

fn memory() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    (field("MemTotal:").unwrap_or(0), field("MemAvailable:").or_else(|| field("MemFree:")).unwrap_or(0))
}

fn disk() -> (u64, u64) {
    match rustix::fs::statvfs("/") {
        Ok(fs) => (fs.f_blocks * fs.f_frsize, fs.f_blocks.saturating_sub(fs.f_bfree) * fs.f_frsize),
        Err(_) => (0, 0),
    }
}
