//! The cgroup code keeps its promises on every layout in the field, not only on this machine's: v2 alone and v1 alone are tried on machines
//! booted for it, under software emulation.
//!
//! The emulated machines have swap, so that "no swap" is not true by accident.

#[path = "emulation/machine.rs"]
mod machine;

use std::process::{Command, Output};

use machine::{assert_all_kept, machine, texts};

const TRIAL: &str = env!("CARGO_BIN_EXE_cgroup_trial");

#[test]
fn on_this_machine() {
    let output = Command::new(TRIAL).output().expect("the trial can be started");
    assert_all_kept(&output, None);
}

#[test]
fn on_a_machine_with_cgroup_v2_alone() {
    assert_all_kept(&emulated("v2"), Some("flavour v2"));
}

#[test]
fn on_a_machine_with_cgroup_v1_alone() {
    assert_all_kept(&emulated("v1"), Some("flavour v1"));
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
