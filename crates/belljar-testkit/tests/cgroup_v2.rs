//! The cgroup code keeps its promises on every layout in the field, not only on this machine's: v2 alone and v1 alone are tried on machines
//! booted for it, under software emulation.
//!
//! The emulated machines have swap, so that "no swap" is not true by accident.

use std::path::Path;
use std::process::{Command, Output};

const TRIAL: &str = env!("CARGO_BIN_EXE_cgroup_trial");

#[test]
fn on_this_machine() {
    let output = Command::new(TRIAL).output().expect("the trial can be started");
    assert_all_kept(&output, None);
}

#[test]
fn on_a_machine_with_cgroup_v2_alone() {
    assert_all_kept(&emulated("v2"), Some("v2"));
}

#[test]
fn on_a_machine_with_cgroup_v1_alone() {
    assert_all_kept(&emulated("v1"), Some("v1"));
}

/// The exit code of the emulated machine is that of what ran in it; this is what the other tests rest on.
#[test]
fn what_fails_on_an_emulated_machine_is_seen_here() {
    let output = machine()
        .args(["/bin/sh", "-c", "echo \"$0 was here as $(id -u)\"; exit 7", "it's me"])
        .output()
        .expect("the machine can be started");
    let (words, complaints) = texts(&output);
    assert_eq!((output.status.code(), words.as_str()), (Some(7), "it's me was here as 0\n"), "{complaints}");
}

fn emulated(cgroup: &str) -> Output {
    machine().args(["--cgroup", cgroup, "--swap", "512", TRIAL]).output().expect("the machine can be started")
}

fn machine() -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/emulated-machine");
    Command::new(script)
}

fn assert_all_kept(output: &Output, flavour: Option<&str>) {
    let (words, complaints) = texts(output);
    assert!(output.status.success(), "{} {complaints}\n{words}", output.status);
    if let Some(flavour) = flavour {
        assert_eq!(words.lines().next(), Some(format!("flavour {flavour}").as_str()));
    }
    let kept = words.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(kept > 0, "no promise was tried");
    assert_eq!(words.lines().last(), Some(format!("{kept} passed, 0 failed").as_str()));
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}
