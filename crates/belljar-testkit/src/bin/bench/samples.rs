//! What was measured: percentiles, ratios to the alternatives, and where they go.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::Failure;

#[derive(Default)]
pub(crate) struct Samples {
    micros: BTreeMap<String, Vec<u64>>,
    kilobytes: BTreeMap<String, Vec<u64>>,
}

#[derive(serde::Serialize)]
struct Row {
    name: String,
    unit: &'static str,
    count: usize,
    p50: f64,
    p95: f64,
    min: f64,
}

impl Samples {
    pub(crate) fn add(&mut self, name: &str, start: Instant) {
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.micros.entry(name.to_owned()).or_default().push(micros);
    }

    /// Adds the memory of these processes, shared pages counted in parts.
    pub(crate) fn add_memory(&mut self, name: &str, pids: Vec<u32>) {
        let pss = |pid: u32| -> Option<u64> {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            text.lines().find_map(|line| line.strip_prefix("Pss:"))?.split_whitespace().next()?.parse().ok()
        };
        self.kilobytes.entry(name.to_owned()).or_default().push(pids.into_iter().filter_map(pss).sum());
    }

    pub(crate) fn report(mut self, rounds: u32) -> Result<(), Failure> {
        let rows: Vec<Row> = rows(&mut self.micros, "ms", 1000.0).chain(rows(&mut self.kilobytes, "kB", 1.0)).collect();
        println!("{:<44} {:>5} {:>10} {:>10} {:>10}", "what", "n", "p50", "p95", "min");
        for row in &rows {
            println!("{:<44} {:>5} {:>10.3} {:>10.3} {:>10.3} {}", row.name, row.count, row.p50, row.p95, row.min, row.unit);
        }
        let p50 = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.p50);
        let ratio = |ours: &str, theirs: &str| Some(p50(ours)? / p50(theirs)?);
        let ratios = [
            ("container cold / bwrap", ratio("container: create to agent's answer", "bwrap: run /bin/true"), 1.0),
            ("gvisor cold / bare runsc run", ratio("gvisor: create to agent's answer", "runsc: run /bin/true"), 1.3),
        ];
        for (name, value, target) in &ratios {
            if let Some(value) = value {
                println!("{name}: {value:.2} (target at most {target})");
            }
        }
        let document = serde_json::json!({
            "rounds": rounds,
            "machine": machine(),
            "rows": rows,
            "ratios": ratios.iter().map(|(name, value, target)| serde_json::json!({ "name": name, "value": value, "target": target })).collect::<Vec<_>>(),
        });
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("engine.json"), serde_json::to_vec_pretty(&document)?)?;
        println!("written to bench/results/engine.json");
        Ok(())
    }
}

fn rows<'a>(samples: &'a mut BTreeMap<String, Vec<u64>>, unit: &'static str, scale: f64) -> impl Iterator<Item = Row> + 'a {
    samples.iter_mut().map(move |(name, values)| {
        values.sort_unstable();
        let at = |percent: usize| values[(values.len() * percent / 100).min(values.len() - 1)] as f64 / scale;
        Row { name: name.clone(), unit, count: values.len(), p50: at(50), p95: at(95), min: at(0) }
    })
}

fn machine() -> serde_json::Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    serde_json::json!({
        "kernel": read("/proc/sys/kernel/osrelease"),
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "load_before_report": read("/proc/loadavg"),
    })
}
