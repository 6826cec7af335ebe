//! Starting, feeding, signalling and ending processes.

use std::time::Duration;

use belljar_ports::GuestError;
use belljar_testkit::{Finished, Lab, path, pattern, run, run_spec, sh, sha256};
use belljar_types::{IsolationClass, KillCause, PrivilegePolicy, ProcessSpec, Signal, Termination};
use bytes::Bytes;

pub(crate) async fn exit_codes_and_signals_are_told_apart(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    for code in [0, 1, 42, 255] {
        assert_eq!(sh(&*sandbox.guest, &format!("exit {code}")).await.code(), code);
    }
    for signal in [9u8, 15, 11] {
        let finished = sh(&*sandbox.guest, &format!("kill -{signal} $$; sleep 60")).await;
        assert_eq!(finished.exit.termination, Termination::Signaled(signal));
        assert_eq!(finished.exit.cause, None);
    }
    sandbox.destroy().await;
}

pub(crate) async fn environment_directory_and_user_are_as_asked(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.env.insert("FROM_SANDBOX".into(), "one".into());
    spec.env.insert("BOTH".into(), "sandbox".into());
    let sandbox = lab.create(class, &spec).await.unwrap();
    let mut process = ProcessSpec::new(["/bin/sh", "-c", "echo $(id -un) $(id -u) $HOME $PWD $FROM_SANDBOX $BOTH"]);
    process.env.insert("BOTH".into(), "process".into());
    assert_eq!(run_spec(&*sandbox.guest, process.clone()).await.unwrap().text(), "user 1000 /home/user /home/user one process");
    process.id = belljar_types::ProcessId::random();
    process.user = Some("root".parse().unwrap());
    process.cwd = Some(path("/tmp"));
    assert_eq!(run_spec(&*sandbox.guest, process).await.unwrap().text(), "root 0 /root /tmp one process");
    assert_eq!(
        run(&*sandbox.guest, &["sh", "-c", "ls -l /proc/self/fd | grep -c ' -> '"]).await.text(),
        "4",
        "0, 1, 2 and the listing itself"
    );
    sandbox.destroy().await;
}

pub(crate) async fn binary_input_comes_back_unchanged(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let input = pattern(3 << 20);
    let mut spec = ProcessSpec::new(["/bin/cat"]);
    spec.stdin = true;
    spec.spool.overflow = belljar_types::Overflow::Slow;
    let (_, stream) = sandbox.guest.start_attached(&spec).await.unwrap();
    let reading = tokio::spawn(Finished::read(stream));
    let mut offset = 0;
    for piece in input.chunks(100_000) {
        sandbox.guest.write_stdin(&spec.id, offset, Bytes::copy_from_slice(piece)).await.unwrap();
        offset += piece.len() as u64;
    }
    sandbox.guest.close_stdin(&spec.id).await.unwrap();
    let finished = reading.await.unwrap().unwrap();
    assert_eq!(finished.code(), 0);
    assert_eq!(sha256(&finished.stdout), sha256(&input));
    sandbox.destroy().await;
}

pub(crate) async fn input_written_twice_at_an_offset_is_taken_once(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut spec = ProcessSpec::new(["/bin/cat"]);
    spec.stdin = true;
    let guest = &sandbox.guest;
    let (_, stream) = guest.start_attached(&spec).await.unwrap();
    guest.write_stdin(&spec.id, 0, Bytes::from_static(b"hello ")).await.unwrap();
    guest.write_stdin(&spec.id, 0, Bytes::from_static(b"hello ")).await.unwrap();
    guest.write_stdin(&spec.id, 3, Bytes::from_static(b"lo world")).await.unwrap();
    let hole = guest.write_stdin(&spec.id, 99, Bytes::from_static(b"x")).await;
    assert!(hole.is_err(), "bytes beyond what was taken would leave a hole");
    guest.close_stdin(&spec.id).await.unwrap();
    assert_eq!(Finished::read(stream).await.unwrap().stdout, b"hello world");
    sandbox.destroy().await;
}

pub(crate) async fn a_process_is_started_once_however_often_it_is_asked_for(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let spec = ProcessSpec::new(["/bin/sh", "-c", "echo started >> /home/user/count"]);
    let first = sandbox.guest.start(&spec).await.unwrap();
    let second = sandbox.guest.start(&spec).await.unwrap();
    assert_eq!(first.pid, second.pid);
    sandbox.guest.wait(&spec.id, Duration::from_secs(60)).await.unwrap().unwrap();
    let third = sandbox.guest.start(&spec).await.unwrap();
    assert_eq!(third.exit.unwrap().termination, Termination::Exited(0));
    assert_eq!(sh(&*sandbox.guest, "wc -l < /home/user/count").await.text(), "1");
    sandbox.destroy().await;
}

