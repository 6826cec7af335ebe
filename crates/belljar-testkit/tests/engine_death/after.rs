//! What must hold when an engine was killed, as a server sees it that has made nothing itself.

use belljar_ports::{Guest, Presence, Runtime, RuntimeError, SnapshotKind};
use belljar_testkit::{run_spec, sh};
use belljar_types::{ExecutionId, ProcessId, ProcessSpec, SandboxId};

use crate::{HANGS, KEEPER, Scene, Verb};

/// Compares what was said with what is; says how the sandbox was found.
pub(crate) async fn check(scene: &Scene, verb: Verb, done: Result<(), RuntimeError>, context: &str) -> &'static str {
    let context = format!("{context}: {done:?}");
    if let Err(error) = &done {
        assert!(!matches!(error, RuntimeError::Unavailable { .. }), "{context}: one sandbox's death is not the class's");
    }
    let next = scene.lab.second_runtime(scene.class);
    let listed = next.snapshots().await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
    assert!(listed.iter().any(|found| found.id == scene.kept), "{context}: an acknowledged snapshot is lost");
    let taken = listed.iter().any(|found| found.id == scene.taken);
    assert_eq!(taken, verb == Verb::Snapshot && done.is_ok(), "{context}: a snapshot is seen if and only if it was acknowledged");
    let found = next.inventory().await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
    let presence = |id: &SandboxId| found.iter().find(|found| found.id == *id).map(|found| found.presence.clone());
    if verb == Verb::Fork && done.is_err() {
        assert_eq!(presence(&scene.fork.id), None, "{context}: a fork that failed leaves nothing");
    }
    let has_memory = verb != Verb::Resume || scene.kind == SnapshotKind::Memory;
    let state = look(&*next, &scene.id, presence(&scene.id), (verb != Verb::Fork, has_memory), &context).await;
    let state = if verb == Verb::Fork && done.is_ok() {
        let has_memory = scene.kind == SnapshotKind::Memory;
        look(&*next, &scene.fork.id, presence(&scene.fork.id), (true, has_memory), &context).await
    } else {
        state
    };
    for snapshot in listed {
        let spec = scene.lab.spec();
        next.fork(&snapshot.id, &spec).await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
        let guest = next.guest(&spec.id).await.unwrap();
        assert_eq!(sh(&*guest, "cat marker").await.text(), "good", "{context}: of {:?}", snapshot.id);
        assert!(snapshot.kind != SnapshotKind::Memory || has_keeper(&*guest).await, "{context}: a fork lost its parent's memory");
        next.destroy(&spec.id).await.unwrap();
    }
    state
}

/// It runs, or is paused and goes on, or has ended for a reason; never anything in between.
async fn look(
    runtime: &dyn Runtime,
    id: &SandboxId,
    presence: Option<Presence>,
    (may_end, has_memory): (bool, bool),
    context: &str,
) -> &'static str {
    let (state, memory) = match presence {
        Some(Presence::Running(_)) => ("running", has_memory),
        Some(Presence::Frozen(_)) => ("frozen", true),
        Some(Presence::Paused { memory }) => ("paused", memory),
        Some(Presence::Ended(_)) if may_end => {
            let ended = runtime.ended(id).await;
            assert!(ended.is_ok(), "{context}: {ended:?}");
            return "ended";
        }
        other => panic!("{context}: {id} is {other:?}"),
    };
    if state != "running" {
        match runtime.resume(id, &ExecutionId::random()).await {
            // Processes that stood still in memory can be killed there.
            Err(RuntimeError::Ended { .. }) if state == "frozen" => return "ended",
            other => drop(other.unwrap_or_else(|error| panic!("{context}: {state}, {error:?}"))),
        }
    }
    match marker(runtime, id).await {
        Ok((marker, keeper)) => {
            assert_eq!(marker, "good", "{context}: {state}");
            assert!(!memory || keeper, "{context}: {state}, and its memory is lost");
            state
        }
        // What was killed takes a moment to be gone with all that belongs to it; then it says so.
        Err(error) if may_end => {
            let ended = tokio::time::timeout(HANGS, runtime.ended(id)).await;
            assert!(matches!(ended, Ok(Ok(_))), "{context}: {state}, {error:?}, and has not ended: {ended:?}");
            "ended"
        }
        Err(error) => panic!("{context}: {state}, {error:?}"),
    }
}

/// What its files say, and whether its process is there.
async fn marker(runtime: &dyn Runtime, id: &SandboxId) -> Result<(String, bool), Box<dyn std::error::Error>> {
    let guest = runtime.guest(id).await?;
    let read = run_spec(&*guest, ProcessSpec::new(["/bin/cat", "marker"])).await?;
    Ok((read.text(), has_keeper(&*guest).await))
}

async fn has_keeper(guest: &dyn Guest) -> bool {
    let keeper: ProcessId = KEEPER.parse().unwrap();
    guest.processes().await.unwrap().iter().any(|process| process.id == keeper && process.exit.is_none())
}
