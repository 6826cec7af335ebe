//! Other processes of the machine: not seen, not touched; and nothing is left when the guard is gone.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use belljar_linux::pidfd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::fixture::{Place, Who, out, words};

struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn victim(place: &Place) -> Victim {
    Victim(place.bare("sleep").arg("1000").spawn().unwrap())
}

#[test]
fn processes_of_the_host_cannot_be_seen_signalled_or_read() {
    for who in Who::BOTH {
        let place = Place::new(who);
        for script in [
            "kill -0 {pid} && echo ESCAPED",
            "kill -TERM {pid} && echo ESCAPED",
            "test -e /proc/{pid} && echo ESCAPED",
            "head -c 1 /proc/{pid}/environ | grep -q . && echo ESCAPED",
        ] {
            let mut victim = victim(&place);
            let script = script.replace("{pid}", &victim.0.id().to_string());
            let guarded = place.shell(&["--rw"], &script);
            assert!(!words(&guarded).contains("ESCAPED") && guarded.status.code() != Some(125), "{who:?} {script}: {}", words(&guarded));
            assert!(victim.0.try_wait().unwrap().is_none(), "{who:?} {script}");
            assert!(words(&place.bare_shell(&script)).contains("ESCAPED"), "{who:?} {script}");
        }
    }
}

#[test]
fn a_signal_to_the_own_group_stays_inside() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let run = |program: &str| {
            let script = format!("trap 'echo HIT' TERM; {program} sh -c 'kill -TERM 0'; echo done");
            place.bare("bash").args(["-c", &script]).process_group(0).output().unwrap()
        };
        let guarded = run(&format!("{} --", place.guard_program().display()));
        assert_eq!(out(&guarded), "done", "{who:?}: {}", words(&guarded));
        let bare = run("");
        assert!(out(&bare).contains("HIT"), "{who:?}: {}", words(&bare));
    }
}

#[test]
fn only_the_sandboxs_own_processes_are_there() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let seen = place.shell(&[], "ls -d /proc/[0-9]* | wc -l");
        assert!(out(&seen).parse::<u32>().unwrap() <= 4, "{who:?}: {}", words(&seen));
    }
}

fn ends(pid: &impl AsFd) -> bool {
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    poll(&mut [PollFd::new(pid, PollFlags::IN)], Some(&minute)).unwrap() == 1
}

/// The number on the host of the process inside that runs `sleep` with this argument.
fn find(argument: &str) -> Option<u32> {
    let runs =
        |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == format!("sleep\0{argument}\0").into_bytes());
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes.into_iter().find(runs)
}

#[test]
fn nothing_outlives_a_guard_that_is_killed() {
    for (who, argument) in [(Who::Root, "98761"), (Who::User, "98762")] {
        let place = Place::new(who);
        let script = format!("setsid sleep {argument} & (trap '' TERM HUP INT; sleep 98700) & echo ready; wait");
        let mut guard = place.guard(&[]).args(["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(guard.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        // `setsid` has become `sleep` when its own line says so.
        let inside = loop {
            if let Some(pid) = find(argument) {
                break pidfd::open(pid).unwrap();
            }
            std::thread::yield_now();
        };
        guard.kill().unwrap();
        guard.wait().unwrap();
        assert!(ends(&inside), "{who:?}: a process is left");
        // And nobody holds the other end of the stream any more.
        lines.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn signals_to_the_guard_end_the_command() {
    for who in Who::BOTH {
        for (signal, number) in [(rustix::process::Signal::TERM, 15), (rustix::process::Signal::HUP, 1), (rustix::process::Signal::INT, 2)]
        {
            let place = Place::new(who);
            let mut guard = place.guard(&[]).args(["sh", "-c", "echo ready; exec sleep 1000"]).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(guard.stdout.take().unwrap());
            lines.read_line(&mut String::new()).unwrap();
            rustix::process::kill_process(rustix::process::Pid::from_child(&guard), signal).unwrap();
            assert_eq!(guard.wait().unwrap().code(), Some(128 + number), "{who:?} {signal:?}");
        }
        // One that does not want to hear is ended all the same.
        let place = Place::new(who);
        let deaf = "trap '' TERM; echo ready; while :; do sleep 1; done";
        let mut guard = place.guard(&[]).args(["sh", "-c", deaf]).stdout(Stdio::piped()).spawn().unwrap();
        BufReader::new(guard.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_child(&guard), rustix::process::Signal::TERM).unwrap();
        assert_eq!(guard.wait().unwrap().code(), Some(128 + 15), "{who:?}");
    }
}
