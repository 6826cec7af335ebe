//! Loads a real server: 50 connections that create, run, write, read and kill on both classes, and what each of that took.
//!
//! `cargo run --release -p belljar-testkit --bin load [SECONDS]` prints JSON and writes it to `bench/results/server.json`; 10 seconds by default, 300 with
//! `BELLJAR_FULL=1`. Ends with code 1 if anything failed. Apart from the load, with one connection: what a command costs over HTTP, and how much
//! slower a create over HTTP is than the engine's own, measured in turns within the same run so that a noisy machine is noisy for both.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its results, and a long one that it moves")]

#[path = "load/alone.rs"]
mod alone;
#[path = "load/crowd.rs"]
mod crowd;
#[path = "load/times.rs"]
mod times;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use belljar_testkit::{ServerProcess, block_on, scaled};
use times::Times;

const CONNECTIONS: usize = 50;
const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
disk_reserve = \"64MiB\"
max_sandboxes = 80
[sandboxes.default_limits]
memory = \"128MiB\"
disk = \"256MiB\"
[log]
filter = \"warn\"
";

/// What may be asked of one run, and what was found.
#[derive(serde::Serialize)]
struct Promise {
    name: &'static str,
    found: f64,
    at_most: f64,
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or_else(|| scaled(10, 300));
    block_on(measure(Duration::from_secs(seconds)))
}

async fn measure(duration: Duration) -> ExitCode {
    let mut server = ServerProcess::start(SETTINGS).await;
    let mut single = Times::default();
    alone::commands(&server, &mut single).await;
    alone::creates_in_turns(&mut server, &mut single).await;
    eprintln!("load: {CONNECTIONS} connections for {duration:?}");
    let outcome = crowd::run(&server, CONNECTIONS, duration).await;
    let stopped = server.stop();
    let ratio = |class: &str| single.p50(&format!("{class}: create over HTTP")) / single.p50(&format!("{class}: create by the engine"));
    let promises = [
        Promise { name: "exec /bin/true over HTTP, container, p50 ms", found: single.p50("container: exec /bin/true"), at_most: 3.0 },
        Promise { name: "create over HTTP / the engine's own, container", found: ratio("container"), at_most: 1.5 },
        Promise { name: "create over HTTP / the engine's own, gvisor", found: ratio("gvisor"), at_most: 1.5 },
        Promise { name: "server memory, last third / middle third", found: outcome.memory_growth(), at_most: 1.1 },
    ];
    let document = serde_json::json!({
        "machine": { "cores": std::thread::available_parallelism().map_or(0, usize::from), "kernel": kernel() },
        "optimised": !cfg!(debug_assertions),
        "connections": CONNECTIONS,
        "seconds": duration.as_secs(),
        "errors": outcome.errors,
        "busy": outcome.busy,
        "one_connection": single.rows(),
        "under_load": outcome.times.rows(),
        "server_memory_kilobytes": outcome.memory_thirds(),
        "promises": promises,
    });
    println!("{document:#}");
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
    let text = format!("{document:#}\n");
    if let Err(error) = std::fs::create_dir_all(&results).and_then(|()| std::fs::write(results.join("server.json"), text)) {
        eprintln!("load: could not keep the results: {error}");
    }
    if outcome.errors.is_empty() && stopped.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}
