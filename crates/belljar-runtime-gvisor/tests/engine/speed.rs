//! How long a create takes next to runsc alone on the same root. Printed, not asserted: the machine is shared.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_ports::Runtime;

use crate::machine::{Machine, base_layer};

const ROUNDS: usize = 7;

#[tokio::test(flavor = "multi_thread")]
async fn a_create_next_to_bare_runsc() {
    let machine = Machine::with_slots(2).await;
    let (mut bare, mut created, mut destroyed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(bare_runsc(&machine));
        let started = Instant::now();
        let id = machine.create().await;
        created.push(started.elapsed());
        let started = Instant::now();
        machine.runtime.destroy(&id).await.unwrap();
        destroyed.push(started.elapsed());
    }
    println!(
        "bare runsc run /bin/true {:?}, create {:?}, destroy {:?} (medians of {ROUNDS})",
        median(bare),
        median(created),
        median(destroyed)
    );
    machine.close().await;
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// As one would run it by hand: no network, default flags, systrap.
fn bare_runsc(machine: &Machine) -> Duration {
    let scratch = tempfile::tempdir().unwrap();
    let root = machine.host.layer_directory(&base_layer());
    let config = format!(
        r#"{{"ociVersion":"1.0.2","root":{{"path":{root:?},"readonly":true}},"process":{{"args":["/bin/true"],"cwd":"/","user":{{"uid":0,"gid":0}}}},
        "linux":{{"namespaces":[{{"type":"pid"}},{{"type":"mount"}},{{"type":"network"}}]}}}}"#
    );
    fs::write(scratch.path().join("config.json"), config).unwrap();
    let started = Instant::now();
    let status = Command::new("/usr/local/lib/belljar/runsc")
        .arg("--root")
        .arg(scratch.path().join("state"))
        .args(["--platform=systrap", "--network=none", "--ignore-cgroups", "run", "--bundle"])
        .arg(scratch.path())
        .arg("bare")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    started.elapsed()
}
