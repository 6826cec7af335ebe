//! State that lasts: snapshots, forks, roll-backs, and what a server that comes back makes of those that were half done.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use belljar_core::{CreateSandbox, ForkRequest, ForkSource, PartialLimits, Session, SnapshotKind, SweepOptions, TakeSnapshot};
use belljar_ports::{SnapshotFilter, SnapshotStore, Store};
use belljar_testkit::{block_on, run};
use belljar_types::{
    IsolationClass, ProcessSpec, Quota, Sandbox, SandboxId, SandboxState, Scope, Snapshot, SnapshotId, SnapshotPurpose, SnapshotState,
    Timestamp,
};

use crate::scene::{BOTH, CONTAINER, ONLY_LOOK, ORPHANS, Scene, alone, among_others, code, container, of_class, settings, until};

/// An interpreter that holds a number in memory, and does as the lines of a pipe say.
const INTERPRETER: &str = "mkfifo /tmp/in && exec python3 -c '
secret = 41
while True:
    for line in open(\"/tmp/in\"):
        exec(line)
        open(\"/tmp/out\", \"w\").write(str(secret))
'";

async fn session(scene: &Scene, id: &SandboxId) -> Session {
    scene.service.open(&scene.admin, id).await.unwrap()
}

async fn shell(scene: &Scene, id: &SandboxId, script: &str) -> String {
    let session = session(scene, id).await;
    let done = run(session.guest().as_ref(), &["sh", "-c", script]).await;
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

async fn take(scene: &Scene, id: &SandboxId, name: &str) -> Snapshot {
    let request = TakeSnapshot { name: Some(name.parse().unwrap()), ..TakeSnapshot::default() };
    let taken = scene.service.take_snapshot(&scene.admin, id, request).await;
    taken.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)))
}

async fn forks(scene: &Scene, source: ForkSource<'_>, count: u32, together: bool) -> Vec<Arc<Sandbox>> {
    let request = ForkRequest { count, together, ..ForkRequest::default() };
    let forks = scene.service.fork(&scene.admin, source, request).await;
    let forks = forks.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
    forks.into_iter().map(|fork| fork.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)))).collect()
}

async fn snapshots_on_the_host(scene: &Scene, class: IsolationClass) -> BTreeSet<SnapshotId> {
    scene.lab.second_runtime(class).snapshots().await.unwrap().into_iter().map(|record| record.id).collect()
}

#[test]
fn a_warm_interpreter_is_forked_into_twenty_that_share_its_past_and_nothing_else() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        let limits = PartialLimits { memory_bytes: Some(256 << 20), ..PartialLimits::default() };
        let parent = scene.create(CreateSandbox { limits, ..of_class(IsolationClass::Gvisor) }).await;
        session(&scene, &parent.id).await.start(&ProcessSpec::new(["sh", "-c", INTERPRETER])).await.unwrap();
        until(|| async { shell(&scene, &parent.id, "test -p /tmp/in && echo there").await == "there" }).await;
        shell(&scene, &parent.id, "echo 'secret += 1' > /tmp/in; until test -s /tmp/out; do sleep 0.1; done").await;

        let forks = forks(&scene, ForkSource::Sandbox(&parent.id), 20, true).await;
        let ids: BTreeSet<_> = forks.iter().map(|fork| fork.id.clone()).collect();
        assert_eq!(ids.len(), 20);
        for (index, fork) in forks.iter().enumerate() {
            assert_eq!(fork.origin.as_ref().unwrap().sandbox, parent.id);
            let script =
                format!("rm /tmp/out; echo 'secret += {index}' > /tmp/in; until test -s /tmp/out; do sleep 0.1; done; cat /tmp/out");
            assert_eq!(shell(&scene, &fork.id, &script).await, (42 + index).to_string(), "fork {index}");
        }
        let script = "rm /tmp/out; echo 'secret += 0' > /tmp/in; until test -s /tmp/out; do sleep 0.1; done; cat /tmp/out";
        assert_eq!(shell(&scene, &parent.id, script).await, "42", "the parent hears of none of it");
        assert!(scene.service.snapshots(&scene.admin, &SnapshotFilter::default(), None, 10).await.unwrap().snapshots.is_empty());
        until(|| async { scene.store.all_snapshots().await.unwrap().0.is_empty() }).await;
        scene.kill(ids.iter().chain([&parent.id])).await;
    });
}

