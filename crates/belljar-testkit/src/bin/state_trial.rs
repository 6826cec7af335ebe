//! Drives pauses, snapshots, forks, roll-backs, the making of layers and sweeps from outside, for the suite that must kill whoever does them.
//!
//! `state_trial make ACT CLASS` says what it has, what it is about to do and what it was promised, until it is killed; `state_trial judge CLASS SANDBOX [SNAPSHOT …]`
//! comes after it, holds the promises against what is there, removes everything and prints a census.
#![allow(clippy::print_stdout, reason = "the suite reads what it prints")]

#[path = "state_trial/judge.rs"]
mod judge;
#[path = "state_trial/make.rs"]
mod make;

use belljar_image::{Catalog, CatalogOptions, LayerStore};
use belljar_testkit::{Lab, block_on};
use belljar_types::IsolationClass;

type Failure = Box<dyn std::error::Error>;

/// A process that is to be there as long as memory is.
const KEEPER: &str = "keeper";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    block_on(async {
        match arguments[..] {
            ["make", "state", class] => make::state(class_of(class)?).await,
            ["make", "layers", class] => make::layers(class_of(class)?).await,
            ["judge", class, sandbox, ref snapshots @ ..] => judge::judge(class_of(class)?, &sandbox.parse()?, snapshots).await,
            _ => Err("usage: state_trial make state|layers CLASS | judge CLASS SANDBOX [SNAPSHOT …]".into()),
        }
    })
}

fn class_of(name: &str) -> Result<IsolationClass, Failure> {
    match name {
        "container" => Ok(IsolationClass::Container),
        "gvisor" => Ok(IsolationClass::Gvisor),
        other => Err(format!("no class {other}").into()),
    }
}

/// The laboratory's layers, as the server has them.
fn layers_of(lab: &Lab) -> Result<(LayerStore, Catalog), Failure> {
    let store = LayerStore::open(lab.host.pool_directory())?;
    Ok((store.clone(), Catalog::new(store, CatalogOptions::default())))
}
