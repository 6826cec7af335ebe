//! Files that last: snapshots, forks, roll-backs and pauses that keep the disk. Every class can do these.

use belljar_ports::{Presence, RuntimeError, SnapshotKind};
use belljar_testkit::{Lab, Sandbox, scaled, sh};
use belljar_types::{ExecutionId, IsolationClass, PauseKind, ProcessSpec, SandboxSpec, SnapshotId};

use crate::processes::until;

/// Takes a snapshot of files.
pub(crate) async fn snapshot(sandbox: &Sandbox, kind: SnapshotKind) -> SnapshotId {
    let id = SnapshotId::random();
    let taken = sandbox.runtime.snapshot(&sandbox.execution.sandbox, &id, kind).await.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!((&taken.id, taken.kind, &taken.source), (&id, kind, &sandbox.execution.sandbox));
    id
}

/// A sandbox made from a snapshot.
pub(crate) async fn fork(lab: &Lab, class: IsolationClass, from: &SnapshotId, spec: &SandboxSpec) -> Sandbox {
    let runtime = lab.runtime(class);
    let execution = runtime.fork(from, spec).await.unwrap_or_else(|error| panic!("fork {from}: {error:?}"));
    assert_eq!((&execution.sandbox, &execution.id), (&spec.id, &spec.execution));
    let guest = runtime.guest(&spec.id).await.unwrap();
    Sandbox { runtime, execution, guest }
}

pub(crate) async fn forks_have_the_files_and_go_their_own_way(class: IsolationClass) {
    let lab = Lab::get().await;
    let parent = lab.sandbox(class).await;
    let script = "echo old > kept; mkdir -p deep/er; echo x > deep/er/f; rm -f .profile; sudo rm -rf /srv; sudo sh -c 'echo mine > /etc/motd'; ln -sf /nowhere link; mv deep moved; sudo chown 0:0 kept; cat /etc/hostname";
    let name = sh(&*parent.guest, script).await.text();
    let ticker = parent
        .guest
        .start(&ProcessSpec::new(["/bin/bash", "-c", "i=0; while :; do i=$((i+1)); echo $i > tick; sleep 0.02; done"]))
        .await
        .unwrap();
    let from = snapshot(&parent, SnapshotKind::Filesystem).await;
    sh(&*parent.guest, "sudo sh -c 'echo new > kept'; touch later").await.text();
    let (one, other) = (fork(lab, class, &from, &lab.spec()).await, fork(lab, class, &from, &lab.spec()).await);
    for child in [&one, &other] {
        let seen =
            sh(&*child.guest, "cat kept moved/er/f /etc/motd; stat -c %u kept; readlink link; ls later .profile /srv 2>/dev/null; true")
                .await;
        assert_eq!(seen.text(), "old\nx\nmine\n0\n/nowhere");
        assert_eq!(sh(&*child.guest, "cat /etc/hostname").await.text(), child.execution.sandbox.as_str());
        assert_eq!(sh(&*child.guest, "sudo id -u; grep -c $(cat /etc/hostname) /etc/hosts").await.text(), "0\n1");
        assert!(child.guest.processes().await.unwrap().iter().all(|process| process.id != ticker.id), "it booted anew");
    }
    sh(&*one.guest, "sudo sh -c 'echo one > kept'").await.text();
    assert_eq!(sh(&*other.guest, "cat kept").await.text(), "old");
    assert_eq!(sh(&*parent.guest, "cat kept").await.text(), "new");
    // The parent's processes noticed nothing, and a fork of a fork works too, after everything before it is gone.
    let before: u64 = sh(&*parent.guest, "cat tick").await.text().parse().unwrap_or(0);
    until(|| async { sh(&*parent.guest, "cat tick").await.text().parse::<u64>().unwrap_or(0) > before }).await;
    assert_eq!(sh(&*parent.guest, "cat /etc/hostname").await.text(), name);
    let second = snapshot(&one, SnapshotKind::Filesystem).await;
    let runtime = lab.runtime(class);
    runtime.remove_snapshot(&from).await.unwrap();
    for sandbox in [parent, one] {
        sandbox.destroy().await;
    }
    let grandchild = fork(lab, class, &second, &lab.spec()).await;
    assert_eq!(sh(&*grandchild.guest, "cat kept moved/er/f").await.text(), "one\nx");
    runtime.remove_snapshot(&second).await.unwrap();
    runtime.remove_snapshot(&second).await.expect("a second time is no error");
    assert!(matches!(runtime.fork(&second, &lab.spec()).await, Err(RuntimeError::NoSnapshot { .. })));
    assert_eq!(sh(&*grandchild.guest, "cat kept").await.text(), "one", "it does not need the snapshot any more");
    grandchild.destroy().await;
    other.destroy().await;
}

