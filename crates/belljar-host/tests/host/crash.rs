//! The owner of a host is killed at random moments; whoever opens the data directory next finds everything and can remove it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_host::Host;
use belljar_types::{IsolationClass, SandboxId};

use crate::scene::{Scene, config, make_layers, spec};

const DIRECTORY: &str = "BELLJAR_TEST_CRASH_DIRECTORY";
const ROUNDS: u32 = 50;

/// Not a test: what the test below starts and kills.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test that kills it"]
async fn an_owner_that_never_rests() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    println!("\nup");
    let host = Host::open(config(&directory)).await.unwrap();
    make_layers(&host);
    let mut tasks: Vec<_> = (0..3)
        .map(|_| {
            let host = host.clone();
            tokio::spawn(async move {
                for _ in 0..100_000 {
                    let spec = spec();
                    let reserved = host.reserve(IsolationClass::Container, &spec).await.unwrap();
                    let mut child = Command::new("sleep").arg("20").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
                    // Between the two the child is nobody's; an engine's child dies with its maker there.
                    if reserved.cgroup.attach(child.id()).is_err() {
                        child.kill().unwrap();
                    }
                    host.commit(&spec.id).await.unwrap();
                    host.release(&spec.id).await.unwrap();
                    child.wait().unwrap();
                }
            })
        })
        .collect();
    while let Some(task) = tasks.pop() {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_killed_at_any_moment_leaves_nothing_that_the_next_cannot_remove() {
    let mut scene = Scene::new().await;
    let baseline = scene.counts().await;
    let mut found = 0;
    for round in 0..ROUNDS {
        let Scene { host, directory, _sweep, _temporary } = scene;
        // In some rounds the next owner finds nothing ready and dies while making it.
        if round % 4 == 0 {
            host.close().await.unwrap();
        }
        drop(host);
        kill_an_owner(&directory, round);
        let host = Host::open(config(&directory)).await.unwrap();
        scene = Scene { host, directory, _sweep, _temporary };
        let left = scene.host.records(IsolationClass::Container).await.unwrap();
        found += left.len();
        let ids: Vec<SandboxId> = left.into_iter().map(|record| record.id).collect();
        for id in ids {
            scene.host.release(&id).await.unwrap();
        }
        assert_eq!(scene.counts().await, baseline, "round {round}");
    }
    println!("{found} sandboxes were found after {ROUNDS} kills");
    assert!(found > 0, "no round was killed with a sandbox in the making");
    scene.close().await;
}

fn kill_an_owner(directory: &Path, round: u32) {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::an_owner_that_never_rests", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "up"), "the owner never came up");
    // Spread over opening and working; where exactly is left to the machine.
    std::thread::sleep(Duration::from_millis(u64::from(round) * 7919 % 250));
    owner.kill().unwrap();
    owner.wait().unwrap();
}
