//! Control groups on a real kernel, on every layout that this machine can show: as mounted, v1 alone, v2 alone. Needs root.
//!
//! The binary stands alone, so that it can be copied to a machine with another layout and run there.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed, and says on which layout")]

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use belljar_linux::cgroup::{Cgroup, CgroupError, CgroupLimits, Controller, Layout, LayoutKind, Tree};

const ENOUGH: Duration = Duration::from_secs(20);

/// A tree of its own that is gone afterwards.
struct Scene {
    layout: Layout,
    tree: Arc<Tree>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        for name in self.tree.names().unwrap() {
            self.tree.group(&name).remove().unwrap();
        }
        self.tree.remove().unwrap();
    }
}

fn on_every_layout(test: impl Fn(&Scene)) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let without = |kind: &str| mounts.lines().filter(|line| !line.contains(&format!(" - {kind} "))).collect::<Vec<_>>().join("\n");
    let layouts = [Layout::detect(), Layout::from_mountinfo(&without("cgroup2")), Layout::from_mountinfo(&without("cgroup"))];
    let mut seen = Vec::new();
    for layout in layouts.into_iter().flatten() {
        if seen.contains(&layout.kind()) {
            continue;
        }
        seen.push(layout.kind());
        println!("on {:?}", layout.kind());
        let name = format!("belljar-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let tree = Tree::open(&layout, &name).unwrap();
        test(&Scene { layout, tree });
    }
    assert!(!seen.is_empty());
}

impl Scene {
    /// The limits, as far as this layout can keep any.
    fn limits(&self, limits: CgroupLimits) -> CgroupLimits {
        CgroupLimits {
            cpu_millis: limits.cpu_millis.filter(|_| self.layout.has(Controller::Cpu)),
            memory_bytes: limits.memory_bytes.filter(|_| self.layout.has(Controller::Memory)),
            pids: limits.pids.filter(|_| self.layout.has(Controller::Pids)),
        }
    }

    fn group(&self, limits: CgroupLimits) -> Cgroup {
        self.tree.create("sandbox", &self.limits(limits)).unwrap()
    }
}

/// Runs a shell script that puts itself into the group first, as engines do.
fn run(group: &Cgroup, script: &str) -> Child {
    let attach: String = group.procs_paths().iter().map(|path| format!("echo 0 > {} && ", path.display())).collect();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{attach} {{ {script}; }}")]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + ENOUGH;
    while !done() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_group_is_made_found_and_removed_by_name() {
    on_every_layout(|scene| {
        let group = scene.group(CgroupLimits { cpu_millis: Some(1000), memory_bytes: Some(64 << 20), pids: Some(64) });
        assert!(group.exists() && !group.is_populated().unwrap());
        assert_eq!(scene.tree.names().unwrap(), ["sandbox"]);
        assert!(matches!(scene.tree.create("sandbox", &CgroupLimits::default()), Err(CgroupError::Create { .. })));
        assert!(group.exists(), "a second create must not remove the first");
        scene.tree.group("sandbox").remove().unwrap();
        group.remove().unwrap();
        assert!(!group.exists() && scene.tree.names().unwrap().is_empty());
        assert!(!group.is_populated().unwrap());
        group.kill().unwrap();
    });
}

#[test]
fn a_limit_without_its_controller_is_refused_and_leaves_nothing() {
    on_every_layout(|scene| {
        let all = CgroupLimits { cpu_millis: Some(1000), memory_bytes: Some(64 << 20), pids: Some(64) };
        if scene.limits(all) != all {
            let refused = scene.tree.create("sandbox", &all).unwrap_err();
            assert!(matches!(refused, CgroupError::NoController { .. }), "{refused}");
            assert!(scene.tree.names().unwrap().is_empty());
        }
    });
}

#[test]
fn a_limit_on_processor_time_can_be_lifted_and_set_again() {
    on_every_layout(|scene| {
        let group = scene.group(CgroupLimits { cpu_millis: Some(1000), ..CgroupLimits::default() });
        let quota = || {
            let files =
                group.procs_paths().into_iter().flat_map(|procs| ["cpu.max", "cpu.cfs_quota_us"].map(|file| procs.with_file_name(file)));
            files.filter_map(|file| std::fs::read_to_string(file).ok()).collect::<String>().split_whitespace().next().map(str::to_owned)
        };
        let Some(set) = quota() else {
            assert!(matches!(group.set_cpu_limit(None), Err(CgroupError::NoController { .. })));
            return;
        };
        group.set_cpu_limit(None).unwrap();
        assert!(matches!(quota().as_deref(), Some("max" | "-1")), "{:?}", quota());
        group.set_cpu_limit(Some(1000)).unwrap();
        assert_eq!(quota(), Some(set));
    });
}

#[test]
fn everything_is_killed_at_once_even_what_forks_and_ignores_signals() {
    on_every_layout(|scene| {
        let group = scene.group(CgroupLimits { pids: Some(200), ..CgroupLimits::default() });
        let mut child =
            run(&group, "trap '' TERM INT HUP; (while :; do sleep 1000 & sleep 0.01; done) & while :; do sleep 1000 & sleep 0.01; done");
        wait_for("it never forked", || group.usage().unwrap().pids > 5);
        group.kill().unwrap();
        wait_for("the first process did not die", || child.try_wait().unwrap().is_some());
        assert!(group.wait_empty(ENOUGH).unwrap());
        group.remove().unwrap();
    });
}

#[test]
fn removal_kills_what_is_left_and_groups_below() {
    on_every_layout(|scene| {
        let group = scene.group(CgroupLimits::default());
        let mut child = run(&group, "sleep 1000");
        wait_for("it never started", || group.is_populated().unwrap());
        for path in group.procs_paths() {
            std::fs::create_dir(path.with_file_name("below")).unwrap();
        }
        let reaper = std::thread::spawn(move || child.wait().unwrap());
        group.remove().unwrap();
        assert!(!group.exists());
        assert!(!reaper.join().unwrap().success());
    });
}

#[test]
fn whatever_part_of_a_group_is_missing_the_rest_is_killed_and_removed() {
    on_every_layout(|scene| {
        for missing in scene.group(CgroupLimits::default()).procs_paths() {
            let group = scene.tree.group("sandbox");
            std::fs::remove_dir(missing.parent().unwrap()).unwrap();
            let others: Vec<_> = group.procs_paths().into_iter().filter(|path| *path != missing).collect();
            let attach: String = others.iter().map(|path| format!("echo 0 > {} && ", path.display())).collect();
            let mut child = Command::new("sh").args(["-c", &format!("{attach} exec sleep 1000")]).spawn().unwrap();
            wait_for("it is not inside", || {
                others.iter().all(|path| std::fs::read_to_string(path).unwrap().lines().any(|pid| pid == child.id().to_string()))
            });
            group.kill().unwrap();
            if others.is_empty() {
                child.kill().unwrap();
            }
            assert!(!child.wait().unwrap().success());
            group.remove().unwrap();
            assert!(!group.exists());
            scene.group(CgroupLimits::default());
        }
    });
}

#[test]
fn frozen_processes_stand_still_and_go_on_after() {
    on_every_layout(|scene| {
        let group = scene.group(CgroupLimits::default());
        let mut child = run(&group, "while :; do :; done");
        wait_for("it used no time", || group.usage().unwrap().cpu_micros > 20_000);
        group.freeze().unwrap();
        assert!(group.is_frozen().unwrap());
        let stopped = group.usage().unwrap().cpu_micros;
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(group.usage().unwrap().cpu_micros, stopped);
        group.thaw().unwrap();
        assert!(!group.is_frozen().unwrap());
        wait_for("it did not go on", || group.usage().unwrap().cpu_micros > stopped + 10_000);
        group.freeze().unwrap();
        group.kill().unwrap();
        wait_for("a frozen process cannot be killed", || child.try_wait().unwrap().is_some());
        group.remove().unwrap();
    });
}

#[test]
fn memory_beyond_the_limit_is_killed_and_counted() {
    on_every_layout(|scene| {
        if !scene.layout.has(Controller::Memory) {
            return;
        }
        let group = scene.group(CgroupLimits { memory_bytes: Some(32 << 20), ..CgroupLimits::default() });
        // The shell survives; the one who takes the memory does not.
        let output = run(&group, "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; echo survived").wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("survived"));
        assert!(group.oom_kills().unwrap() >= 1);
        let usage = group.usage().unwrap();
        assert!((16 << 20..=32 << 20).contains(&usage.memory_peak_bytes), "{usage:?}");
        group.remove().unwrap();
    });
}