pub(crate) async fn a_snapshot_in_the_middle_of_writing_is_consistent(class: IsolationClass) {
    let lab = Lab::get().await;
    let parent = lab.sandbox(class).await;
    let writer = "import sqlite3\nd = sqlite3.connect('/home/user/d')\nd.execute('create table t (n integer, s text)')\nn = 0\nwhile True:\n    for _ in range(20):\n        n += 1\n        d.execute('insert into t values (?, ?)', (n, 'x' * 500))\n    d.commit()";
    parent.guest.start(&ProcessSpec::new(["/usr/bin/python3", "-c", writer])).await.unwrap();
    let count = "import sqlite3; print(sqlite3.connect('/home/user/d').execute('select count(*) from t').fetchone()[0])";
    until(|| async { sh(&*parent.guest, &format!("python3 -c \"{count}\" || echo 0")).await.text().parse::<u64>().unwrap_or(0) > 100 })
        .await;
    let mut rows = 0;
    for _ in 0..scaled(2, 10) {
        let from = snapshot(&parent, SnapshotKind::Filesystem).await;
        let child = fork(lab, class, &from, &lab.spec()).await;
        let check = "import sqlite3; d = sqlite3.connect('/home/user/d'); print(d.execute('pragma integrity_check').fetchone()[0], *d.execute('select count(*) % 20, count(*), max(n) from t').fetchone())";
        let told = sh(&*child.guest, &format!("python3 -c \"{check}\"")).await.text();
        let words: Vec<&str> = told.split(' ').collect();
        assert!(matches!(words[..], ["ok", "0", all, last] if all == last), "{told}");
        let now = words[2].parse::<u64>().unwrap();
        assert!(now >= rows, "a later snapshot has less: {now} after {rows}");
        rows = now;
        child.destroy().await;
        parent.runtime.remove_snapshot(&from).await.unwrap();
    }
    parent.destroy().await;
}

/// Whatever the number of files, none is copied: what a fork has on its account is next to nothing.
pub(crate) async fn a_fork_of_many_files_copies_none(class: IsolationClass) {
    let lab = Lab::get().await;
    let parent = lab.sandbox(class).await;
    let files = scaled(4000, 20_000);
    let make = format!(
        "import os\nfor i in range({files}):\n    d = '/home/user/m/%d' % (i // 200)\n    os.makedirs(d, exist_ok=True)\n    open('%s/%d' % (d, i), 'w').write('x' * 5000)"
    );
    assert_eq!(sh(&*parent.guest, &format!("python3 -c \"{make}\" && find m -type f | wc -l")).await.text(), files.to_string());
    let from = snapshot(&parent, SnapshotKind::Filesystem).await;
    let child = fork(lab, class, &from, &lab.spec()).await;
    assert_eq!(sh(&*child.guest, "find m -type f | wc -l").await.text(), files.to_string());
    std::process::Command::new("sync").arg("-f").arg(lab.data_dir.join("pool")).status().unwrap();
    let written = child.runtime.usage(&child.execution.sandbox).await.unwrap().disk_bytes;
    assert!(written < 1 << 20, "{written} bytes of its own after a fork of {files} files");
    child.runtime.remove_snapshot(&from).await.unwrap();
    child.destroy().await;
    parent.destroy().await;
}

pub(crate) async fn a_fork_meets_its_own_disk_limit(class: IsolationClass) {
    let lab = Lab::get().await;
    let parent = lab.sandbox(class).await;
    sh(&*parent.guest, "head -c 30000000 /dev/urandom > before; sync").await.text();
    let from = snapshot(&parent, SnapshotKind::Filesystem).await;
    let mut spec = lab.spec();
    spec.limits.disk_bytes = 64 << 20;
    let child = fork(lab, class, &from, &spec).await;
    let filled = sh(&*child.guest, "head -c 200000000 /dev/zero > after; wc -c < before").await;
    assert_eq!(String::from_utf8_lossy(&filled.stdout).trim(), "30000000");
    let size: u64 = sh(&*child.guest, "stat -c %s after").await.text().parse().unwrap();
    assert!(size < 70_000_000, "{size} bytes were written beyond a limit of 64 MiB");
    assert_eq!(sh(&*parent.guest, "echo room > left && cat left").await.text(), "room");
    child.runtime.remove_snapshot(&from).await.unwrap();
    child.destroy().await;
    parent.destroy().await;
}

