//! Processes: starting, output, input, ends.

use std::time::Duration;

use belljar_ports::{Guest, GuestError};
use belljar_types::{
    ExitStatus, KillCause, Offsets, OutputEvent, Overflow, ProcessSpec, PtySize, Signal, SpoolPolicy, StreamKind, Termination,
};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::harness::{TestAgent, finish, shell, user};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn output_and_exit_code_come_apart_and_whole() {
    let agent = TestAgent::start().await;
    let finished = agent.shell("echo out; echo err >&2; exit 3").await;
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_slice(), finished.code()), (&b"out\n"[..], &b"err\n"[..], Some(3)));
}

#[tokio::test]
async fn the_signal_that_ended_a_process_is_told() {
    let agent = TestAgent::start().await;
    let finished = agent.shell("kill -TERM $$").await;
    assert_eq!(finished.exit.unwrap(), ExitStatus { termination: Termination::Signaled(15), cause: None });
}

#[tokio::test]
async fn the_same_id_is_started_once() {
    let agent = TestAgent::start().await;
    let spec = shell("echo $$; sleep 60");
    let (first, second) = tokio::join!(agent.client.start(&spec), agent.client.start(&spec));
    assert_eq!(first.unwrap().pid, second.unwrap().pid);
    assert_eq!(agent.client.processes().await.unwrap().len(), 1);
    agent.client.signal(&spec.id, Signal::KILL).await.unwrap();
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let agent = TestAgent::start().await;
    let refused = |error: GuestError| match error {
        GuestError::Refused { message, .. } => message,
        other => panic!("{other:?}"),
    };
    let no_program = agent.client.start(&ProcessSpec::new(["no-such-program"])).await.unwrap_err();
    assert!(refused(no_program).contains("no program no-such-program in PATH"));
    let mut spec = shell("true");
    spec.cwd = Some(agent.path("nowhere"));
    let no_directory = agent.client.start(&spec).await.unwrap_err();
    assert!(refused(no_directory).contains("nowhere"));
    let mut spec = shell("true");
    spec.user = Some(user("ghost"));
    assert!(refused(agent.client.start(&spec).await.unwrap_err()).contains("no user ghost"));
}

#[tokio::test]
async fn a_process_gets_its_users_identity_and_environment() {
    let agent = TestAgent::start().await;
    let mut spec = shell(
        "id -un; echo $USER $LOGNAME $FROM_SANDBOX $MINE; pwd; umask; ulimit -c >/dev/null; grep -c . /proc/self/oom_score_adj; ls /proc/self/fd | wc -w",
    );
    spec.user = Some(user("nobody"));
    spec.env.insert("MINE".into(), "too".into());
    spec.cwd = Some(belljar_types::GuestPath::new("/").unwrap());
    let finished = agent.run(&spec).await;
    // 0, 1, 2 and the one that `ls` reads the directory with.
    assert_eq!(finished.text(), "nobody\nnobody nobody yes too\n/\n0022\n1\n4\n");
}

#[tokio::test]
async fn a_late_and_a_second_reader_lose_nothing() {
    let agent = TestAgent::start().await;
    let spec = shell("printf 0123456789; sleep 0.2; printf abcdef; printf e >&2");
    agent.client.start(&spec).await.unwrap();
    let first = agent.client.attach(&spec.id, Offsets::default()).await.unwrap();
    let second = agent.client.attach(&spec.id, Offsets::default()).await.unwrap();
    let (first, second) = tokio::join!(finish(first), finish(second));
    for finished in [first.unwrap(), second.unwrap()] {
        assert_eq!(
            (finished.stdout.as_slice(), finished.stderr.as_slice(), finished.code()),
            (&b"0123456789abcdef"[..], &b"e"[..], Some(0))
        );
    }
    let late = agent.client.attach(&spec.id, Offsets { stdout: 7, stderr: 1 }).await.unwrap();
    let late = finish(late).await.unwrap();
    assert_eq!((late.stdout.as_slice(), late.stderr.as_slice()), (&b"789abcdef"[..], &b""[..]));
    let beyond = agent.client.attach(&spec.id, Offsets { stdout: 17, stderr: 0 }).await;
    assert!(matches!(beyond, Err(GuestError::Invalid(invalid)) if invalid.field == "from.stdout"));
}

