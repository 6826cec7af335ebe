//! Real children: what they are given, what they are denied, and how a failed start is told.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::process::{Pid, WaitOptions, waitpid};

use super::*;
use crate::cgroup::{CgroupError, CgroupLimits, Layout, Tree};

fn text(s: &str) -> CString {
    CString::new(s).unwrap()
}

fn run(program: &str, argv: &[&str], cwd: &str, user: Option<ChildUser>) -> Result<(String, i32), ChildError> {
    run_in(&Membership::default(), program, argv, cwd, user)
}

fn run_in(cgroup: &Membership, program: &str, argv: &[&str], cwd: &str, user: Option<ChildUser>) -> Result<(String, i32), ChildError> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let null = File::open("/dev/null").unwrap();
    let plan = ChildPlan {
        programs: vec![text(program)],
        argv: argv.iter().map(|a| text(a)).collect(),
        env: vec![text("A=b")],
        cwd: text(cwd),
        user,
        stdio: [null.as_fd(), writer.as_fd(), writer.as_fd()],
        controlling_terminal: false,
        reset_oom_score: true,
    };
    let pid = spawn_in(cgroup, &plan)?;
    drop(writer);
    let mut out = String::new();
    File::from(reader).read_to_string(&mut out).unwrap();
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    Ok((out, status.exit_status().unwrap_or(-1)))
}

#[test]
fn a_child_has_its_own_session_environment_and_exit_code() {
    let (out, code) = run("/bin/sh", &["sh", "-c", "echo $A; test $$ = $(ps -o sid= -p $$) && exit 7"], "/", None).unwrap();
    assert_eq!((out.as_str(), code), ("b\n", 7));
}

#[test]
fn a_child_runs_as_the_user_it_was_told() {
    let user = ChildUser { uid: 12345, gid: 23456, groups: vec![34567] };
    let (out, _) = run("/bin/sh", &["sh", "-c", "id -u; id -g; id -G"], "/", Some(user)).unwrap();
    assert_eq!(out, "12345\n23456\n23456 34567\n");
}

#[test]
fn ignored_signals_are_not_inherited() {
    let (out, _) = run("/bin/grep", &["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"], "/", None).unwrap();
    assert_eq!(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

#[test]
fn the_failed_step_is_told() {
    assert_eq!(run("/no/such/program", &["x"], "/", None).unwrap_err().step, ChildStep::Program);
    assert_eq!(run("/bin/true", &["x"], "/no/such/directory", None).unwrap_err().step, ChildStep::Directory);
}

#[test]
fn a_child_is_in_its_group_from_the_start_in_every_hierarchy() {
    let tree = Tree::open(&Layout::detect().unwrap(), &format!("belljar-child-test-{}", std::process::id())).unwrap();
    let group = tree.create("mine", &CgroupLimits::default()).unwrap();
    let membership = group.membership().unwrap();
    let (groups, code) = run_in(&membership, "/bin/cat", &["cat", "/proc/self/cgroup"], "/", None).unwrap();
    group.remove().unwrap();
    assert!(matches!(group.membership(), Err(CgroupError::Open { .. })), "a group that is gone was opened");
    let gone = run_in(&membership, "/bin/true", &["true"], "/", None);
    tree.remove().unwrap();
    assert_eq!(code, 0);
    let named = groups.lines().filter(|line| line.ends_with("/mine")).count();
    assert_eq!(named, membership.tasks.len() + usize::from(membership.unified.is_some()), "{groups}");
    assert_eq!(gone.unwrap_err().step, ChildStep::Fork);
}
