//! Quotas are reached in the middle of a snapshot, a fork and a pause: a project's, which is lowered meanwhile, and a sandbox's own disk, which a program inside fills
//! meanwhile. What is refused names the quota; nothing half is seen, nothing acknowledged is lost, and the same works once there is room.
//!
//! A quick slice by default, 120 rounds of each with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays it again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "quotas/scene.rs"]
mod scene;

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_client::{ClientError, NewForks, NewSnapshot};
use belljar_testkit::{Dice, ServerProcess, agreement, block_on, full, scaled};
use belljar_types::{PauseKind, SandboxState};
use scene::{DISK, SETTINGS, Scene, set_disk_quota};
use tokio::sync::Mutex;

const CLASSES: [&str; 2] = ["container", "gvisor"];
const FORKS: u32 = 4;
const PLENTY: u64 = 100 * DISK;

/// There is one laboratory for both.
static TURN: Mutex<()> = Mutex::const_new(());

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Snapshot,
    Fork,
    ForkTogether,
}

const VERBS: [Verb; 3] = [Verb::Fork, Verb::Snapshot, Verb::ForkTogether];

/// Says how many snapshots and forks were acknowledged.
async fn perform(scene: &Scene<'_>, verb: Verb) -> Result<(usize, usize), ClientError> {
    if verb == Verb::Snapshot {
        return scene.client.take_snapshot(&scene.sandbox.id, &NewSnapshot::default()).await.map(|_| (1, 0));
    }
    let request = NewForks { count: FORKS, all_or_nothing: verb == Verb::ForkTogether, ..NewForks::default() };
    let forks = scene.client.fork_sandbox(&scene.sandbox.id, &request).await?;
    for refused in forks.iter().filter_map(|fork| fork.error.as_ref()) {
        assert!(refused.code == "quota_exceeded" && refused.detail.contains("disk_bytes"), "{refused:?}");
    }
    Ok((0, forks.iter().filter(|fork| fork.sandbox.is_some()).count()))
}

#[test]
fn a_projects_quota_that_is_reached_in_the_middle_leaves_nothing_half() {
    block_on(async {
        let _turn = TURN.lock().await;
        let mut dice = Dice::new("quotas");
        let server = ServerProcess::start(SETTINGS).await;
        // What earlier suites left.
        server.client().clean_up(false).await.unwrap();
        let mut told = BTreeMap::<String, usize>::new();
        for round in 0..scaled(6, 120) {
            let round = usize::try_from(round).unwrap();
            let (class, verb) = (CLASSES[round % 2], VERBS[round / 2 % VERBS.len()]);
            set_disk_quota(&server, PLENTY).await;
            let scene = Scene::set(&server, class).await;
            // Before it is asked for, in the middle of it, or hardly any more: then nobody is refused.
            let delay = Duration::from_micros(dice.below(if class == "gvisor" { 400_000 } else { 12_000 }));
            let lowered = DISK + dice.below(u64::from(FORKS) * DISK);
            let lowering = async {
                tokio::time::sleep(delay).await;
                set_disk_quota(&server, lowered).await;
            };
            let (done, ()) = tokio::join!(perform(&scene, verb), lowering);
            let context = format!("round {round}: {verb:?} of {class}, {lowered} bytes after {delay:?}: {done:?}");
            let (snapshots, forks) = match &done {
                Ok(made) => *made,
                Err(error) => {
                    let problem = error.problem().unwrap_or_else(|| panic!("{context}\n{}", server.last_words()));
                    assert_eq!(problem.code, "quota_exceeded", "{context}\n{}", server.last_words());
                    assert!(problem.detail.contains("disk_bytes"), "{context}");
                    (0, 0)
                }
            };
            assert!(verb != Verb::ForkTogether || forks == 0 || forks == FORKS as usize, "{context}: all of them or none");
            scene.check_counts(snapshots + 1, forks + 1, &context).await;
            assert_eq!(agreement(&server).await, Ok(()), "{context}\n{}", server.last_words());
            scene.check_alive(&context).await;
            // A project that has more than it may gets no more of anything, and is told so.
            set_disk_quota(&server, 1).await;
            for verb in VERBS {
                match perform(&scene, verb).await {
                    Ok(made) => assert_eq!((verb, made), (Verb::Fork, (0, 0)), "{context}: there was no room"),
                    Err(error) => assert_eq!(error.code(), Some("quota_exceeded"), "{context}: {verb:?} {error:?}"),
                }
            }
            scene.check_counts(snapshots + 1, forks + 1, &context).await;
            assert_eq!(agreement(&server).await, Ok(()), "{context}\n{}", server.last_words());
            set_disk_quota(&server, PLENTY).await;
            let again = perform(&scene, verb).await.unwrap_or_else(|error| panic!("{context}, and with room again: {error:?}"));
            assert_eq!(again, if verb == Verb::Snapshot { (1, 0) } else { (0, FORKS as usize) }, "{context}");
            scene.check_all_snapshots(&context).await;
            let outcome = if done.is_err() || (verb == Verb::Fork && forks < FORKS as usize) { "refused" } else { "done" };
            *told.entry(format!("{class} {verb:?}: {outcome}")).or_default() += 1;
            scene.clear().await;
        }
        println!("{told:#?}");
        assert!(server_stops(server));
        let refused = |verb: Verb| told.keys().any(|key| key.ends_with(&format!("{verb:?}: refused")));
        assert!(!full() || (refused(Verb::Fork) && refused(Verb::ForkTogether)), "no quota was reached in the middle");
    });
}