#[test]
fn the_number_of_processes_is_bounded() {
    on_every_layout(|scene| {
        if !scene.layout.has(Controller::Pids) {
            return;
        }
        let group = scene.group(CgroupLimits { pids: Some(16), ..CgroupLimits::default() });
        let mut child = run(&group, "for i in $(seq 50); do sleep 1000 & done; wait");
        wait_for("it never got to the limit", || group.usage().unwrap().pids >= 10);
        std::thread::sleep(Duration::from_millis(50));
        assert!(group.usage().unwrap().pids <= 16);
        group.kill().unwrap();
        child.wait().unwrap();
        group.remove().unwrap();
    });
}

#[test]
fn cpu_time_is_bounded_by_the_quota() {
    on_every_layout(|scene| {
        if !scene.layout.has(Controller::Cpu) {
            return;
        }
        let group = scene.group(CgroupLimits { cpu_millis: Some(250), ..CgroupLimits::default() });
        let mut child = run(&group, "while :; do :; done & while :; do :; done");
        wait_for("it used no time", || group.usage().unwrap().cpu_micros > 20_000);
        let (start, before) = (std::time::Instant::now(), group.usage().unwrap().cpu_micros);
        std::thread::sleep(Duration::from_secs(1));
        let used = group.usage().unwrap().cpu_micros - before;
        let wall = u64::try_from(start.elapsed().as_micros()).unwrap();
        println!("{} thousandths of a core", used * 1000 / wall);
        // A busy machine may give less, never more.
        assert!(used * 1000 / wall <= 300, "{used} of {wall}");
        group.kill().unwrap();
        child.wait().unwrap();
        group.remove().unwrap();
    });
}

#[test]
fn only_harmless_devices_can_be_opened_where_v1_can_say_so() {
    on_every_layout(|scene| {
        if !scene.layout.has(Controller::Devices) {
            assert_eq!(scene.layout.kind(), LayoutKind::V2);
            return;
        }
        let group = scene.group(CgroupLimits::default());
        let script =
            "head -c 1 /dev/urandom >/dev/null && echo random; head -c 1 /dev/kmsg && echo kernel; head -c 0 /dev/loop0 && echo loop; true";
        let output = run(&group, script).wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "random\n");
        group.remove().unwrap();
    });
}

#[test]
fn emptiness_is_told_by_an_event_on_v2() {
    on_every_layout(|scene| {
        let group = scene.group(CgroupLimits::default());
        let events = group.events().unwrap();
        assert_eq!(events.is_some(), scene.layout.kind() != LayoutKind::V1);
        let mut child = run(&group, "exec sleep 1000");
        wait_for("it never started", || group.is_populated().unwrap());
        assert!(!group.wait_empty(Duration::from_millis(30)).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(group.wait_empty(ENOUGH).unwrap());
        group.remove().unwrap();
    });
}
