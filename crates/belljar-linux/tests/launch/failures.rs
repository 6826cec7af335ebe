//! Every step is made to fail for real; each failure names its step and leaves no process.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::OwnedFd;

use belljar_linux::launch::{Launch, Step, launch};

use super::fixture::Fixture;

fn wrong_descriptor() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn failure(spoil: impl FnOnce(&mut Launch)) -> (Step, String) {
    let (_fixture, mut plan) = Fixture::new("exit 0");
    spoil(&mut plan);
    let error = launch(&plan).unwrap_err();
    assert!(std::error::Error::source(&error).is_some());
    (error.step, error.to_string())
}

#[test]
fn each_step_is_named() {
    let text = |text: &str| CString::new(text).unwrap();
    let check = |spoil: &dyn Fn(&mut Launch), step: Step, words: &str| {
        let found = failure(spoil);
        assert_eq!((found.0, found.1.as_str()), (step, words));
    };
    check(&|plan| plan.cgroup.unified = Some(wrong_descriptor()), Step::CloneUsher, "clone the usher process into the sandbox's cgroup");
    check(&|plan| plan.cgroup.tasks.push(wrong_descriptor()), Step::JoinCgroup, "join the sandbox's cgroup");
    check(&|plan| plan.network = wrong_descriptor(), Step::JoinNetwork, "join the sandbox's network namespace");
    check(&|plan| plan.mounts_from = std::sync::Arc::new(wrong_descriptor()), Step::JoinMounts, "join the bare mount namespace");
    check(&|plan| plan.users = std::sync::Arc::new(wrong_descriptor()), Step::JoinUsers, "join the sandbox's user namespace");
    check(&|plan| plan.root = wrong_descriptor(), Step::AttachRoot, "attach the root filesystem");
    check(&|plan| plan.mounts[0].at = text("/nowhere"), Step::AttachMount, "attach the mount at /nowhere");
    check(&|plan| plan.mounts.clear(), Step::MountTerminals, "mount /dev/pts");
    check(&|plan| plan.masked_files[0] = text("/proc/acpi"), Step::MaskFile, "mask the file /proc/acpi");
    check(&|plan| plan.masked_directories[0] = text("/proc/keys"), Step::MaskDirectory, "mask the directory /proc/keys");
    check(&|plan| plan.read_only[0] = text("/proc/keys/x"), Step::MakeReadOnly, "make read-only /proc/keys/x");
    check(&|plan| plan.hostname = text(&"x".repeat(65)), Step::SetHostname, "set the host name");
    check(&|plan| plan.fence = Some(wrong_descriptor()), Step::Fence, "put up Landlock's fence");
    check(&|plan| plan.program = text("/nothing"), Step::Execute, "execute /nothing");
}
