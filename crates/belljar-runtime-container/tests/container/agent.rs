//! Sandboxes with the real agent: every verb of the runtime, and what happens when things end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use belljar_ports::{Guest, Presence, Runtime, RuntimeError, SnapshotKind};
use belljar_types::{
    CheckOutcome, EndReason, ExitStatus, KillCause, OutputEvent, PauseKind, ProcessSpec, SandboxId, SnapshotId, StreamKind, Termination,
    UserName,
};
use futures_util::StreamExt;

use crate::world::{Agent, World};

async fn run_as(guest: &Arc<dyn Guest>, user: &str, script: &str) -> (ExitStatus, String) {
    let mut spec = ProcessSpec::new(["/bin/sh", "-c", script]);
    spec.user = Some(user.parse::<UserName>().unwrap());
    let (_, mut output) = guest.start_attached(&spec).await.unwrap();
    let mut text = Vec::new();
    while let Some(event) = output.next().await {
        match event.unwrap() {
            OutputEvent::Data { bytes, stream: StreamKind::Stdout | StreamKind::Stderr, .. } => text.extend_from_slice(&bytes),
            OutputEvent::Gap { .. } => panic!("output was lost"),
            OutputEvent::Exit(exit) => return (exit, String::from_utf8(text).unwrap()),
        }
    }
    panic!("the output ended without an exit: {}", String::from_utf8_lossy(&text));
}

async fn run(guest: &Arc<dyn Guest>, script: &str) -> (ExitStatus, String) {
    run_as(guest, "root", script).await
}