pub(crate) async fn signals_reach_the_whole_group(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let spec = ProcessSpec::new(["/bin/sh", "-c", "sleep 1000 & sleep 1000 & wait"]);
    sandbox.guest.start(&spec).await.unwrap();
    until(|| async { sh(&*sandbox.guest, "pgrep -c -x sleep || true").await.text() == "2" }).await;
    sandbox.guest.signal(&spec.id, Signal::TERM).await.unwrap();
    let exit = sandbox.guest.wait(&spec.id, Duration::from_secs(60)).await.unwrap().unwrap();
    assert_eq!(exit.termination, Termination::Signaled(15));
    until(|| async { sh(&*sandbox.guest, "pgrep -c -x sleep || true").await.text() == "0" }).await;
    let gone = sandbox.guest.signal(&"nobody".parse().unwrap(), Signal::TERM).await.unwrap_err();
    assert!(matches!(gone, GuestError::NoProcess { .. }), "{gone}");
    sandbox.destroy().await;
}

pub(crate) async fn a_deadline_ends_everything_the_process_started(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    // One child stays in the group, one leaves it by a session of its own, one ignores polite signals.
    let script = "sleep 1000 & setsid sleep 1000 & (trap '' TERM INT HUP; sleep 1000) & wait";
    let mut spec = ProcessSpec::new(["/bin/bash", "-c", script]);
    spec.deadline = Some(Duration::from_secs(2));
    let (_, stream) = sandbox.guest.start_attached(&spec).await.unwrap();
    let finished = Finished::read(stream).await.unwrap();
    assert_eq!(finished.exit.cause, Some(KillCause::Deadline), "{finished}");
    until(|| async { sh(&*sandbox.guest, "pgrep -c -x sleep || true").await.text() == "0" }).await;
    sandbox.destroy().await;
}

pub(crate) async fn zombies_are_reaped(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let orphans = "for i in $(seq 50); do (setsid sh -c 'sleep 0.1' >/dev/null 2>&1 &) ; done";
    assert_eq!(sh(&*sandbox.guest, orphans).await.code(), 0);
    until(|| async { sh(&*sandbox.guest, "ps -eo stat | grep -c ^Z || true").await.text() == "0" }).await;
    sandbox.destroy().await;
}

pub(crate) async fn a_login_shell_starts_no_process_of_its_own(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    // What the shell is told to start gets the next number, unless something else was started: now and then by the agent.
    let script = "bash -l -c 'here=$$; sh -c \"echo \\$(( \\$\\$ - $here ))\"; true'";
    let mut numbers = Vec::new();
    for _ in 0..5 {
        numbers.push(sh(&*sandbox.guest, script).await.text());
    }
    assert!(numbers.contains(&"1".to_owned()), "{class}: {numbers:?}");
    sandbox.destroy().await;
}

pub(crate) async fn sudo_makes_root_and_only_where_allowed(class: IsolationClass) {
    let lab = Lab::get().await;
    let allowed = lab.sandbox(class).await;
    assert_eq!(sh(&*allowed.guest, "sudo id -u; cd /tmp && sudo pwd; sudo -u user id -un; sudo sh -c 'exit 7'").await.code(), 7);
    assert_eq!(sh(&*allowed.guest, "sudo id -u").await.text(), "0");
    assert_eq!(sh(&*allowed.guest, "cd /var && sudo -n -- sh -c 'pwd; id -un' | tr '\\n' ' '").await.text(), "/var root");
    assert_eq!(sh(&*allowed.guest, "echo in | sudo cat; sudo sh -c 'echo err >&2' 2>&1").await.text(), "in\nerr");
    assert_eq!(sh(&*allowed.guest, "sudo A=b env | grep -x A=b").await.text(), "A=b");
    allowed.destroy().await;

    let mut spec = lab.spec();
    spec.privilege = PrivilegePolicy::UserOnly;
    let refused = lab.create(class, &spec).await.unwrap();
    let finished = sh(&*refused.guest, "sudo id -u").await;
    assert_ne!(finished.code(), 0, "{finished}");
    assert!(String::from_utf8_lossy(&finished.stderr).contains("sudo"), "{finished}");
    let mut as_root = ProcessSpec::new(["/usr/bin/id"]);
    as_root.user = Some("root".parse().unwrap());
    assert!(refused.guest.start(&as_root).await.is_err());
    refused.destroy().await;
}

pub(crate) async fn processes_are_listed_with_their_tags(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let mut spec = ProcessSpec::new(["/bin/sleep", "1000"]);
    spec.tag = Some("a server, of sorts".into());
    let started = sandbox.guest.start(&spec).await.unwrap();
    let listed = sandbox.guest.processes().await.unwrap();
    let found = listed.iter().find(|process| process.id == spec.id).unwrap();
    assert_eq!((found.pid, found.tag.as_deref(), found.exit), (started.pid, Some("a server, of sorts"), None));
    assert_eq!(found.argv, spec.argv);
    assert_eq!(sandbox.guest.wait(&spec.id, Duration::from_millis(10)).await.unwrap(), None);
    sandbox.guest.signal(&spec.id, Signal::KILL).await.unwrap();
    assert_eq!(sandbox.guest.wait(&spec.id, Duration::from_secs(60)).await.unwrap().unwrap().termination, Termination::Signaled(9));
    sandbox.destroy().await;
}

/// Waits, without a bound of its own worth speaking of, until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(mut so: impl FnMut() -> F) {
    for _ in 0..600 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("waited a minute for something that did not come");
}
