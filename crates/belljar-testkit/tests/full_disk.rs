//! The pool runs full in the middle of a pause, a snapshot, a fork, a resume, a roll-back, the making of a layer and a copy of a volume, on a pool of its own with
//! a random amount of room left. What fails says that it was for the disk; the sandbox is as before, no half snapshot is seen, and the same works once there is room.
//!
//! A quick slice by default, 256 rounds with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays it again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "full_disk/scene.rs"]
mod scene;

use std::collections::BTreeMap;

use belljar_ports::SnapshotKind;
use belljar_testkit::{Census, Dice, Lab, SmallLab, block_on, full, scaled, sh};
use belljar_types::{ExecutionId, IsolationClass};
use scene::{Scene, VERBS};

const POOL_BYTES: u64 = 512 << 20;
/// A memory image of a sandbox that does nothing has about half of this.
const MOST_LEFT: u64 = 40 << 20;
const TOLERATED: [(&str, usize); 3] = [("network namespaces", 4), ("interfaces", 4), ("open files of this process", 64)];
const BOTH: [IsolationClass; 2] = [IsolationClass::Container, IsolationClass::Gvisor];

#[test]
fn a_pool_that_runs_full_in_the_middle_loses_nothing_and_is_got_over() {
    block_on(async {
        let mut dice = Dice::new("full_disk");
        let small = SmallLab::open(Lab::get().await, POOL_BYTES).await.unwrap_or_else(|error| panic!("{error:?}"));
        for class in BOTH {
            small.lab.sandbox(class).await.destroy().await;
        }
        let before = Census::take(&small.lab.scope());
        let mut told = BTreeMap::<String, (usize, usize)>::new();
        for round in 0..scaled(16, 256) {
            let (class, verb) = (BOTH[usize::try_from(round % 2).unwrap()], VERBS[usize::try_from(round / 2).unwrap() % VERBS.len()]);
            let scene = Scene::set(&small.lab, class, verb).await;
            let left = dice.below(MOST_LEFT);
            small.ballast.fill_but(left);
            let done = scene.perform(verb).await;
            let context = format!("round {round}: {verb:?} of {class} with {left} bytes left: {done:?}");
            if let Err(words) = &done {
                assert!(words.contains("disk") || words.contains("No space left on device"), "{context} does not name the disk");
                scene.check_as_before(verb, &context).await;
            }
            small.ballast.give_back();
            if done.is_err() {
                scene.check_as_before(verb, &context).await;
                scene.perform(verb).await.unwrap_or_else(|words| panic!("{context}, and with room again: {words}"));
            }
            scene.check_done(verb, &context).await;
            scene.clear().await;
            let (at_once, later) = told.entry(format!("{class} {verb:?}")).or_default();
            *if done.is_ok() { at_once } else { later } += 1;
            assert_eq!(Census::settle(&before, &small.lab.scope(), &TOLERATED).await, Ok(()), "{context}");
        }
        small.close().await;
        println!("(done at once, done once there was room): {told:#?}");
        assert!(!full() || told.values().map(|(_, failed)| failed).sum::<usize>() >= 40, "the disk was hardly ever full");
    });
}

/// A sandbox that has filled its own disk, to the last byte that its limit allows, is paused and comes back all the same.
#[test]
fn a_sandbox_whose_own_disk_is_full_pauses_forks_and_comes_back() {
    block_on(async {
        let lab = Lab::get().await;
        for class in BOTH {
            let mut spec = lab.spec();
            spec.limits.disk_bytes = 64 << 20;
            let sandbox = lab.create(class, &spec).await.unwrap();
            let (runtime, id) = (sandbox.runtime.clone(), spec.id.clone());
            let fill = "echo good > marker; dd if=/dev/zero of=large bs=64k 2>/dev/null; dd if=/dev/zero of=small bs=512 2>/dev/null; sync; cat marker";
            assert_eq!(sh(&*sandbox.guest, fill).await.text(), "good", "{class}");
            let memory = runtime.capabilities().snapshot_memory;
            for keep in [SnapshotKind::Filesystem, SnapshotKind::Memory] {
                let what = format!("{class}, {keep:?}");
                runtime.pause(&id, keep.into()).await.unwrap_or_else(|error| panic!("pause of {what}: {error:?}"));
                runtime.resume(&id, &ExecutionId::random()).await.unwrap_or_else(|error| panic!("resume of {what}: {error:?}"));
                let kind = if memory { keep } else { SnapshotKind::Filesystem };
                let snapshot = belljar_types::SnapshotId::random();
                runtime.snapshot(&id, &snapshot, kind).await.unwrap_or_else(|error| panic!("snapshot of {what}: {error:?}"));
                let fork = belljar_types::SandboxSpec { limits: spec.limits.clone(), ..lab.spec() };
                runtime.fork(&snapshot, &fork).await.unwrap_or_else(|error| panic!("fork of {what}: {error:?}"));
                assert_eq!(sh(&*runtime.guest(&fork.id).await.unwrap(), "cat marker").await.text(), "good", "{what}");
                runtime.destroy(&fork.id).await.unwrap();
                let back = runtime.rollback(&id, &snapshot, &ExecutionId::random()).await;
                back.unwrap_or_else(|error| panic!("roll-back of {what}: {error:?}"));
                assert_eq!(sh(&*runtime.guest(&id).await.unwrap(), "cat marker").await.text(), "good", "{what}");
                runtime.remove_snapshot(&snapshot).await.unwrap();
            }
            runtime.destroy(&id).await.unwrap();
        }
    });
}