#[test]
fn a_snapshot_outlives_its_sandbox_and_the_server() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let env = [("WHO".to_owned(), "parent".to_owned())].into();
            let sandbox = scene.create(CreateSandbox { env, ..of_class(class) }).await;
            shell(&scene, &sandbox.id, "echo first > ~/file").await;
            let taken = take(&scene, &sandbox.id, "kept").await;
            assert_eq!(taken.kind == SnapshotKind::Memory, class == IsolationClass::Gvisor);
            assert!(taken.bytes > 0);
            scene.kill([&sandbox.id]).await;
            scene.restart(BOTH).await;

            let found = scene.service.snapshot(&scene.admin, "kept").await.unwrap();
            assert_eq!((&found.id, found.state, &found.source), (&taken.id, SnapshotState::Whole, &sandbox.id));
            let request = ForkRequest { env: [("WHO".to_owned(), "fork".to_owned())].into(), ..ForkRequest::default() };
            let mut made = scene.service.fork(&scene.admin, ForkSource::Snapshot("kept"), request).await.unwrap();
            let fork = made.pop().unwrap().unwrap();
            assert_eq!(shell(&scene, &fork.id, "cat ~/file; echo $WHO").await, "first\nfork");
            let from = CreateSandbox { snapshot: Some(taken.id.to_string()), ..CreateSandbox::default() };
            let created = scene.create(from).await;
            assert_eq!(created.class, class);
            assert_eq!(shell(&scene, &created.id, "cat ~/file; echo $WHO").await, "first\nparent");

            scene.service.remove_snapshot(&scene.admin, "kept").await.unwrap();
            assert_eq!(code(scene.service.snapshot(&scene.admin, "kept").await), "snapshot_not_found");
            assert!(!snapshots_on_the_host(&scene, class).await.contains(&taken.id));
            assert_eq!(shell(&scene, &fork.id, "cat ~/file").await, "first", "what was made from it lives on");
            scene.kill([&fork.id, &created.id]).await;
        }
    });
}

#[test]
fn a_sandbox_goes_back_to_its_own_snapshots_and_to_no_others() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let sandbox = scene.create(of_class(class)).await;
            shell(&scene, &sandbox.id, "echo before > ~/file").await;
            let first = take(&scene, &sandbox.id, "first").await;
            shell(&scene, &sandbox.id, "echo after > ~/file; touch ~/more").await;
            let second = take(&scene, &sandbox.id, "second").await;
            assert_eq!(second.parent, Some(first.id.clone()));
            let back = scene.service.rollback(&scene.admin, &sandbox.id, "first").await.unwrap();
            assert_eq!((back.state, &back.last_snapshot), (SandboxState::Running, &Some(first.id.clone())));
            assert_eq!(shell(&scene, &sandbox.id, "cat ~/file; ls ~/more 2>&1 | wc -l").await, "before\n1");
            scene.service.pause(&scene.admin, &sandbox.id, SnapshotKind::Memory).await.unwrap();
            let forward = scene.service.rollback(&scene.admin, &sandbox.id, "second").await.unwrap();
            assert_eq!(forward.state, SandboxState::Running);
            assert_eq!(shell(&scene, &sandbox.id, "cat ~/file; ls ~/more").await.lines().next(), Some("after"));

            let other = scene.create(of_class(class)).await;
            let refused = scene.service.rollback(&scene.admin, &other.id, "first").await.unwrap_err();
            assert_eq!((refused.code(), refused.invalid().unwrap().field.as_str()), ("invalid", "snapshot"));
            assert_eq!(code(scene.service.rollback(&scene.admin, &other.id, "nothing").await), "snapshot_not_found");

            let fork = forks(&scene, ForkSource::Snapshot(first.id.as_str()), 1, false).await.remove(0);
            let family = scene.service.tree(&scene.admin, &fork.id).await.unwrap();
            let members: BTreeSet<_> = family.sandboxes.iter().map(|sandbox| &sandbox.id).collect();
            assert_eq!(members, BTreeSet::from([&sandbox.id, &fork.id]));
            assert_eq!(family.snapshots.iter().map(|snapshot| &snapshot.id).collect::<Vec<_>>(), [&first.id, &second.id]);
            for snapshot in [&first, &second] {
                scene.service.remove_snapshot(&scene.admin, snapshot.id.as_str()).await.unwrap();
            }
            scene.kill([&sandbox.id, &other.id, &fork.id]).await;
        }
    });
}

