//! Measures what it costs to keep state, next to bare `runsc checkpoint` and `restore` and to `cp -a` in the same run, so that a noisy machine is noisy for all.
//!
//! `cargo run --release -p belljar-testkit --bin state_bench [ROUNDS]` prints a table and writes `bench/results/state.json`. Only ratios within one
//! run mean anything on a shared machine.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

#[path = "state_bench/bare.rs"]
mod bare;
#[path = "state_bench/figures.rs"]
mod figures;
#[path = "state_bench/forks.rs"]
mod forks;
#[path = "state_bench/memory.rs"]
mod memory;
#[path = "state_bench/travel.rs"]
mod travel;

use belljar_testkit::{Lab, block_on};
use belljar_types::IsolationClass;
use figures::Figures;

type Failure = Box<dyn std::error::Error>;

/// Memory that is dirty when it is written down.
const DIRTY_MEGABYTES: [usize; 2] = [50, 500];

fn main() -> Result<(), Failure> {
    let rounds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse::<u32>())?;
    block_on(measure(rounds))
}

async fn measure(rounds: u32) -> Result<(), Failure> {
    let lab = Lab::open().await?;
    lab.clear().await?;
    let mut figures = Figures::default();
    for round in 0..rounds {
        println!("round {} of {rounds}", round + 1);
        for megabytes in DIRTY_MEGABYTES {
            memory::pause_and_resume(&lab, megabytes, &mut figures).await?;
            bare::checkpoint_and_restore(&lab, megabytes, &mut figures)?;
        }
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            memory::stand_by(&lab, class, &mut figures).await?;
        }
        memory::snapshot_files(&lab, &mut figures).await?;
        forks::of_many_files(&lab, &mut figures).await?;
        travel::through_s3(&lab, DIRTY_MEGABYTES[0], &mut figures).await?;
        for count in [1, 10, 100] {
            forks::by_class(&lab, count, &mut figures).await?;
        }
        lab.clear().await?;
    }
    lab.host.close().await?;
    figures.report(rounds)
}
