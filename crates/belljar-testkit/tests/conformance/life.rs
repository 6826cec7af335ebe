//! From creation to the end: what outlives what, and what is left.

use std::time::Duration;

use belljar_ports::{MemoryState, Presence, RuntimeError, SnapshotKind};
use belljar_testkit::{Lab, path, run, sh};
use belljar_types::{EndReason, Execution, ExecutionId, IsolationClass, OutputEvent, Overflow, PauseKind, ProcessSpec, SnapshotId};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::processes::until;

pub(crate) async fn destroying_leaves_nothing(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let id = sandbox.execution.sandbox.clone();
    sandbox
        .guest
        .start(&ProcessSpec::new(["/bin/bash", "-c", "setsid sleep 1000 & trap '' TERM; while :; do sleep 1; done"]))
        .await
        .unwrap();
    sandbox.runtime.destroy(&id).await.unwrap();
    sandbox.runtime.destroy(&id).await.expect("a second time is no error");
    let unknown = lab.spec().id;
    sandbox.runtime.destroy(&unknown).await.expect("nor is one that never was");
    assert!(matches!(sandbox.runtime.guest(&id).await, Err(RuntimeError::NotFound { .. })));
    assert!(sandbox.runtime.inventory().await.unwrap().iter().all(|found| found.id != id));
    let script = format!(
        "grep -l {id} /proc/*/mountinfo 2>/dev/null; for p in /proc/[0-9]*; do grep -q {id} $p/cgroup 2>/dev/null && ! grep -q '^State:.Z' $p/status && echo $p; done; find /sys/fs/cgroup {} -name '*{id}*' 2>/dev/null",
        lab.data_dir.display()
    );
    let traces = || String::from_utf8(std::process::Command::new("sh").args(["-c", &script]).output().unwrap().stdout).unwrap();
    // A killed process is in nobody's way, but on a busy machine the kernel takes a while to bury it.
    for _ in 0..100 {
        if traces().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(traces(), "", "nothing on the machine carries its name");
}

pub(crate) async fn a_sandbox_outlives_its_maker(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let id = sandbox.execution.sandbox.clone();
    let mut spec = ProcessSpec::new(["/bin/sh", "-c", "i=0; while :; do echo $i; i=$((i+1)); read line; done"]);
    spec.stdin = true;
    spec.spool.overflow = Overflow::Slow;
    sandbox.guest.start(&spec).await.unwrap();
    sandbox.guest.write_stdin(&spec.id, 0, Bytes::from_static(b"\n\n")).await.unwrap();
    until(|| async { sandbox.guest.processes().await.unwrap()[0].written.stdout >= 6 }).await;
    // Another engine object, as after a restart, that has made nothing itself.
    let successor = lab.second_runtime(class);
    let found = successor.inventory().await.unwrap();
    assert!(found.iter().any(|found| found.id == id && matches!(found.presence, Presence::Running(_))), "{found:?}");
    let adopted: Execution = successor.adopt(&id).await.unwrap();
    assert_eq!(adopted, sandbox.execution);
    let guest = successor.guest(&id).await.unwrap();
    guest.write_stdin(&spec.id, 2, Bytes::from_static(b"\n")).await.unwrap();
    let mut output = guest.attach(&spec.id, belljar_types::Offsets { stdout: 2, stderr: 0 }).await.unwrap();
    let mut text = Vec::new();
    while text.len() < 6 {
        match output.next().await.unwrap().unwrap() {
            OutputEvent::Data { bytes, .. } => text.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, b"1\n2\n3\n");
    sandbox.destroy().await;
}

pub(crate) async fn pausing_stops_and_resuming_goes_on(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let id = &sandbox.execution.sandbox;
    let Some(memory) = sandbox.runtime.capabilities().pause else {
        assert!(matches!(sandbox.runtime.pause(id, PauseKind::Memory).await, Err(RuntimeError::Unsupported { .. })));
        return sandbox.destroy().await;
    };
    let ticker = "import time\nn = 0\nwhile True:\n    n += 1\n    open('/home/user/n', 'w').write(str(n))\n    time.sleep(0.01)";
    sandbox.guest.start(&ProcessSpec::new(["/usr/bin/python3", "-c", ticker])).await.unwrap();
    until(|| async { sh(&*sandbox.guest, "cat n 2>/dev/null || true").await.text().parse::<u64>().unwrap_or(0) > 10 }).await;
    sandbox.runtime.pause(id, PauseKind::Memory).await.unwrap();
    let used = sandbox.runtime.usage(id).await.unwrap().cpu_micros;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(sandbox.runtime.usage(id).await.unwrap().cpu_micros, used, "a paused sandbox uses no CPU at all");
    let found = sandbox.runtime.inventory().await.unwrap();
    let presence = &found.iter().find(|found| &found.id == id).unwrap().presence;
    match memory {
        MemoryState::OnDisk => assert_eq!(presence, &Presence::Paused { memory: true }),
        MemoryState::Resident | MemoryState::Lost => assert_eq!(presence, &Presence::Frozen(sandbox.execution.clone())),
    }
    let resumed = sandbox.runtime.resume(id, &ExecutionId::random()).await.unwrap();
    assert_eq!(resumed == sandbox.execution, memory == MemoryState::Resident, "what never left is the same run");
    let guest = sandbox.runtime.guest(id).await.unwrap();
    let before: u64 = sh(&*guest, "cat n").await.text().parse().unwrap_or(0);
    until(|| async { sh(&*guest, "cat n").await.text().parse::<u64>().unwrap_or(0) > before + 5 }).await;
    // A paused sandbox can be destroyed as well.
    sandbox.runtime.pause(id, PauseKind::Memory).await.unwrap();
    sandbox.destroy().await;
}

pub(crate) async fn usage_is_counted(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let id = &sandbox.execution.sandbox;
    let before = sandbox.runtime.usage(id).await.unwrap();
    sh(&*sandbox.guest, "python3 -c 'sum(range(10_000_000))'; head -c 20000000 /dev/urandom > f; sync").await;
    let after = sandbox.runtime.usage(id).await.unwrap();
    assert!(after.cpu_micros > before.cpu_micros + 50_000, "{before:?} {after:?}");
    assert!(after.memory_bytes > 0 && after.memory_peak_bytes >= after.memory_bytes / 2 && after.pids > 0, "{after:?}");
    // The quota counts what the filesystem has committed, which it does by itself only every half minute or so.
    std::process::Command::new("sync").arg("-f").arg(lab.data_dir.join("pool")).status().unwrap();
    until(|| async { sandbox.runtime.usage(id).await.unwrap().disk_bytes >= 20_000_000 }).await;
    sandbox.destroy().await;
}

pub(crate) async fn ports_are_listed_and_reached(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let server = "import http.server; http.server.HTTPServer(('127.0.0.1', 8123), http.server.SimpleHTTPRequestHandler).serve_forever()";
    sh(&*sandbox.guest, "echo from inside > page").await;
    sandbox.guest.start(&ProcessSpec::new(["/usr/bin/python3", "-c", server])).await.unwrap();
    until(|| async { sandbox.guest.ports().await.unwrap().iter().any(|port| port.port == 8123 && port.address.is_loopback()) }).await;
    let mut connection = sandbox.guest.connect(8123).await.unwrap();
    connection.write(Bytes::from_static(b"GET /page HTTP/1.0\r\n\r\n")).await.unwrap();
    let mut answer = Vec::new();
    while let Some(piece) = connection.read().await.unwrap() {
        answer.extend_from_slice(&piece);
    }
    assert!(String::from_utf8_lossy(&answer).ends_with("from inside\n"), "{}", String::from_utf8_lossy(&answer));
    assert!(sandbox.guest.connect(8124).await.is_err(), "nothing listens there");
    sandbox.destroy().await;
}

pub(crate) async fn metrics_make_sense(class: IsolationClass) {
    let sandbox = Lab::get().await.sandbox(class).await;
    let metrics = sandbox.guest.metrics().await.unwrap();
    assert!(metrics.cpus >= 1 && metrics.processes >= 1, "{metrics:?}");
    assert!(metrics.memory_total_bytes >= metrics.memory_used_bytes && metrics.memory_used_bytes > 0, "{metrics:?}");
    assert!(metrics.disk_total_bytes >= metrics.disk_used_bytes, "{metrics:?}");
    let info = sandbox.guest.hello().await.unwrap();
    assert_eq!((&info.sandbox, &info.execution), (&sandbox.execution.sandbox, &sandbox.execution.id));
    sandbox.destroy().await;
}

pub(crate) async fn what_it_cannot_do_it_says_before(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let able = sandbox.runtime.capabilities();
    let id = &sandbox.execution.sandbox;
    for (kind, supported) in [(SnapshotKind::Filesystem, able.snapshot_filesystem), (SnapshotKind::Memory, able.snapshot_memory)] {
        if !supported {
            let refused = sandbox.runtime.snapshot(id, &SnapshotId::random(), kind).await;
            assert!(matches!(refused, Err(RuntimeError::Unsupported { .. })), "{refused:?}");
        }
    }
    if !able.fork {
        let refused = sandbox.runtime.fork(&SnapshotId::random(), &lab.spec()).await;
        assert!(matches!(refused, Err(RuntimeError::Unsupported { .. })), "{refused:?}");
    }
    assert_eq!(run(&*sandbox.guest, &["echo", "alive"]).await.text(), "alive", "and nothing was changed");
    assert!(sandbox.runtime.probe().await.works());
    sandbox.destroy().await;
}

pub(crate) async fn a_sandbox_that_ends_says_why(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let id = sandbox.execution.sandbox.clone();
    let waiting = tokio::spawn({
        let (runtime, id) = (sandbox.runtime.clone(), id.clone());
        async move { runtime.ended(&id).await }
    });
    assert!(sandbox.guest.stat(&path("/"), None).await.is_ok());
    // From outside, as if the machine's operator had killed it.
    for pid in lab.host_pids(&id) {
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    }
    assert_eq!(waiting.await.unwrap().unwrap(), EndReason::Exited);
    assert!(
        sandbox
            .runtime
            .inventory()
            .await
            .unwrap()
            .iter()
            .any(|found| found.id == id && matches!(found.presence, Presence::Ended(EndReason::Exited)))
    );
    sandbox.destroy().await;
}