#[test]
fn all_forks_are_made_or_none_and_a_quota_counts_each() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let user = scene.caller("small", &[Scope::Use, Scope::Read]).await;
        let quota = Quota { sandboxes: 3, ..Quota::default() };
        scene.service.set_quota(&scene.admin, &user.project, quota).await.unwrap();
        let parent = scene.service.create(&user, container()).await.unwrap();
        let ask = |together| ForkRequest { count: 4, together, ..ForkRequest::default() };

        let refused = scene.service.fork(&user, ForkSource::Sandbox(&parent.id), ask(true)).await;
        assert_eq!(code(refused.map(drop)), "quota_exceeded");
        let (live, _) = scene.store.unended().await.unwrap();
        assert_eq!(live.iter().map(|sandbox| &sandbox.id).collect::<Vec<_>>(), [&parent.id], "none is left");

        let made = scene.service.fork(&user, ForkSource::Sandbox(&parent.id), ask(false)).await.unwrap();
        assert_eq!(made.len(), 4);
        let codes: Vec<_> = made.iter().map(|fork| fork.as_ref().map_or_else(belljar_core::CoreError::code, |_| "made")).collect();
        assert_eq!(codes.iter().filter(|code| **code == "made").count(), 2, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == "quota_exceeded").count(), 2, "{codes:?}");
        until(|| async { scene.store.all_snapshots().await.unwrap().0.is_empty() }).await;

        for count in [0, 101] {
            let wrong = scene.service.fork(&user, ForkSource::Sandbox(&parent.id), ForkRequest { count, ..ForkRequest::default() }).await;
            assert_eq!(wrong.unwrap_err().invalid().unwrap().field, "count");
        }
        for fork in made.into_iter().flatten().chain([parent]) {
            scene.service.kill(&user, &fork.id).await.unwrap();
        }
    });
}

