//! What was measured: percentiles, bytes, ratios to the alternatives, and where they go.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;

#[derive(Default)]
pub(crate) struct Figures {
    micros: BTreeMap<String, Vec<u64>>,
    bytes: BTreeMap<String, u64>,
    left_out: BTreeMap<String, String>,
}

impl Figures {
    pub(crate) fn add(&mut self, name: &str, start: Instant) {
        self.add_time(name, start.elapsed());
    }

    pub(crate) fn add_time(&mut self, name: &str, took: Duration) {
        self.micros.entry(name.to_owned()).or_default().push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// How large something is; the last one counts.
    pub(crate) fn set_bytes(&mut self, name: &str, bytes: u64) {
        self.bytes.insert(name.to_owned(), bytes);
    }

    /// What could not be measured here, and why.
    pub(crate) fn leave_out(&mut self, name: &str, reason: String) {
        println!("left out: {name}: {reason}");
        self.left_out.insert(name.to_owned(), reason);
    }

    pub(crate) fn report(mut self, rounds: u32) -> Result<(), Failure> {
        let mut rows = Vec::new();
        println!("{:<60} {:>4} {:>10} {:>10} {:>10}", "what (ms)", "n", "p50", "worst", "best");
        for (name, values) in &mut self.micros {
            values.sort_unstable();
            let at = |index: usize| values[index.min(values.len() - 1)] as f64 / 1000.0;
            let (p50, worst, best) = (at(values.len() / 2), at(values.len() - 1), at(0));
            println!("{name:<60} {:>4} {p50:>10.3} {worst:>10.3} {best:>10.3}", values.len());
            rows.push(serde_json::json!({ "name": name, "unit": "ms", "count": values.len(), "p50": p50, "worst": worst, "best": best }));
        }
        for (name, bytes) in &self.bytes {
            println!("{name:<60} {bytes:>15} bytes");
        }
        let p50 = |name: &str| self.micros.get(name).map(|values| values[values.len() / 2] as f64);
        let ratio = |ours: &str, theirs: &str| Some(p50(ours)? / p50(theirs)?);
        let ratios = [
            ("pause 50 MB / bare checkpoint", ratio("gvisor: pause, 50 MB dirty", "runsc: checkpoint, 50 MB dirty"), 1.15),
            ("pause 500 MB / bare checkpoint", ratio("gvisor: pause, 500 MB dirty", "runsc: checkpoint, 500 MB dirty"), 1.15),
            ("resume 50 MB / bare restore", ratio("gvisor: resume, 50 MB dirty", "runsc: restore, 50 MB dirty"), 1.15),
            ("resume 500 MB / bare restore", ratio("gvisor: resume, 500 MB dirty", "runsc: restore, 500 MB dirty"), 1.15),
            ("fork of 20,000 files / cp -a", ratio("container: disk of a fork, 20,000 files", "cp -a: 20,000 files"), 0.1),
        ];
        for (name, value, target) in &ratios {
            if let Some(value) = value {
                println!("{name}: {value:.2} (target at most {target})");
            }
        }
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let document = serde_json::json!({
            "rounds": rounds,
            "machine": {
                "kernel": read("/proc/sys/kernel/osrelease"),
                "cpus": std::thread::available_parallelism().map_or(0, usize::from),
                "load_before_report": read("/proc/loadavg"),
            },
            "rows": rows,
            "bytes": self.bytes,
            "left_out": self.left_out,
            "ratios": ratios.iter().map(|(name, value, target)| serde_json::json!({ "name": name, "value": value, "target": target })).collect::<Vec<_>>(),
        });
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("state.json"), serde_json::to_vec_pretty(&document)?)?;
        println!("written to bench/results/state.json");
        Ok(())
    }
}