const DONE: ExitStatus = ExitStatus { termination: Termination::Exited(0), cause: None };

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_lives_and_is_gone() {
    let world = World::new(Agent::Real).await;
    let spec = world.spec();
    let execution = world.runtime.create(&spec).await.unwrap();
    assert_eq!((&execution.sandbox, &execution.id), (&spec.id, &spec.execution));
    let found = world.runtime.inventory().await.unwrap();
    assert!(matches!(&found[..], [one] if one.id == spec.id && one.presence == Presence::Running(execution.clone())), "{found:?}");
    let again = world.runtime.create(&spec).await.unwrap_err();
    assert!(matches!(again, RuntimeError::Exists { .. }), "{again:?}");

    let guest = world.runtime.guest(&spec.id).await.unwrap();
    let (exit, text) = run_as(&guest, "user", "id -u; cat /proc/self/status").await;
    assert_eq!(exit, DONE, "{text}");
    assert!(text.starts_with("1000\n"), "{text}");
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let (_, text) = run(&guest, "cat /proc/self/status; cat /proc/1/environ; ls /.belljar").await;
    assert!(text.contains("CapEff:\t00000000a00405fb") && text.contains("CapBnd:\t00000000a00405fb"), "{text}");
    assert!(!text.lines().any(|line| line == "boot"), "the token's file is gone: {text}");

    let usage = world.runtime.usage(&spec.id).await.unwrap();
    assert!(usage.memory_bytes > 0 && usage.pids > 0 && usage.cpu_micros > 0, "{usage:?}");
    world.runtime.destroy(&spec.id).await.unwrap();
    world.runtime.destroy(&spec.id).await.unwrap();
    assert!(world.runtime.inventory().await.unwrap().is_empty());
    let gone = world.runtime.guest(&spec.id).await.err().unwrap();
    assert!(matches!(gone, RuntimeError::NotFound { .. }), "{gone:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_agent_listens_on_no_network() {
    if !belljar_linux::nearby::available().unwrap() {
        eprintln!("not tried: this kernel has no sockets that let no descriptors in");
        return;
    }
    let world = World::new(Agent::Real).await;
    let spec = world.spec();
    world.runtime.create(&spec).await.unwrap();
    let guest = world.runtime.guest(&spec.id).await.unwrap();
    let (_, text) = run(&guest, "cat /proc/net/tcp /proc/net/tcp6; echo; cat /proc/net/unix").await;
    let (network, nearby) = text.split_once("\n\n").unwrap();
    let listening: Vec<_> = network.lines().filter(|line| line.split_whitespace().nth(3) == Some("0A")).collect();
    assert!(listening.is_empty(), "{listening:?}");
    assert!(nearby.contains("sudo") && !nearby.contains("/proc/self/fd"), "the host's door has no name inside: {nearby}");
    world.runtime.destroy(&spec.id).await.unwrap();
    assert!(!world.host.home(&spec.id).exists());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_says_if_memory_was_why() {
    let world = World::new(Agent::Real).await;
    let mut spec = world.spec();
    spec.limits.memory_bytes = 64 << 20;
    world.runtime.create(&spec).await.unwrap();
    let guest = world.runtime.guest(&spec.id).await.unwrap();
    let (exit, _) = run(&guest, "kill -9 $$").await;
    assert_eq!(exit, ExitStatus { termination: Termination::Signaled(9), cause: None });
    let (exit, text) = run(&guest, "exec tail /dev/zero").await;
    assert_eq!(exit, ExitStatus { termination: Termination::Signaled(9), cause: Some(KillCause::OutOfMemory) }, "{text}");
    assert!(world.runtime.usage(&spec.id).await.unwrap().oom_kills > 0);
    assert_eq!(run(&guest, "exit 0").await.0, DONE, "the agent lives on");
    world.runtime.destroy(&spec.id).await.unwrap();
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_are_told_apart() {
    let world = Arc::new(World::new(Agent::Real).await);
    let ended = |id: SandboxId| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.runtime.ended(&id).await.unwrap() })
    };
    let spec = world.spec();
    world.runtime.create(&spec).await.unwrap();
    let waiting = ended(spec.id.clone());
    tokio::task::yield_now().await;
    world.runtime.destroy(&spec.id).await.unwrap();
    // Whoever asked before the end is told why; whoever asks after it is told that there is nothing.
    if let Ok(reason) = waiting.await {
        assert_eq!(reason, EndReason::Killed);
    }

    let spec = world.spec();
    world.runtime.create(&spec).await.unwrap();
    let waiting = ended(spec.id.clone());
    let guest = world.runtime.guest(&spec.id).await.unwrap();
    // The agent ends when it is told to.
    let _ = guest.start(&ProcessSpec::new(["/bin/sh", "-c", "sleep 0.2; kill -TERM 1"])).await;
    let mut as_root = ProcessSpec::new(["/bin/sh", "-c", "kill -TERM 1"]);
    as_root.user = Some("root".parse().unwrap());
    let _ = guest.start(&as_root).await;
    assert_eq!(waiting.await.unwrap(), EndReason::Exited);
    let found = world.runtime.inventory().await.unwrap();
    assert!(matches!(&found[..], [one] if one.presence == Presence::Ended(EndReason::Exited)), "{found:?}");
    world.runtime.destroy(&spec.id).await.unwrap();

    let mut spec = world.spec();
    spec.limits.wall_time = Some(Duration::from_secs(1));
    world.runtime.create(&spec).await.unwrap();
    assert_eq!(ended(spec.id.clone()).await.unwrap(), EndReason::Killed);
    world.runtime.destroy(&spec.id).await.unwrap();
    Arc::into_inner(world).unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_stands_still() {
    let world = World::new(Agent::Real).await;
    let spec = world.spec();
    let execution = world.runtime.create(&spec).await.unwrap();
    let guest = world.runtime.guest(&spec.id).await.unwrap();
    world.runtime.pause(&spec.id, PauseKind::Memory).await.unwrap();
    let found = world.runtime.inventory().await.unwrap();
    assert!(matches!(&found[..], [one] if one.presence == Presence::Frozen(execution.clone())), "{found:?}");
    let silent = tokio::time::timeout(Duration::from_millis(300), guest.hello()).await;
    assert!(silent.is_err(), "a frozen agent does not answer");
    assert_eq!(world.runtime.resume(&spec.id, &belljar_types::ExecutionId::random()).await.unwrap(), execution);
    assert_eq!(run(&guest, "exit 0").await.0, DONE);
    world.runtime.pause(&spec.id, PauseKind::Memory).await.unwrap();
    world.runtime.destroy(&spec.id).await.unwrap();
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_takes_over() {
    let world = World::new(Agent::Real).await;
    let spec = world.spec();
    let execution = world.runtime.create(&spec).await.unwrap();
    let guest = world.runtime.guest(&spec.id).await.unwrap();
    assert_eq!(run(&guest, "echo kept > /tmp/file").await.0, DONE);
    drop(guest);
    let world = world.reopened().await;
    assert_eq!(world.runtime.adopt(&spec.id).await.unwrap(), execution);
    let guest = world.runtime.guest(&spec.id).await.unwrap();
    assert_eq!(run(&guest, "cat /tmp/file").await.1, "kept\n");
    world.runtime.destroy(&spec.id).await.unwrap();
    let gone = world.runtime.adopt(&spec.id).await.unwrap_err();
    assert!(matches!(gone, RuntimeError::NotFound { .. }), "{gone:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_cannot_do_is_said_beforehand() {
    let world = World::new(Agent::Real).await;
    let capabilities = world.runtime.capabilities();
    assert!(capabilities.fork && capabilities.snapshot_filesystem && !capabilities.snapshot_memory);
    let spec = world.spec();
    world.runtime.create(&spec).await.unwrap();
    let error = world.runtime.snapshot(&spec.id, &SnapshotId::random(), SnapshotKind::Memory).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Unsupported { .. }), "{error:?}");
    assert!(world.runtime.snapshots().await.unwrap().is_empty(), "nothing was begun");
    let error = world.runtime.fork(&SnapshotId::random(), &world.spec()).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NoSnapshot { .. }), "{error:?}");
    world.runtime.destroy(&spec.id).await.unwrap();
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_really_makes_one() {
    let world = World::new(Agent::Real).await;
    let report = world.runtime.probe().await;
    println!("{report:#?}");
    assert!(report.works(), "{:?}", report.first_failure());
    assert!(report.version.starts_with("Linux "));
    assert!(world.runtime.inventory().await.unwrap().is_empty());
    world.close().await;
    let world = World::new(Agent::Script("exit 3")).await;
    let report = world.runtime.probe().await;
    let failure = report.first_failure().unwrap();
    assert_eq!((failure.name.as_str(), failure.outcome), ("a sandbox", CheckOutcome::Fail));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_and_nothing_stays() {
    let world = World::new(Agent::Real).await;
    for after in [0, 1, 2, 4, 8, 16, 32] {
        let spec = world.spec();
        let _ = tokio::time::timeout(Duration::from_millis(after), world.runtime.create(&spec)).await;
        // Whether it has a record yet or not: once it is removed, nothing of it goes on.
        world.runtime.destroy(&spec.id).await.unwrap();
        assert!(world.host.record(&spec.id).await.unwrap().is_none(), "after {after} ms");
        assert!(!world.host.cgroup(&spec.id).exists(), "after {after} ms");
    }
    assert!(world.runtime.inventory().await.unwrap().is_empty());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_while_it_is_made_says_so_and_can_be_made_again() {
    // An agent that never answers: only being called off ends its making within the test's patience.
    let world = World::new(Agent::Script("exec sleep 1000")).await;
    let spec = world.spec();
    let (made, ()) = tokio::join!(world.runtime.create(&spec), async {
        assert!(matches!(world.runtime.create(&spec).await, Err(RuntimeError::Exists { .. })));
        world.runtime.destroy(&spec.id).await.unwrap();
        assert!(world.host.record(&spec.id).await.unwrap().is_none());
    });
    assert!(matches!(made, Err(RuntimeError::Ended { reason: EndReason::Killed, .. })), "{made:?}");
    let made = tokio::time::timeout(Duration::from_secs(1), world.runtime.create(&spec)).await;
    assert!(made.is_err(), "it is being made again: {made:?}");
    world.runtime.destroy(&spec.id).await.unwrap();
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_long_an_answer_takes() {
    let world = World::new(Agent::Real).await;
    let mut times = Vec::new();
    for _ in 0..30 {
        let spec = world.spec();
        let start = Instant::now();
        world.runtime.create(&spec).await.unwrap();
        times.push(start.elapsed());
        world.runtime.destroy(&spec.id).await.unwrap();
    }
    times.sort_unstable();
    println!("create until the agent answered: median {:?}, least {:?}", times[times.len() / 2], times[0]);
    world.close().await;
}

/// Descriptors of this process, by what they are, without those that come and go with every test beside this one.
fn descriptors(kind: &str) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|target| target.to_string_lossy().starts_with(kind)).count()
}

/// Children of this process that nobody has waited for.
fn zombies() -> usize {
    let children =
        std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let is_zombie = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    children.iter().filter(|pid| is_zombie(pid)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_keeps_nothing_of_those_that_are_gone() {
    let world = World::new(Agent::Real).await;
    let once = async || {
        let spec = world.spec();
        world.runtime.create(&spec).await.unwrap();
        world.runtime.destroy(&spec.id).await.unwrap();
    };
    // The first ones fill caches that stay, one entry per slot.
    for _ in 0..8 {
        once().await;
    }
    let kinds = ["anon_inode:[pidfd]", "pipe:", "anon_inode:[landlock", "/dev/pts", "anon_inode:[fscontext]"];
    let before = kinds.map(descriptors);
    for _ in 0..40 {
        once().await;
    }
    let after = kinds.map(descriptors);
    // Tests beside this one hold a few at any moment; a leak of one each would be forty.
    for ((kind, before), after) in kinds.iter().zip(before).zip(after) {
        assert!(after < before + 20, "{kind}: {before} before, {after} after");
    }
    assert!(zombies() < 20);
    world.close().await;
}
