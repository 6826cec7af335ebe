//! Makes containers on the kernel it runs on, and tries what depends on that kernel.
//!
//! A program and not a test, because it has to run where there is no cargo and next to nothing else: on an emulated machine. Its sandboxes
//! see a busybox and the agent (`BELLJAR_GUEST`). One line for each promise, then the sum; the exit code is 1 if any was broken.
#![allow(clippy::print_stdout, reason = "the suite reads what it prints")]

#[path = "container_trial/promises.rs"]
mod promises;
#[path = "container_trial/scene.rs"]
mod scene;

use std::process::ExitCode;

use belljar_types::chain;

use promises::{Broken, Kept};
use scene::Scene;

fn main() -> ExitCode {
    println!("Linux {}", rustix::system::uname().release().to_string_lossy());
    match belljar_testkit::block_on(try_all()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(broken) => {
            println!("FAILED to begin: {}", chain(&*broken));
            ExitCode::FAILURE
        }
    }
}

/// The number of broken promises.
async fn try_all() -> Result<usize, Broken> {
    let scene = Scene::set().await?;
    let mut outcomes = vec![
        ("a command's output and code come back", promises::output(&scene).await),
        ("nothing inside names the host, and masks hold", promises::masks(&scene).await),
        ("what root makes is kept apart from the layers", promises::files(&scene).await),
        ("memory ends at the limit, and the process's end says so", promises::memory(&scene).await),
        ("forks end at the limit", promises::pids(&scene).await),
        ("a hundred layers are as good as one", promises::layers(&scene).await),
        ("what is called off while it is made is gone", promises::called_off(&scene).await),
    ];
    outcomes.push(("nothing is left of them", scene.count_remains().await));
    outcomes.push(("nothing is left of the host", scene.strike().await));
    let sum = outcomes.len();
    let failed = outcomes.into_iter().filter(|(promise, kept)| !tell(promise, kept)).count();
    println!("{} passed, {failed} failed", sum - failed);
    Ok(failed)
}

fn tell(promise: &str, kept: &Kept) -> bool {
    match kept {
        Ok(()) => println!("ok {promise}"),
        Err(broken) => println!("FAILED {promise}: {}", chain(&**broken)),
    }
    kept.is_ok()
}
