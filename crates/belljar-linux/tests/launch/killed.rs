//! The server is killed while it launches, at many different moments: what it had begun dies with it, and what it had finished is
//! found in its cgroup.
#![allow(unsafe_code, reason = "only a process that is forked from here can be killed in the middle of a launch")]

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use belljar_linux::launch::launch;

use super::fixture::Fixture;

const MOMENTS: u32 = 60;
const STEP: Duration = Duration::from_micros(40);
const LONG: Duration = Duration::from_secs(20);

struct Group(PathBuf);

impl Group {
    fn new(number: u32) -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let tree = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields[2] == "cgroup2");
        let tree = tree.expect("a cgroup v2 tree is mounted somewhere");
        let path = Path::new(tree[1]).join(format!("belljar-launch-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn descriptor(&self) -> OwnedFd {
        fs::File::open(&self.0).unwrap().into()
    }

    fn programs(&self) -> Vec<PathBuf> {
        let members = fs::read_to_string(self.0.join("cgroup.procs")).unwrap();
        members.lines().filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok()).collect()
    }

    fn is_empty(&self) -> bool {
        fs::read_to_string(self.0.join("cgroup.events")).unwrap().contains("populated 0")
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_launch_whose_server_dies_is_gone_or_found_in_its_group() {
    let ours = fs::read_link("/proc/self/exe").unwrap();
    let (mut finished, mut unfinished) = (0, 0);
    for moment in 0..MOMENTS {
        let group = Group::new(moment);
        let (_fixture, mut plan) = Fixture::new("sleep 1000");
        plan.cgroup.unified = Some(group.descriptor());
        // SAFETY: the child only launches, which allocates little and takes no lock of this process, and never returns.
        let server = unsafe { libc::fork() };
        assert!(server >= 0);
        if server == 0 {
            let _launched = launch(&plan);
            loop {
                std::thread::park();
            }
        }
        std::thread::sleep(STEP * moment);
        // SAFETY: our own child, not waited for yet, so the number is still its.
        unsafe { libc::kill(server, libc::SIGKILL) };
        // SAFETY: as above; no status is asked for.
        unsafe { libc::waitpid(server, std::ptr::null_mut(), 0) };
        until("what still runs the server's program dies", || !group.programs().contains(&ours));
        if group.is_empty() {
            unfinished += 1;
        } else {
            finished += 1;
        }
        fs::write(group.0.join("cgroup.kill"), "1").unwrap();
        until("the group is empty", || group.is_empty());
        fs::remove_dir(&group.0).unwrap();
    }
    println!("{finished} launches were finished, {unfinished} were not");
}