#[test]
fn a_sandboxs_own_disk_that_runs_full_in_the_middle_takes_nothing_with_it() {
    block_on(async {
        let _turn = TURN.lock().await;
        let mut dice = Dice::new("quotas_inside");
        let server = ServerProcess::start(SETTINGS).await;
        // What earlier suites left.
        server.client().clean_up(false).await.unwrap();
        for round in 0..scaled(6, 120) {
            let class = CLASSES[usize::try_from(round % 2).unwrap()];
            let scene = Scene::set(&server, class).await;
            let filling = scene.begin_to_fill(dice.below(40)).await;
            tokio::time::sleep(Duration::from_micros(dice.below(150_000))).await;
            let (id, what) = (&scene.sandbox.id, ["snapshot", "fork", "pause"][usize::try_from(round / 2 % 3).unwrap()]);
            let context = format!("round {round}: {what} of {class} while its disk runs full");
            let mut forks = 0;
            match what {
                "snapshot" => drop(
                    scene
                        .client
                        .take_snapshot(id, &NewSnapshot::default())
                        .await
                        .unwrap_or_else(|error| panic!("{context}: {error:?}\n{}", server.last_words())),
                ),
                "fork" => {
                    let request = NewForks { count: 2, all_or_nothing: true, ..NewForks::default() };
                    let made = scene
                        .client
                        .fork_sandbox(id, &request)
                        .await
                        .unwrap_or_else(|error| panic!("{context}: {error:?}\n{}", server.last_words()));
                    forks = made.len();
                }
                _ => {
                    let paused = scene.client.pause_sandbox(id, PauseKind::Memory).await;
                    let paused = paused.unwrap_or_else(|error| panic!("{context}: {error:?}\n{}", server.last_words()));
                    assert_eq!(paused.state, SandboxState::Paused, "{context}");
                    let back = scene.client.resume_sandbox(id, None).await;
                    assert_eq!(
                        back.unwrap_or_else(|error| panic!("{context}: {error:?}\n{}", server.last_words())).state,
                        SandboxState::Running
                    );
                }
            }
            scene.check_counts(1 + usize::from(what == "snapshot"), 1 + forks, &context).await;
            assert_eq!(agreement(&server).await, Ok(()), "{context}\n{}", server.last_words());
            scene.check_full(&filling, &context).await;
            scene.check_alive(&context).await;
            scene.check_all_snapshots(&context).await;
            scene.check_got_over(&context).await;
            scene.clear().await;
        }
        assert!(server_stops(server));
    });
}

fn server_stops(mut server: ServerProcess) -> bool {
    server.stop().success()
}