#[test]
fn a_strangers_snapshots_are_not_there() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let stranger = scene.caller("stranger", &[Scope::Use, Scope::Read]).await;
        let sandbox = scene.container().await;
        let taken = take(&scene, &sandbox.id, "mine").await;
        for which in [taken.id.as_str(), "mine"] {
            assert_eq!(code(scene.service.snapshot(&stranger, which).await), "snapshot_not_found");
            assert_eq!(code(scene.service.remove_snapshot(&stranger, which).await), "snapshot_not_found");
            let forked = scene.service.fork(&stranger, ForkSource::Snapshot(which), ForkRequest::default()).await;
            assert_eq!(code(forked.map(drop)), "snapshot_not_found");
            let created = scene.service.create(&stranger, CreateSandbox { snapshot: Some(which.to_owned()), ..container() }).await;
            assert_eq!(code(created), "snapshot_not_found");
        }
        assert_eq!(code(scene.service.take_snapshot(&stranger, &sandbox.id, TakeSnapshot::default()).await), "sandbox_not_found");
        assert_eq!(code(scene.service.rollback(&stranger, &sandbox.id, "mine").await), "sandbox_not_found");
        assert_eq!(code(scene.service.tree(&stranger, &sandbox.id).await), "sandbox_not_found");
        let forked = scene.service.fork(&stranger, ForkSource::Sandbox(&sandbox.id), ForkRequest::default()).await;
        assert_eq!(code(forked.map(drop)), "sandbox_not_found");
        let unseen = scene.service.snapshots(&stranger, &SnapshotFilter::default(), None, 10).await.unwrap();
        assert!(unseen.snapshots.is_empty());
        scene.service.remove_snapshot(&scene.admin, "mine").await.unwrap();
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn a_snapshot_is_removed_when_its_time_is_over() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let sandbox = scene.container().await;
        let request = TakeSnapshot { lifetime: Some(Duration::from_secs(1)), ..TakeSnapshot::default() };
        let taken = scene.service.take_snapshot(&scene.admin, &sandbox.id, request).await.unwrap();
        until(|| async { scene.service.snapshot(&scene.admin, taken.id.as_str()).await.is_err() }).await;
        until(|| async { !snapshots_on_the_host(&scene, IsolationClass::Container).await.contains(&taken.id) }).await;
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn a_server_that_comes_back_finishes_or_undoes_what_was_half_done() {
    block_on(async {
        let _turn = alone().await;
        let config = belljar_core::ServiceConfig { orphan_grace: Duration::ZERO, ..settings() };
        let mut scene = Scene::with(CONTAINER, config).await;
        let engine = scene.lab.second_runtime(IsolationClass::Container);
        let sandbox = scene.container().await;
        let whole = take(&scene, &sandbox.id, "whole").await;
        let epoch = scene.store.begin_epoch().await.unwrap();
        let row = |state, purpose| Snapshot {
            id: SnapshotId::random(),
            name: None,
            state: SnapshotState::Making,
            purpose,
            created_at: Timestamp::now(),
            ..Snapshot { state, ..whole.clone() }
        };

        // Taken, and not yet recorded; entered, and not yet taken; being removed; an orphan of the engine's.
        let taken = row(SnapshotState::Making, SnapshotPurpose::Kept);
        let not_taken = row(SnapshotState::Making, SnapshotPurpose::Kept);
        let going = row(SnapshotState::Making, SnapshotPurpose::Kept);
        let for_a_fork = row(SnapshotState::Making, SnapshotPurpose::Fork);
        let mark = row(SnapshotState::Making, SnapshotPurpose::ForkTogether);
        let orphan = SnapshotId::random();
        for snapshot in [&taken, &not_taken, &going, &for_a_fork, &mark] {
            scene.store.enter_snapshot(epoch, snapshot).await.unwrap();
        }
        for id in [&taken.id, &going.id, &for_a_fork.id, &orphan] {
            engine.snapshot(&sandbox.id, id, SnapshotKind::Filesystem).await.unwrap();
        }
        let removing = Snapshot { state: SnapshotState::Removing, ..going.clone() };
        scene.store.record_snapshot(epoch, SnapshotState::Making, &removing).await.unwrap();
        // One of a fork that was to be all or none, which the server did not live to finish.
        let spec = belljar_types::SandboxSpec { id: SandboxId::random(), ..whole.spec.clone() };
        let begins_with = belljar_types::Beginning { snapshot: whole.id.clone(), memory: false, together: Some(mark.id.clone()) };
        let half =
            Sandbox { id: spec.id.clone(), state: SandboxState::Creating, begins_with: Some(begins_with), spec, ..(*sandbox).clone() };
        scene.store.reserve(epoch, &half, None).await.unwrap();
        engine.fork(&whole.id, &half.spec).await.unwrap();
        let running = Sandbox { state: SandboxState::Running, ..half.clone() };
        scene.store.record(epoch, SandboxState::Creating, half.execution(), &running).await.unwrap();

        scene.restart(CONTAINER).await;
        let seen = scene.service.snapshots(&scene.admin, &SnapshotFilter::default(), None, 10).await.unwrap().snapshots;
        let ids: BTreeSet<_> = seen.iter().map(|snapshot| snapshot.id.clone()).collect();
        assert_eq!(ids, BTreeSet::from([whole.id.clone(), taken.id.clone()]));
        assert_eq!(scene.store.all_snapshots().await.unwrap().0.len(), 2, "the rest is forgotten");
        // Other tests may have left snapshots of their own, which this store does not know either.
        let all = BTreeSet::from([&whole, &taken, &not_taken, &going, &for_a_fork, &mark].map(|snapshot| snapshot.id.clone()));
        let and_the_orphan: BTreeSet<_> = ids.iter().chain([&orphan]).cloned().collect();
        let ours = async || {
            let found = snapshots_on_the_host(&scene, IsolationClass::Container).await;
            found.into_iter().filter(|id| all.contains(id) || *id == orphan).collect::<BTreeSet<_>>()
        };
        until(async || ours().await == and_the_orphan).await;
        for (options, left) in
            [(ONLY_LOOK, &and_the_orphan), (SweepOptions { orphans: true, ..ONLY_LOOK }, &and_the_orphan), (ORPHANS, &ids)]
        {
            let cleaned = scene.service.sweep(&scene.admin, options).await.unwrap();
            assert!(cleaned.orphaned_snapshots.contains(&orphan), "{options:?}");
            assert_eq!(ours().await, *left, "{options:?}");
        }
        let ended = scene.show(&half.id).await;
        assert_eq!((ended.state, ended.end.as_ref().unwrap().cause), (SandboxState::Failed, belljar_types::EndCause::NotMade));
        assert!(!scene.is_on_the_host(IsolationClass::Container, &half.id).await);
        assert_eq!(scene.show(&sandbox.id).await.state, SandboxState::Running);
        for id in &ids {
            scene.service.remove_snapshot(&scene.admin, id.as_str()).await.unwrap();
        }
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn a_sweep_keeps_the_layers_of_snapshots() {
    block_on(async {
        let _turn = alone().await;
        let scene = Scene::open(CONTAINER).await;
        let layers = belljar_image::LayerStore::open(scene.lab.host.pool_directory()).unwrap().of(None);
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("only-here"), SnapshotId::random().as_str()).unwrap();
        let own = layers.import_tree(tree.path(), "a test").unwrap().digest;
        let base = layers.template(&scene.config.default_template).unwrap().unwrap();
        let name: belljar_types::TemplateName = "to-be-swept".parse().unwrap();
        let template = belljar_types::Template { name: name.clone(), layers: base.layers.iter().chain([&own]).cloned().collect(), ..base };
        layers.put_template(&template).unwrap();

        let sandbox = scene.create(CreateSandbox { template: Some(name.clone()), ..container() }).await;
        take(&scene, &sandbox.id, "kept").await;
        scene.kill([&sandbox.id]).await;
        assert!(layers.remove_template(&name).unwrap());
        let with = scene.service.sweep(&scene.admin, ONLY_LOOK).await.unwrap();
        assert!(!with.layers.contains(&own), "the snapshot needs it");
        scene.service.remove_snapshot(&scene.admin, "kept").await.unwrap();
        let without = scene.service.sweep(&scene.admin, ONLY_LOOK).await.unwrap();
        assert!(without.layers.contains(&own), "nobody needs it any more");
        assert!(layers.remove(&own).unwrap());
    });
}
