//! Ending a process with all that it started, without cgroups: they are the host's.
//!
//! A program can leave its parent, its process group and its session, so three marks are followed: the session, the chain of parents, and a
//! variable in the environment that children inherit. Whoever rubs out all three is still stopped with the sandbox.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks a process and what it started with its id.
pub(crate) const MARK: &str = "BELLJAR_PROCESS";

const ROUNDS: usize = 20;
const LONGEST_ENVIRONMENT: u64 = 256 << 10;

struct Relative {
    parent: u32,
    session: u32,
    zombie: bool,
}

/// Kills the process, its descendants and its session, again and again until none is left or it is hopeless. `mark` finds those who left.
pub(crate) fn kill_family(root: u32, mark: Option<&str>) {
    let me = std::process::id();
    for _ in 0..ROUNDS {
        let all = read_processes();
        let mut family: HashSet<u32> = all.iter().filter(|(pid, p)| **pid == root || p.session == root).map(|(pid, _)| *pid).collect();
        if let Some(mark) = mark {
            let strangers = all.iter().filter(|(pid, p)| p.parent == me && !family.contains(pid));
            let marked: Vec<u32> = strangers.map(|(pid, _)| *pid).filter(|pid| has_mark(*pid, mark)).collect();
            family.extend(marked);
        }
        add_descendants(&all, &mut family);
        family.retain(|pid| *pid != me && all.get(pid).is_some_and(|p| !p.zombie));
        if family.is_empty() {
            return;
        }
        for pid in family {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // It may be gone already.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn add_descendants(all: &HashMap<u32, Relative>, family: &mut HashSet<u32>) {
    loop {
        let children = all.iter().filter(|(pid, p)| family.contains(&p.parent) && !family.contains(pid));
        let new: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        if new.is_empty() {
            return;
        }
        family.extend(new);
    }
}

fn read_processes() -> HashMap<u32, Relative> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// `pid (name) state parent group session …`; the name may hold anything, so the last parenthesis counts.
fn parse_stat(stat: &[u8]) -> Option<Relative> {
    let after = memchr::memrchr(b')', stat)? + 1;
    let text = std::str::from_utf8(stat.get(after..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Relative { parent, session, zombie: matches!(state, "Z" | "X") })
}

fn has_mark(pid: u32, mark: &str) -> bool {
    let mut environment = Vec::new();
    let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
    if file.take(LONGEST_ENVIRONMENT).read_to_end(&mut environment).is_err() {
        return false;
    }
    let wanted = format!("{MARK}={mark}");
    environment.split(|b| *b == 0).any(|variable| variable == wanted.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_its_parents() {
        let p = parse_stat(b"12 (a) S 1 1 1 (x) R 7 8 9 0").unwrap();
        assert_eq!((p.parent, p.session, p.zombie), (7, 9, false));
        assert!(parse_stat(b"12 (a").is_none());
    }
}
