//! Limits hold against whoever tries, and running into one is told for what it is.

use belljar_ports::Runtime;
use belljar_types::{ExitStatus, Limits, OutputEvent, Overflow, ProcessSpec, SandboxSpec, SpoolPolicy, Termination};
use futures_util::StreamExt;

use crate::machine::{Machine, base_layer, chain, run, shell};

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_sees_its_own_memory_and_survives_running_out_of_it() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits.memory_bytes = 192 << 20;
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let guest = machine.runtime.guest(&spec.id).await.unwrap();
    assert!(shell(&*guest, "cat /proc/meminfo").await.stdout.contains("196608 kB"));

    let greedy = shell(&*guest, "head -c 600000000 /dev/zero | (x=$(head -c 600000000 | cat -v); echo ${#x})").await;
    assert_ne!(greedy.stdout.trim(), "1200000000", "{greedy:?}");
    let used = machine.runtime.usage(&spec.id).await.unwrap();
    assert!(used.oom_kills > 0, "{used:?} {greedy:?}");
    assert!(used.memory_peak_bytes <= 192 << 20, "{used:?}");
    assert_eq!(shell(&*guest, "echo alive").await.stdout, "alive\n");
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_meets_the_limit_as_user_and_as_root() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits = Limits { pids: 40, ..Limits::default() };
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let guest = machine.runtime.guest(&spec.id).await.unwrap();
    for bomb in ["for i in $(seq 100); do sleep 1 & done; wait", "sudo bash -c 'for i in $(seq 100); do sleep 1 & done; wait'"] {
        let mut process = ProcessSpec::new(["bash", "-c", bomb]);
        process.deadline = Some(std::time::Duration::from_secs(30));
        let done = run(&*guest, &process).await;
        assert!(done.stderr.contains("fork") || done.code() != Some(0), "{done:?}");
    }
    assert_eq!(shell(&*guest, "echo alive").await.stdout, "alive\n");
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

/// A user namespace lifts the sentry's own limit in this version; what then holds is the control group's.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_gets_around_the_sentry_meets_the_host() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits.pids = 16;
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let path =
        machine.host.cgroup(&spec.id).procs_paths().into_iter().map(|path| path.with_file_name("pids.max")).find(|path| path.exists());
    assert_eq!(std::fs::read_to_string(path.unwrap()).unwrap().trim(), "288");
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_limit_stops_a_writer_and_counts_what_is_there() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits.disk_bytes = 32 << 20;
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let guest = machine.runtime.guest(&spec.id).await.unwrap();
    let done = shell(&*guest, "dd if=/dev/zero of=/tmp/big bs=1M count=64").await;
    assert_ne!(done.code(), Some(0), "{done:?}");
    assert!(machine.runtime.usage(&spec.id).await.unwrap().disk_bytes <= 33 << 20);
    assert_eq!(shell(&*guest, "echo alive").await.stdout, "alive\n");
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_output_arrives_whole() {
    const BYTES: u64 = 100_000_000;
    let machine = Machine::with_slots(1).await;
    let id = machine.create().await;
    let guest = machine.runtime.guest(&id).await.unwrap();
    let mut spec = ProcessSpec::new(["head", "-c", "100000000", "/dev/zero"]);
    spec.spool = SpoolPolicy { overflow: Overflow::Slow, ..SpoolPolicy::default() };
    let (_, mut output) = guest.start_attached(&spec).await.unwrap();
    let (mut arrived, mut status) = (0, None);
    while let Some(event) = output.next().await {
        match event.unwrap_or_else(|error| panic!("{}", chain(&error))) {
            OutputEvent::Data { offset, bytes, .. } => {
                assert_eq!(offset, arrived);
                arrived += bytes.len() as u64;
            }
            OutputEvent::Gap { from, to, .. } => panic!("lost bytes {from} to {to}"),
            OutputEvent::Exit(exit) => status = Some(exit),
        }
    }
    assert_eq!((arrived, status), (BYTES, Some(ExitStatus { termination: Termination::Exited(0), cause: None })));
    machine.runtime.destroy(&id).await.unwrap();
    machine.close().await;
}
