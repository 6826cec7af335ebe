//! Limits hold against whoever tries, and running into one is told for what it is.

use belljar_ports::{Presence, Runtime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};
use belljar_types::{
    EndReason, ExitStatus, KillCause, Limits, OutputEvent, Overflow, ProcessSpec, SandboxSpec, Signal, SpoolPolicy, Termination, chain,
};
use futures_util::StreamExt;

use crate::machine::{Machine, base_layer, run, shell};

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_sees_its_own_memory_and_survives_running_out_of_it() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits.memory_bytes = 192 << 20;
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let guest = machine.runtime.guest(&spec.id).await.unwrap();
    assert!(shell(&*guest, "cat /proc/meminfo").await.stdout.contains("196608 kB"));

    let greedy = ProcessSpec::new(["bash", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"]);
    let done = run(&*guest, &greedy).await;
    assert_eq!(done.status, ExitStatus { termination: Termination::Signaled(9), cause: Some(KillCause::OutOfMemory) }, "{done:?}");
    let used = machine.runtime.usage(&spec.id).await.unwrap();
    assert!(used.oom_kills > 0, "{used:?}");
    assert!(used.memory_peak_bytes <= 193 << 20, "{used:?}");
    let failed = shell(&*guest, "echo alive; exit 1").await;
    assert_eq!((failed.stdout.as_str(), failed.status.cause), ("alive\n", None), "an ordinary failure was put down to memory");

    // Whoever takes over later does not put the sandbox's own end down to what had been explained before.
    let later = GvisorRuntime::new(machine.host.clone(), GvisorConfig::default());
    later.adopt(&spec.id).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    machine.host.cgroup(&spec.id).kill().unwrap();
    assert_eq!(later.ended(&spec.id).await.unwrap(), EndReason::Exited);
    assert!(later.inventory().await.unwrap().iter().all(|found| found.presence == Presence::Ended(EndReason::Exited)));
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_time_is_up_is_ended() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits.wall_time = Some(std::time::Duration::from_secs(3));
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(machine.runtime.ended(&spec.id).await.unwrap(), EndReason::Killed);
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_meets_the_limit_as_user_and_as_root() {
    let machine = Machine::with_slots(1).await;
    for user in ["user", "root"] {
        let mut spec = SandboxSpec::on(vec![base_layer()]);
        spec.limits = Limits { pids: 40, ..Limits::default() };
        machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
        let guest = machine.runtime.guest(&spec.id).await.unwrap();
        // The shell gives up at the first fork that fails.
        let mut bomb = ProcessSpec::new(["sh", "-c", "for i in $(seq 100); do sleep 60 & done"]);
        bomb.user = Some(user.parse().unwrap());
        let (process, mut output) = guest.start_attached(&bomb).await.unwrap();
        let mut said = Vec::new();
        while let Some(Ok(event)) = output.next().await {
            match event {
                OutputEvent::Data { bytes, .. } => said.extend_from_slice(&bytes),
                other => panic!("{user}: {other:?} before the limit, said {:?}", String::from_utf8_lossy(&said)),
            }
            if String::from_utf8_lossy(&said).contains("Cannot fork") {
                break;
            }
        }
        assert!(String::from_utf8_lossy(&said).contains("Cannot fork"), "{user}");
        guest.signal(&process.id, Signal::KILL).await.unwrap();
        machine.runtime.destroy(&spec.id).await.unwrap();
        machine.host.settle().await;
    }
    machine.close().await;
}

/// A user namespace lifts the sentry's own limit in versions before 2025; what then holds is the control group's, and it ends the sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_gets_around_the_sentry_meets_the_host() {
    let machine = Machine::with_slots(1).await;
    let mut spec = SandboxSpec::on(vec![base_layer()]);
    spec.limits.pids = 16;
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    let limit =
        machine.host.cgroup(&spec.id).procs_paths().into_iter().map(|path| path.with_file_name("pids.max")).find(|path| path.exists());
    assert_eq!(std::fs::read_to_string(limit.unwrap()).unwrap().trim(), "288");

    let guest = machine.runtime.guest(&spec.id).await.unwrap();
    let bomb = ProcessSpec::new(["unshare", "-Ur", "sh", "-c", "for i in $(seq 400); do sleep 600 & done; echo $i; wait"]);
    let (_, mut output) = guest.start_attached(&bomb).await.unwrap();
    let bombing = async {
        while let Some(event) = output.next().await {
            match event {
                Ok(OutputEvent::Data { bytes, .. }) if bytes.starts_with(b"400") => panic!("400 processes with a limit of 16"),
                Ok(OutputEvent::Exit(status)) => return Some(status),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        None
    };
    tokio::select! {
        refused = bombing => println!("the bomb ended with {refused:?}"),
        ended = machine.runtime.ended(&spec.id) => println!("the sandbox ended with {ended:?}"),
    }
    assert!(machine.runtime.usage(&spec.id).await.unwrap().pids <= 288);
    machine.runtime.destroy(&spec.id).await.unwrap();
    assert_eq!(machine.traces(&spec.id), Vec::<String>::new());
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
