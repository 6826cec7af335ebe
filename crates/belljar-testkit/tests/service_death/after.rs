//! What must hold when an engine was killed under the server: what it says is what is there.

use std::time::Duration;

use belljar_client::{Client, ClientError, NewForks};
use belljar_testkit::path;
use belljar_types::{IsolationClass, SandboxId, SandboxState};
use bytes::Bytes;
use futures_util::TryStreamExt;

use crate::scene::{CONTENT, FILE, FORKS, Made, Scene, Verb, keeper};

/// How often an engine's end is looked for before it counts as not told.
const LOOKS: u32 = 600;

/// Compares what was answered with what is; says how the sandbox was found whose engine was killed.
pub(crate) async fn check(
    scene: &Scene<'_>,
    verb: Verb,
    done: &Result<Made, ClientError>,
    doomed: Option<&SandboxId>,
    context: &str,
) -> &'static str {
    if let Err(error) = done {
        let problem = error.problem().unwrap_or_else(|| panic!("{context}\n{}", scene.server.last_words()));
        assert_ne!(problem.code, "engine_unavailable", "{context}: one sandbox's death is not the class's");
        let names_it = doomed.is_some_and(|id| problem.detail.contains(id.as_str()));
        assert!(names_it, "{context} does not say which sandbox died: {}\n{}", problem.detail, scene.server.last_words());
    }
    let doomed = doomed.unwrap_or(&scene.sandbox.id);
    let mut promised = vec![scene.kept.id.clone()];
    let forks: Vec<SandboxId> = match done {
        Ok(Made::Snapshot(taken)) => {
            promised.push(taken.id.clone());
            Vec::new()
        }
        Ok(Made::Forks(made)) => {
            assert!(verb == Verb::Fork || made.len() == FORKS as usize, "{context}: all of them or none");
            made.iter().map(|fork| fork.id.clone()).collect()
        }
        Ok(Made::Paused(paused)) => {
            assert_eq!(paused.state, SandboxState::Paused, "{context}");
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let has_memory = scene.class == IsolationClass::Gvisor;
    let mut state = state(scene, &scene.sandbox.id, true, context).await;
    assert!(doomed == &scene.sandbox.id || state == "running", "{context}: its parent is {state}");
    for fork in &forks {
        let found = self::state(scene, fork, has_memory, context).await;
        assert!(doomed == fork || found == "running", "{context}: {fork} is {found}");
        if doomed == fork {
            state = found;
        }
    }
    if *doomed != scene.sandbox.id && !forks.contains(doomed) {
        state = "no fork";
    }
    let others = Scene::living(&scene.client).await.into_iter().map(|found| found.id);
    let others: Vec<SandboxId> = others.filter(|id| *id != scene.sandbox.id && !forks.contains(id)).collect();
    assert_eq!(others, [], "{context}: forks that nobody was told of\n{}", scene.server.last_words());
    let mut there: Vec<String> =
        scene.client.snapshots(&Default::default()).await.unwrap().snapshots.into_iter().map(|one| one.id).collect();
    there.sort();
    promised.sort();
    assert_eq!(there, promised, "{context}: a snapshot is seen if and only if it was acknowledged");
    for snapshot in promised {
        let made = scene.client.fork_snapshot(&snapshot, &NewForks { count: 1, ..NewForks::default() }).await.unwrap();
        let fork = made.into_iter().next().unwrap();
        let fork = fork.sandbox.unwrap_or_else(|| panic!("{context}: {:?}\n{}", fork.error, scene.server.last_words()));
        assert_eq!(look(&scene.client, &fork.id).await, Ok(has_memory), "{context}: a fork of {snapshot}");
        scene.client.kill_sandbox(&fork.id).await.unwrap();
    }
    state
}

/// It runs with its memory, or is paused and goes on, or its end is told; a kill is noticed in a moment.
async fn state(scene: &Scene<'_>, id: &SandboxId, has_memory: bool, context: &str) -> &'static str {
    let mut last = String::new();
    for _ in 0..LOOKS {
        let seen = scene.client.sandbox(id).await.unwrap();
        match seen.state {
            ended if ended.has_ended() => {
                let end = seen.end.unwrap_or_else(|| panic!("{context}: it has ended and does not say how"));
                assert!(["exited", "lost"].contains(&end.cause.as_str()) && end.detail.contains("nobody had asked"), "{context}: {end:?}");
                return "ended";
            }
            SandboxState::Running => match look(&scene.client, id).await {
                Ok(has_keeper) if has_keeper == has_memory => return "running",
                other => last = format!("running, {other:?}"),
            },
            SandboxState::Paused => match scene.client.resume_sandbox(id, None).await {
                Ok(_) if look(&scene.client, id).await == Ok(true) => {
                    return if seen.pause.is_some_and(|pause| pause.memory == "resident") { "frozen" } else { "paused" };
                }
                other => last = format!("paused, {other:?}"),
            },
            on_its_way => last = format!("{on_its_way}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{context}: {id} is neither as before nor ended: {last}\n{}", scene.server.last_words());
}

/// Whether its process is there, if its file can be read and is whole.
async fn look(client: &Client, id: &SandboxId) -> Result<bool, String> {
    let read = async {
        let pieces: Vec<Bytes> = client.read_file(id, &path(FILE), None).await?.pieces().try_collect().await?;
        let has_keeper = client.processes(id).await?.iter().any(|process| process.id == keeper() && process.exit.is_none());
        Ok::<_, ClientError>((pieces.concat(), has_keeper))
    };
    match read.await {
        Ok((content, has_keeper)) if content == CONTENT => Ok(has_keeper),
        Ok((content, _)) => Err(format!("{} bytes of another file", content.len())),
        Err(error) => Err(format!("{error:?}")),
    }
}
