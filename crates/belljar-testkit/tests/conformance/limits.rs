//! Limits that really stop: memory, processes, disk, CPU.

use std::time::Instant;

use belljar_ports::OomScope;
use belljar_testkit::{Finished, Lab, run, run_spec, sh};
use belljar_types::{EndReason, IsolationClass, KillCause, ProcessSpec, Termination};

pub(crate) async fn memory_beyond_the_limit_is_an_out_of_memory_kill(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.limits.memory_bytes = 192 << 20;
    let sandbox = lab.create(class, &spec).await.unwrap();
    let modest = sh(&*sandbox.guest, "python3 -c 'print(len(bytearray(20 << 20)))'").await;
    assert_eq!(modest.text(), "20971520");
    let hungry = ProcessSpec::new(["/usr/bin/python3", "-c", "b = []\nwhile True: b.append(bytearray(b'x' * (8 << 20)))"]);
    let (_, stream) = sandbox.guest.start_attached(&hungry).await.unwrap();
    match sandbox.runtime.capabilities().oom {
        OomScope::Process => {
            let finished = Finished::read(stream).await.unwrap();
            assert_eq!(finished.exit.termination, Termination::Signaled(9), "{finished}");
            assert_eq!(finished.exit.cause, Some(KillCause::OutOfMemory), "{finished}");
            assert_eq!(run(&*sandbox.guest, &["echo", "alive"]).await.text(), "alive");
            assert!(sandbox.runtime.usage(&spec.id).await.unwrap().oom_kills >= 1);
        }
        OomScope::Sandbox => {
            assert!(Finished::read(stream).await.is_err(), "the connection ends with the sandbox");
            assert_eq!(sandbox.runtime.ended(&spec.id).await.unwrap(), EndReason::OutOfMemory);
        }
    }
    sandbox.destroy().await;
}

pub(crate) async fn a_fork_bomb_meets_the_pids_limit(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.limits.pids = 64;
    let sandbox = lab.create(class, &spec).await.unwrap();
    let bomb = "
import os, time
n = 0
try:
    while n < 5000:
        if os.fork() == 0:
            time.sleep(1000)
        n += 1
except OSError as e:
    print('stopped', n, e.errno)
";
    let mut process = ProcessSpec::new(["/usr/bin/python3", "-c", bomb]);
    process.deadline = Some(std::time::Duration::from_secs(120));
    let (_, stream) = sandbox.guest.start_attached(&process).await.unwrap();
    let finished = Finished::read(stream).await.unwrap();
    let text = String::from_utf8_lossy(&finished.stdout).into_owned();
    let count: u32 = text
        .strip_prefix("stopped ")
        .and_then(|rest| rest.split(' ').next())
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("{finished}"));
    assert!(count < 64, "{count} children although 64 were allowed in all");
    sandbox.guest.signal(&process.id, belljar_types::Signal::KILL).await.ok();
    sandbox.destroy().await;

    // Another sandbox is not touched by a bomb that never stops trying.
    let (bombed, other) = (
        lab.create(class, &{
            let mut s = lab.spec();
            s.limits.pids = 64;
            s
        })
        .await
        .unwrap(),
        lab.sandbox(class).await,
    );
    bombed.guest.start(&ProcessSpec::new(["/bin/bash", "-c", ":(){ :|:& };:; sleep 5"])).await.unwrap();
    assert_eq!(run(&*other.guest, &["echo", "alive"]).await.text(), "alive");
    bombed.destroy().await;
    other.destroy().await;
}

pub(crate) async fn a_writer_meets_the_disk_limit(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.limits.disk_bytes = 64 << 20;
    let sandbox = lab.create(class, &spec).await.unwrap();
    for who in ["", "sudo "] {
        let finished =
            sh(&*sandbox.guest, &format!("{who}dd if=/dev/zero of=/home/user/big bs=1M count=300 conv=fsync; stat -c %s big")).await;
        let said = String::from_utf8_lossy(&finished.stderr).into_owned();
        assert!(said.contains("quota exceeded") || said.contains("No space left"), "{finished}");
        assert!(sandbox.runtime.usage(&spec.id).await.unwrap().disk_bytes <= 64 << 20);
        sh(&*sandbox.guest, "sudo rm -f /home/user/big; sync").await;
    }
    // Empty files cost metadata, and that is limited too.
    let many = "
import os
n = 0
try:
    while n < 2_000_000:
        open('/home/user/f%d' % n + 'x' * 200, 'w').close()
        n += 1
except OSError as e:
    print('stopped')
";
    assert_eq!(run(&*sandbox.guest, &["python3", "-c", many]).await.text(), "stopped");
    sandbox.destroy().await;
}

pub(crate) async fn the_cpu_quota_is_kept(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.limits.cpu_millis = 400;
    let sandbox = lab.create(class, &spec).await.unwrap();
    let before = sandbox.runtime.usage(&spec.id).await.unwrap().cpu_micros;
    let start = Instant::now();
    let mut burn = ProcessSpec::new(["/bin/bash", "-c", "for i in 1 2 3; do (while :; do :; done) & done; sleep 6; kill $(jobs -p)"]);
    burn.deadline = Some(std::time::Duration::from_secs(60));
    run_spec(&*sandbox.guest, burn).await.unwrap();
    let elapsed = start.elapsed().as_micros() as f64;
    let used = (sandbox.runtime.usage(&spec.id).await.unwrap().cpu_micros - before) as f64;
    let share = used / elapsed;
    // The upper bound is the promise; the lower one shows that the quota, and not an idle program, was measured. A busy machine may
    // give less than the quota, never more.
    assert!(share <= 0.4 * 1.2, "used {share:.3} of a core with a quota of 0.4");
    assert!(share >= 0.4 * 0.5, "used only {share:.3} of a core with a quota of 0.4");
    println!("{class}: {share:.3} of a core with a quota of 0.400");
    sandbox.destroy().await;
}
