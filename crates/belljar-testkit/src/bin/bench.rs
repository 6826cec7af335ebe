//! Measures the engine next to what people use without it, interleaved in one run so that a noisy machine is noisy for all.
//!
//! `cargo run --release -p belljar-testkit --bin bench [ROUNDS]` prints a table and writes JSON to `bench/results/`. Only ratios within one run
//! mean anything on a shared machine.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

#[path = "bench/peers.rs"]
mod peers;
#[path = "bench/samples.rs"]
mod samples;

use std::time::Instant;

use belljar_testkit::{Lab, block_on, run};
use belljar_types::IsolationClass;
use samples::Samples;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let rounds = std::env::args().nth(1).map_or(Ok(30), |text| text.parse::<u32>())?;
    block_on(measure(rounds))
}

async fn measure(rounds: u32) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    let rootfs = lab.host.layer_directory(&lab.template.layers[0]);
    let peers = peers::Peers::find(&rootfs)?;
    let mut samples = Samples::default();
    for class in [IsolationClass::Container, IsolationClass::Gvisor] {
        lab.sandbox(class).await.destroy().await;
    }
    for round in 0..rounds {
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let start = Instant::now();
            let sandbox = lab.sandbox(class).await;
            samples.add(&format!("{class}: create to agent's answer"), start);
            for _ in 0..3 {
                let start = Instant::now();
                run(&*sandbox.guest, &["/bin/true"]).await;
                samples.add(&format!("{class}: exec /bin/true"), start);
            }
            if round < 5 {
                samples.add_memory(&format!("{class}: idle memory"), lab.host_pids(&sandbox.execution.sandbox));
            }
            let start = Instant::now();
            sandbox.destroy().await;
            samples.add(&format!("{class}: destroy"), start);
        }
        for peer in peers.all() {
            let start = Instant::now();
            peer.run()?;
            samples.add(&format!("{}: run /bin/true", peer.name), start);
        }
        lab.host.settle().await;
    }
    lab.host.close().await?;
    samples.report(rounds)
}
