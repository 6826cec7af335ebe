//! Launches real first processes and looks at them from inside and outside.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that panics says where, and prints what it measured")]

mod failures;
mod fixture;
mod killed;

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use belljar_linux::launch::launch;
use belljar_linux::pidfd::{self, Ending};
use fixture::{Fixture, UID_BASE};

fn run(script: &str) -> (Ending, String) {
    let (fixture, plan) = Fixture::new(script);
    let launched = launch(&plan).unwrap();
    fixture.finish(plan, &launched)
}

#[test]
fn the_first_process_is_root_of_a_small_world() {
    let (ending, text) =
        run("echo pid $$; id -u; cat /proc/self/uid_map; cat /proc/sys/kernel/hostname; ls /proc/self/fd; cat /proc/self/cgroup");
    assert_eq!(ending, Ending::Exited(0), "{text}");
    assert!(text.starts_with("pid 1\n0\n"), "{text}");
    assert!(text.contains(&UID_BASE.to_string()), "{text}");
    assert!(text.contains("inside\n"), "{text}");
    assert!(text.contains("\n0\n1\n2\n3\n"), "only the streams and the listing itself are open: {text}");
    assert!(!text.contains("\n4\n"), "{text}");
}

#[test]
fn it_has_only_the_powers_it_was_left() {
    let (_, text) = run("cat /proc/self/status");
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
        assert_eq!(value(set), "00000000a00405fb", "{set}");
    }
    assert_eq!(value("CapAmb:"), "0000000000000000");
    assert_eq!(value("CapInh:"), "0000000000000000");
    assert_eq!(value("NoNewPrivs:"), "1");
    assert_eq!(value("Seccomp:"), "2");
    assert_eq!(value("SigBlk:"), "0000000000000000");
    assert_eq!(value("SigIgn:"), "0000000000000000");
    let (_, text) = run("cat /proc/self/oom_score_adj");
    assert_eq!(text, "7\n");
    let (_, text) = run("mount -t tmpfs x /tmp; echo $?; unshare -m true; echo $?; echo 1 > /proc/sys/kernel/hostname || echo refused");
    assert!(!text.contains("\n0\n") && text.contains("refused"), "{text}");
}

#[test]
fn what_it_sees_names_nothing_of_the_host() {
    let (_, text) = run("cat /proc/self/mountinfo; cat /proc/keys; cat /proc/kallsyms; ls /proc/acpi; echo end");
    assert!(text.ends_with("end\n"), "{text}");
    assert!(text.contains(" / / "), "{text}");
    println!("{text}");
    for line in text.lines() {
        for trace in ["/tmp/.", "/home", "/var", "/dev/vd", "/dev/sd"] {
            assert!(!line.contains(trace), "{line}");
        }
    }
}

#[test]
fn what_root_makes_inside_is_roots_on_disk() {
    let script = "touch /made && stat -c %u:%g /made && mkdir /d && chown 1000:1000 /d && touch /lower-directory/file && \
                  mv /lower-directory /moved && cat /moved/file";
    let (fixture, plan) = Fixture::new(script);
    let launched = launch(&plan).unwrap();
    let upper = fixture.writable.path().join("upper");
    while !pidfd::has_ended(launched.pidfd.as_fd()).unwrap() {
        std::thread::yield_now();
    }
    let owner = |path: &str| fs::metadata(upper.join(path)).map(|found| (found.uid(), found.gid())).ok();
    assert_eq!((owner("made"), owner("d"), owner("moved")), (Some((0, 0)), Some((1000, 1000)), Some((0, 0))));
    let (ending, text) = fixture.finish(plan, &launched);
    assert_eq!((ending, text.as_str()), (Ending::Exited(0), "0:0\nlower\n"));
}

#[test]
fn how_long_it_takes() {
    let mut times = Vec::new();
    for _ in 0..30 {
        let (fixture, plan) = Fixture::new("exit 7");
        let start = Instant::now();
        let launched = launch(&plan).unwrap();
        times.push(start.elapsed());
        assert_eq!(fixture.finish(plan, &launched).0, Ending::Exited(7));
    }
    times.sort_unstable();
    println!("launch until execve: median {:?}, least {:?}", times[times.len() / 2], times[0]);
}