#[tokio::test]
async fn a_reader_that_leaves_comes_back_where_it_was() {
    let agent = TestAgent::start().await;
    let mut spec = shell("seq 1 200000");
    spec.spool = SpoolPolicy { capacity: 64 << 10, overflow: Overflow::Slow };
    let (_, mut output) = agent.client.start_attached(&spec).await.unwrap();
    let mut seen = Vec::new();
    // Leaves after every few pieces, with output under way.
    let exit = 'all: loop {
        for _ in 0..3 {
            match output.next().await.unwrap().unwrap() {
                OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes } => {
                    assert_eq!(offset, seen.len() as u64);
                    seen.extend_from_slice(&bytes);
                }
                OutputEvent::Exit(exit) => break 'all exit,
                other => panic!("{other:?}"),
            }
        }
        drop(output);
        output = agent.client.attach(&spec.id, Offsets { stdout: seen.len() as u64, stderr: 0 }).await.unwrap();
    };
    let expected: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(exit.termination, Termination::Exited(0));
    assert!(seen == expected.as_bytes(), "{} of {} bytes", seen.len(), expected.len());
}

#[tokio::test]
async fn what_a_dead_server_had_taken_but_not_passed_on_can_be_read_again() {
    let agent = TestAgent::start().await;
    let mut spec = shell("seq 1 200000");
    spec.spool = SpoolPolicy { capacity: 64 << 10, overflow: Overflow::Slow };
    let (_, mut output) = agent.client.start_attached(&spec).await.unwrap();
    let mut taken = 0;
    while taken < 300_000 {
        match output.next().await.unwrap().unwrap() {
            OutputEvent::Data { bytes, .. } => taken += bytes.len() as u64,
            other => panic!("{other:?}"),
        }
    }
    // By then the writer has filled the spool and waits.
    assert_eq!(agent.client.wait(&spec.id, Duration::from_millis(500)).await.unwrap(), None);
    drop(output);
    let passed_on = taken - (32 << 10);
    let rest = finish(agent.client.attach(&spec.id, Offsets { stdout: passed_on, stderr: 0 }).await.unwrap()).await.unwrap();
    let all: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    assert!(rest.gaps.is_empty(), "{:?}", rest.gaps);
    assert!(rest.stdout == all.as_bytes()[usize::try_from(passed_on).unwrap()..], "{} bytes", rest.stdout.len());
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_come_through_a_small_spool() {
    let agent = TestAgent::start().await;
    let mut spec = shell("head -c 104857600 /dev/zero");
    spec.spool = SpoolPolicy { capacity: 1 << 20, overflow: Overflow::Slow };
    let (_, mut output) = agent.client.start_attached(&spec).await.unwrap();
    let mut total = 0;
    while let Some(event) = output.next().await {
        match event.unwrap() {
            OutputEvent::Data { offset, bytes, .. } => {
                assert_eq!(offset, total);
                total += bytes.len() as u64;
            }
            OutputEvent::Exit(exit) => assert_eq!(exit.termination, Termination::Exited(0)),
            OutputEvent::Gap { .. } => panic!("a gap"),
        }
    }
    assert_eq!(total, 104_857_600);
}

#[tokio::test]
async fn the_oldest_output_falls_out_and_the_gap_is_exact() {
    let agent = TestAgent::start().await;
    let mut spec = shell("seq 1 100000");
    spec.spool = SpoolPolicy { capacity: 4096, overflow: Overflow::DropOldest };
    agent.client.start(&spec).await.unwrap();
    agent.client.wait(&spec.id, LONG).await.unwrap().unwrap();
    let finished = finish(agent.client.attach(&spec.id, Offsets::default()).await.unwrap()).await.unwrap();
    let all: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let kept = all.len() - finished.stdout.len();
    assert_eq!(finished.gaps, [(StreamKind::Stdout, 0, kept as u64)]);
    assert_eq!(finished.stdout, all.as_bytes()[kept..]);
    assert_eq!(finished.stdout.len(), 4096);
}

#[tokio::test]
async fn a_slowed_writer_waits_for_a_reader_and_its_last_words_are_kept() {
    let agent = TestAgent::start().await;
    let mut spec = shell("head -c 300000 /dev/zero; echo done >&2");
    spec.spool = SpoolPolicy { capacity: 8192, overflow: Overflow::Slow };
    agent.client.start(&spec).await.unwrap();
    assert_eq!(agent.client.wait(&spec.id, Duration::from_millis(300)).await.unwrap(), None, "it waits");
    let finished = finish(agent.client.attach(&spec.id, Offsets::default()).await.unwrap()).await.unwrap();
    assert_eq!((finished.stdout.len(), finished.gaps.len(), finished.stderr.as_slice()), (300_000, 0, &b"done\n"[..]));
    // Less than spool and pipe hold, more than the spool: nothing is lost though nobody read while it lived.
    let mut spec = shell("head -c 40000 /dev/zero");
    spec.spool = SpoolPolicy { capacity: 8192, overflow: Overflow::Slow };
    agent.client.start(&spec).await.unwrap();
    agent.client.wait(&spec.id, LONG).await.unwrap().unwrap();
    let finished = finish(agent.client.attach(&spec.id, Offsets::default()).await.unwrap()).await.unwrap();
    assert_eq!((finished.stdout.len(), finished.gaps.len()), (40_000, 0));
}

#[tokio::test]
async fn a_runaway_writer_is_killed_if_so_chosen() {
    let agent = TestAgent::start().await;
    let mut spec = shell("yes");
    spec.spool = SpoolPolicy { capacity: 8192, overflow: Overflow::Kill };
    agent.client.start(&spec).await.unwrap();
    let exit = agent.client.wait(&spec.id, LONG).await.unwrap().unwrap();
    assert_eq!(exit, ExitStatus { termination: Termination::Signaled(9), cause: Some(KillCause::Overflow) });
    let mut spec = shell("head -c 8192 /dev/zero");
    spec.spool = SpoolPolicy { capacity: 8192, overflow: Overflow::Kill };
    agent.client.start(&spec).await.unwrap();
    let exit = agent.client.wait(&spec.id, LONG).await.unwrap().unwrap();
    assert_eq!(exit, ExitStatus { termination: Termination::Exited(0), cause: None }, "exactly full is not too much");
}

#[tokio::test]
async fn standard_input_is_taken_exactly_once() {
    let agent = TestAgent::start().await;
    let mut spec = ProcessSpec::new(["cat"]);
    spec.stdin = true;
    let (_, output) = agent.client.start_attached(&spec).await.unwrap();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(300_000).collect();
    let write = |from: usize, to: usize| agent.client.write_stdin(&spec.id, from as u64, Bytes::copy_from_slice(&bytes[from..to]));
    let drain = finish(output);
    let feed = async {
        write(0, 100_000).await.unwrap();
        write(0, 100_000).await.unwrap();
        write(50_000, 200_000).await.unwrap();
        let ahead = write(250_000, 300_000).await.unwrap_err();
        assert!(matches!(ahead, GuestError::Invalid(invalid) if invalid.field == "offset"));
        write(200_000, 300_000).await.unwrap();
        agent.client.close_stdin(&spec.id).await.unwrap();
        let closed = write(299_999, 300_000).await;
        assert!(closed.is_ok(), "taken before: {closed:?}");
    };
    let (finished, ()) = tokio::join!(drain, feed);
    assert!(finished.unwrap().stdout == bytes);
    let after = agent.client.write_stdin(&spec.id, 300_000, Bytes::from_static(b"x")).await.unwrap_err();
    assert!(matches!(after, GuestError::Refused { .. }), "{after:?}");
}

#[tokio::test]
async fn a_terminal_has_its_size_and_interrupts() {
    let agent = TestAgent::start().await;
    let mut spec = ProcessSpec::new(["bash", "--norc", "-i"]);
    spec.pty = Some(PtySize { columns: 99, rows: 33 });
    spec.env.insert("PS1".into(), "$ ".into());
    let (info, mut output) = agent.client.start_attached(&spec).await.unwrap();
    assert!(info.pty);
    let mut seen = String::new();
    let mut offset = 0;
    let mut type_in = async |text: &str| {
        agent.client.write_stdin(&spec.id, offset, Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
        offset += text.len() as u64;
    };
    let mut until = async |wanted: &str| {
        while !seen.contains(wanted) {
            match output.next().await.unwrap().unwrap() {
                OutputEvent::Data { bytes, .. } => seen.push_str(&String::from_utf8_lossy(&bytes)),
                other => panic!("{other:?} before {wanted:?} in {seen:?}"),
            }
        }
        seen.clear();
    };
    type_in("stty size\n").await;
    until("33 99").await;
    agent.client.resize(&spec.id, PtySize { columns: 120, rows: 40 }).await.unwrap();
    type_in("stty size\n").await;
    until("40 120").await;
    // It says that it runs: an interrupt that comes while the shell still reads its line would be the shell's.
    type_in("sh -c 'echo run''ning; exec sleep 1000'; echo after=$?\n").await;
    until("running").await;
    type_in("\u{3}").await;
    type_in("echo o''k $TERM; jobs; exit 5\n").await;
    until("ok xterm-256color").await;
    assert_eq!(agent.client.wait(&spec.id, LONG).await.unwrap().unwrap().termination, Termination::Exited(5));
}

#[tokio::test]
async fn a_process_is_gone_when_its_kill_is_answered() {
    let agent = TestAgent::start().await;
    for _ in 0..20 {
        let spec = shell("exec sleep 1000");
        let pid = agent.client.start(&spec).await.unwrap().pid;
        agent.client.signal(&spec.id, Signal::KILL).await.unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} is still there");
        // A second time is no mistake.
        agent.client.signal(&spec.id, Signal::KILL).await.unwrap();
    }
}

#[tokio::test]
async fn a_deadline_ends_the_process_and_whatever_it_started() {
    let agent = TestAgent::start().await;
    let mark = format!("31{}", std::process::id());
    // A child, one in another session, and one that has left its parents too.
    let mut spec = shell(&format!("sleep {mark}1 & setsid sleep {mark}2 & (setsid sh -c 'sleep {mark}3 & sleep {mark}4' &) ; wait"));
    spec.deadline = Some(Duration::from_millis(700));
    agent.client.start(&spec).await.unwrap();
    let exit = agent.client.wait(&spec.id, LONG).await.unwrap().unwrap();
    assert_eq!(exit, ExitStatus { termination: Termination::Signaled(9), cause: Some(KillCause::Deadline) });
    for _ in 0..200 {
        if !agent.shell(&format!("pgrep -f 'sleep {}'", mark.replacen('3', "[3]", 1))).await.text().contains(char::is_numeric) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("something is left");
}

#[tokio::test]
async fn an_end_is_told_though_a_background_child_holds_the_pipes() {
    let agent = TestAgent::start().await;
    let finished = agent.shell("sleep 30 & echo started").await;
    assert_eq!((finished.text().as_str(), finished.code()), ("started\n", Some(0)));
}

#[tokio::test]
async fn orphans_are_reaped() {
    let agent = TestAgent::start().await;
    agent.shell("for i in 1 2 3 4 5; do (sleep 0.05 &) ; done").await;
    for _ in 0..200 {
        let zombies = agent.shell(&format!("ps --ppid {} -o stat= | grep -c Z", agent.child.id())).await;
        if zombies.text().trim() == "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("zombies are left");
}

#[tokio::test]
async fn processes_are_listed_with_tag_and_end_and_old_ones_are_forgotten() {
    let agent = TestAgent::start().await;
    let mut spec = shell("echo hi");
    spec.tag = Some("mine".into());
    agent.run(&spec).await;
    let all = agent.client.processes().await.unwrap();
    let info = all.iter().find(|info| info.id == spec.id).unwrap();
    assert_eq!((info.tag.as_deref(), info.written.stdout, info.user.as_str()), (Some("mine"), 3, "root"));
    assert_eq!(info.exit.unwrap().termination, Termination::Exited(0));
    for _ in 0..260 {
        agent.client.start(&ProcessSpec::new(["true"])).await.unwrap();
    }
    for _ in 0..200 {
        let all = agent.client.processes().await.unwrap();
        if all.len() <= 256 && all.iter().all(|info| info.exit.is_some()) {
            assert!(!all.iter().any(|info| info.id == spec.id), "the oldest goes first");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("exited processes are not forgotten");
}

#[tokio::test]
async fn unknown_processes_are_said_to_be_so() {
    let agent = TestAgent::start().await;
    let id = "nobody-knows-it".parse().unwrap();
    assert!(matches!(agent.client.signal(&id, Signal::TERM).await, Err(GuestError::NoProcess { .. })));
    assert!(matches!(agent.client.attach(&id, Offsets::default()).await, Err(GuestError::NoProcess { .. })));
    assert!(matches!(agent.client.write_stdin(&id, 0, Bytes::from_static(b"x")).await, Err(GuestError::NoProcess { .. })));
    assert!(matches!(agent.client.wait(&id, LONG).await, Err(GuestError::NoProcess { .. })));
}
