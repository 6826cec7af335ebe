//! From creation to destruction, and what goes wrong in between.

use std::fs;
use std::time::Duration;

use belljar_ports::{Presence, Runtime, RuntimeError, SnapshotKind};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{EndReason, ExecutionId, PauseKind, ProcessSpec, PtySize, SandboxId, SandboxSpec, SnapshotId, chain};

use crate::machine::{Machine, base_layer, run, shell};

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_runs_commands_and_leaves_nothing() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.env.insert("COLOUR".into(), "green".into());
    let execution = machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!((execution.sandbox, execution.id), (spec.id.clone(), spec.execution.clone()));

    let guest = machine.runtime.guest(&spec.id).await.unwrap();
    let done = shell(&*guest, "id -u; echo $COLOUR; cat /proc/version; echo oops >&2; exit 7").await;
    assert_eq!(done.code(), Some(7), "{done:?}");
    assert!(done.stdout.starts_with("1000\ngreen\nLinux version 4.4.0"), "not gVisor's kernel: {done:?}");
    assert_eq!(done.stderr, "oops\n");
    assert_eq!(shell(&*guest, "cat /etc/hostname").await.stdout.trim(), spec.id.as_str());
    assert!(shell(&*guest, "cat /.belljar/boot").await.code() != Some(0), "the token stayed readable");

    let used = machine.runtime.usage(&spec.id).await.unwrap();
    assert!(used.memory_bytes > 0 && used.cpu_micros > 0 && used.pids > 0, "{used:?}");
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.runtime.destroy(&spec.id).await.unwrap();
    assert_eq!(machine.traces(&spec.id), Vec::<String>::new());
    assert!(matches!(machine.runtime.guest(&spec.id).await.err(), Some(RuntimeError::NotFound { .. })));
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sudo_works_without_the_set_user_id_bit() {
    let machine = Machine::with_slots(1).await;
    let id = machine.create().await;
    let guest = machine.runtime.guest(&id).await.unwrap();
    let done = shell(&*guest, "sudo id -u && sudo sh -c 'touch /root/mine && ls -ln /root/mine' && sudo sh -c 'exit 5'").await;
    assert_eq!(done.code(), Some(5), "{done:?}");
    assert!(done.stdout.starts_with("0\n-rw"), "{done:?}");
    machine.runtime.destroy(&id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_has_a_size_and_job_control() {
    let machine = Machine::with_slots(1).await;
    let id = machine.create().await;
    let guest = machine.runtime.guest(&id).await.unwrap();
    let mut spec = ProcessSpec::new(["bash", "-ic", "stty size; set -m; sleep 100 & kill %1; wait %1; echo jobs $?"]);
    spec.pty = Some(PtySize { columns: 93, rows: 31 });
    let done = run(&*guest, &spec).await;
    assert!(done.stdout.contains("31 93") && done.stdout.contains("jobs 143"), "{done:?}");
    machine.runtime.destroy(&id).await.unwrap();
    machine.close().await;
}

/// Peculiarity (c): runsc takes the address off the slot's interface, and the only slot is used again.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_is_addressed_again_for_the_next_sandbox() {
    let machine = Machine::with_slots(1).await;
    let mut addresses = Vec::new();
    for _ in 0..3 {
        let id = machine.create().await;
        addresses.push(machine.host.record(&id).await.unwrap().unwrap().guest_address);
        let guest = machine.runtime.guest(&id).await.unwrap();
        assert_eq!(guest.hello().await.unwrap().sandbox, id);
        machine.runtime.destroy(&id).await.unwrap();
        machine.host.settle().await;
    }
    assert_eq!(addresses[0], addresses[2], "the slot was not used again, so this showed nothing");
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_stops_everything_and_a_resume_goes_on() {
    let machine = Machine::with_slots(1).await;
    let id = machine.create().await;
    let guest = machine.runtime.guest(&id).await.unwrap();
    guest.start(&ProcessSpec::new(["sh", "-c", "while :; do echo x >> /tmp/ticks; sleep 0.05; done"])).await.unwrap();
    machine.runtime.pause(&id, PauseKind::Memory).await.unwrap();
    let ticks = || fs::read(machine.data.join("pool/sandboxes").join(id.as_str()).join("upper/tmp/ticks")).unwrap_or_default().len();
    let before = ticks();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(ticks(), before, "something ran on");
    let found = machine.runtime.inventory().await.unwrap();
    assert!(matches!(found[0].presence, Presence::Paused { memory: true }), "{found:?}");

    let run = ExecutionId::random();
    let resumed = machine.runtime.resume(&id, &run).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(resumed.id, run);
    let guest = machine.runtime.guest(&id).await.unwrap();
    assert_eq!(shell(&*guest, "echo back").await.stdout, "back\n");
    let now =
        shell(&*guest, "n=$(cat /tmp/ticks | head -c 1000000); sleep 0.5; m=$(cat /tmp/ticks | head -c 1000000); [ ${#m} -gt ${#n} ]")
            .await;
    assert_eq!(now.code(), Some(0), "the loop did not go on: {now:?}");
    machine.runtime.destroy(&id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_told_with_its_reason() {
    let machine = Machine::with_slots(2).await;
    let (asked, by_itself) = (machine.create().await, machine.create().await);
    let ended = machine.runtime.ended(&asked);
    let (reason, destroyed) = tokio::join!(ended, async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        machine.runtime.destroy(&asked).await
    });
    destroyed.unwrap();
    assert_eq!(reason.unwrap(), EndReason::Killed);

    machine.host.cgroup(&by_itself).kill().unwrap();
    assert_eq!(machine.runtime.ended(&by_itself).await.unwrap(), EndReason::Exited);
    let found = machine.runtime.inventory().await.unwrap();
    assert_eq!(found.iter().map(|f| f.presence.clone()).collect::<Vec<_>>(), [Presence::Ended(EndReason::Exited)]);
    assert!(matches!(machine.runtime.adopt(&by_itself).await, Err(RuntimeError::Ended { reason: EndReason::Exited, .. })));
    machine.runtime.destroy(&by_itself).await.unwrap();
    assert!(matches!(machine.runtime.ended(&by_itself).await, Err(RuntimeError::NotFound { .. })));
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_says_why_and_leaves_nothing() {
    let machine = Machine::with_slots(1).await;
    let spec = SandboxSpec::on(vec![base_layer()]);

    let absent = GvisorConfig { runsc: Some("/nowhere/runsc".into()), ..GvisorConfig::default() };
    let error = GvisorRuntime::new(machine.host.clone(), absent).create(&spec).await.unwrap_err();
    assert!(matches!(&error, RuntimeError::Unavailable { reason, .. } if reason.contains("scripts/install-runsc")), "{error}");

    fs::rename(machine.agent_directory().join("guest"), machine.agent_directory().join("away")).unwrap();
    let error = machine.runtime.create(&spec).await.unwrap_err();
    let said = chain(&error);
    assert!(said.contains("/.belljar/guest") && said.contains("no such file"), "runsc's own words are missing: {said}");
    assert_eq!(machine.traces(&spec.id), Vec::<String>::new());
    fs::rename(machine.agent_directory().join("away"), machine.agent_directory().join("guest")).unwrap();

    let unknown = SandboxSpec::on(vec!["c".repeat(64).parse().unwrap()]);
    let error = machine.runtime.create(&unknown).await.unwrap_err();
    assert!(chain(&error).contains(&"c".repeat(64)), "{}", chain(&error));
    assert_eq!(machine.traces(&unknown.id), Vec::<String>::new());

    let mut bad = SandboxSpec::on(vec![base_layer()]);
    bad.limits.memory_bytes = 1;
    assert!(matches!(machine.runtime.create(&bad).await, Err(RuntimeError::Invalid(_))));

    // The same id can be used after all that.
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert!(matches!(machine.runtime.create(&spec).await, Err(RuntimeError::Exists { .. })));
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said() {
    let machine = Machine::with_slots(1).await;
    let nobody = SandboxId::random();
    let runtime = &machine.runtime;
    for kind in [SnapshotKind::Filesystem, SnapshotKind::Memory] {
        let refused = runtime.snapshot(&nobody, &SnapshotId::random(), kind).await;
        assert!(matches!(refused, Err(RuntimeError::NotFound { .. })));
        assert!(matches!(runtime.pause(&nobody, kind.into()).await, Err(RuntimeError::NotFound { .. })));
    }
    let (no_snapshot, run) = (SnapshotId::random(), ExecutionId::random());
    let forked = runtime.fork(&no_snapshot, &SandboxSpec::on(vec![base_layer()])).await;
    assert!(matches!(forked, Err(RuntimeError::NoSnapshot { .. })));
    assert!(matches!(runtime.resume(&nobody, &run).await, Err(RuntimeError::NotFound { .. })));
    assert!(matches!(runtime.rollback(&nobody, &no_snapshot, &run).await, Err(RuntimeError::NotFound { .. })));
    assert!(runtime.remove_snapshot(&no_snapshot).await.is_ok());
    assert!(matches!(runtime.adopt(&nobody).await, Err(RuntimeError::NotFound { .. })));
    assert!(matches!(runtime.usage(&nobody).await, Err(RuntimeError::NotFound { .. })));
    assert!(runtime.destroy(&nobody).await.is_ok());
    assert!(runtime.inventory().await.unwrap().is_empty());
    machine.close().await;
}