pub(crate) async fn rolling_back_brings_the_files_back(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.env.insert("COLOUR".into(), "green".into());
    let sandbox = lab.create(class, &spec).await.unwrap();
    let (id, runtime) = (sandbox.execution.sandbox.clone(), sandbox.runtime.clone());
    sh(&*sandbox.guest, "echo good > work").await.text();
    let good = snapshot(&sandbox, SnapshotKind::Filesystem).await;
    sh(&*sandbox.guest, "sudo rm -rf work /usr/bin/python3 /home/user/.bashrc; echo bad > work").await.text();
    let stranger = lab.sandbox(class).await;
    let theirs = snapshot(&stranger, SnapshotKind::Filesystem).await;
    let run = ExecutionId::random();
    assert!(matches!(runtime.rollback(&id, &theirs, &run).await, Err(RuntimeError::Invalid(_))), "another one's snapshot");
    assert_eq!(sh(&*sandbox.guest, "cat work").await.text(), "bad", "nothing was changed");
    let back = runtime.rollback(&id, &good, &run).await.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!((&back.sandbox, &back.id), (&id, &run));
    let guest = runtime.guest(&id).await.unwrap();
    assert_eq!(sh(&*guest, "cat work; python3 -c 'print(1)'; echo $COLOUR").await.text(), "good\n1\ngreen");
    assert!(sandbox.guest.hello().await.is_err(), "the run before it is gone");
    // A second time, from a paused sandbox.
    sh(&*guest, "echo worse > work").await.text();
    runtime.pause(&id, PauseKind::Filesystem).await.unwrap();
    runtime.rollback(&id, &good, &ExecutionId::random()).await.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(sh(&*runtime.guest(&id).await.unwrap(), "cat work").await.text(), "good");
    for snapshot in [good, theirs] {
        runtime.remove_snapshot(&snapshot).await.unwrap();
    }
    stranger.destroy().await;
    sandbox.destroy().await;
}

pub(crate) async fn a_pause_without_memory_keeps_the_files(class: IsolationClass) {
    let lab = Lab::get().await;
    let mut spec = lab.spec();
    spec.env.insert("COLOUR".into(), "green".into());
    let sandbox = lab.create(class, &spec).await.unwrap();
    let (id, runtime) = (sandbox.execution.sandbox.clone(), sandbox.runtime.clone());
    // As hostile to the next boot as root inside can be.
    sh(
        &*sandbox.guest,
        "echo kept > f; sudo sh -c 'rm -rf /.belljar; ln -s /etc /.belljar; rm -rf /tmp && ln -s /home /tmp; rm /etc/hostname'; true",
    )
    .await;
    runtime.pause(&id, PauseKind::Filesystem).await.unwrap();
    until(|| async { lab.host_pids(&id).is_empty() }).await;
    assert!(matches!(runtime.guest(&id).await.map(drop), Err(RuntimeError::WrongState { .. })));
    assert!(matches!(runtime.ended(&id).await, Err(RuntimeError::WrongState { .. })), "it did not end");
    assert!(matches!(runtime.pause(&id, PauseKind::Filesystem).await, Err(RuntimeError::WrongState { .. })));
    let used = runtime.usage(&id).await.unwrap();
    assert_eq!((used.memory_bytes, used.pids), (0, 0));
    let kept = SnapshotId::random();
    runtime.snapshot(&id, &kept, SnapshotKind::Filesystem).await.unwrap();
    assert!(matches!(runtime.snapshot(&id, &kept, SnapshotKind::Filesystem).await, Err(RuntimeError::SnapshotExists { .. })));
    let successor = lab.second_runtime(class);
    let found = successor.inventory().await.unwrap();
    assert!(found.iter().any(|found| found.id == id && found.presence == Presence::Paused { memory: false }), "{found:?}");
    let run = ExecutionId::random();
    let resumed = successor.resume(&id, &run).await.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!((&resumed.sandbox, &resumed.id), (&id, &run));
    assert_eq!(sh(&*successor.guest(&id).await.unwrap(), "cat f; echo $COLOUR").await.text(), "kept\ngreen");
    let child = fork(lab, class, &kept, &lab.spec()).await;
    assert_eq!(sh(&*child.guest, "cat f").await.text(), "kept");
    child.destroy().await;
    successor.remove_snapshot(&kept).await.unwrap();
    // A paused sandbox can be destroyed as well.
    successor.pause(&id, PauseKind::Filesystem).await.unwrap();
    successor.destroy(&id).await.unwrap();
    assert!(successor.inventory().await.unwrap().iter().all(|found| found.id != id));
}

pub(crate) async fn snapshots_are_listed_and_leave_nothing(class: IsolationClass) {
    let lab = Lab::get().await;
    let sandbox = lab.sandbox(class).await;
    let runtime = sandbox.runtime.clone();
    sh(&*sandbox.guest, "head -c 1000000 /dev/urandom > f; sync").await.text();
    let kept = snapshot(&sandbox, SnapshotKind::Filesystem).await;
    let listed = lab.second_runtime(class).snapshots().await.unwrap();
    let found = listed.iter().find(|found| found.id == kept).expect("it is listed");
    assert_eq!((found.kind, &found.layers), (SnapshotKind::Filesystem, &lab.template.layers));
    let needed = lab.host.layers_in_use().await.unwrap();
    assert!(lab.template.layers.iter().all(|layer| needed.contains(layer)), "{needed:?}");
    sandbox.destroy().await;
    assert!(runtime.snapshots().await.unwrap().iter().any(|found| found.id == kept), "it outlives its sandbox");
    runtime.remove_snapshot(&kept).await.unwrap();
    assert!(runtime.snapshots().await.unwrap().iter().all(|found| found.id != kept));
    for place in ["snapshots", "pool/snapshots"] {
        assert!(!lab.data_dir.join(place).join(kept.as_str()).exists(), "{place}");
    }
}
