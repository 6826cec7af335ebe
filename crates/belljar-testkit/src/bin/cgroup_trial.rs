//! Tries every promise of `belljar_linux::cgroup` on the kernel it runs on, whatever the flavour.
//!
//! A program and not a test, because it also has to run where there is no cargo: on an emulated machine with another cgroup layout than
//! this one's. One line for each promise, then the sum; the exit code is 1 if any was broken.
#![allow(clippy::print_stdout, reason = "the suite reads what it prints")]

#[path = "cgroup_trial/child.rs"]
mod child;
#[path = "cgroup_trial/promises.rs"]
mod promises;

use std::process::ExitCode;

use belljar_linux::cgroup::{Layout, LayoutKind, Tree};
use belljar_types::chain;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, rest)) = arguments.split_first() {
        return child::play(role, rest);
    }
    match try_all() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAILED to begin: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// The number of broken promises.
fn try_all() -> Result<usize, promises::Broken> {
    let layout = Layout::detect()?;
    println!("flavour {}", flavour(layout.kind()));
    let tree_name = format!("belljar-trial{}", std::process::id());
    let mut failed = 0;
    for (promise, keep) in promises::ALL {
        let kept = Tree::open(&layout, &tree_name).map_err(Into::into).and_then(|tree| {
            let kept = keep(&tree, &layout);
            // Whatever happened, the next promise starts on an empty tree.
            for name in tree.names()? {
                tree.group(&name).remove()?;
            }
            tree.remove()?;
            kept
        });
        match kept {
            Ok(()) => println!("ok {promise}"),
            Err(broken) => {
                failed += 1;
                println!("FAILED {promise}: {}", chain(&*broken));
            }
        }
    }
    println!("{} passed, {failed} failed", promises::ALL.len() - failed);
    Ok(failed)
}

fn flavour(kind: LayoutKind) -> &'static str {
    match kind {
        LayoutKind::V2 => "v2",
        LayoutKind::Hybrid => "hybrid",
        LayoutKind::V1 => "v1",
    }
}
