//! The engine's own processes are killed in the middle of a pause, a snapshot and a fork that somebody asked the server for over HTTP: the sentry or the gofer of the
//! gVisor class, the first process of the container class. Whoever asked gets an answer; afterwards the sandbox is as before, or the new state is complete, or its
//! end is told; the server's list, the disk and the next sweep agree; and a server that is started anew sees the same.
//!
//! A quick slice by default, 240 kills with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays it again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "service_death/after.rs"]
mod after;
#[path = "service_death/scene.rs"]
mod scene;

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_testkit::{Census, Dice, ServerProcess, agreement, block_on, full, kill_engine, scaled};
use belljar_types::IsolationClass;
use scene::{Scene, VERBS, clear};

const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
default_lease = \"2h\"
orphan_grace = \"1s\"
disk_reserve = \"64MiB\"
[sandboxes.default_limits]
memory = \"128MiB\"
disk = \"256MiB\"
";
const TOLERATED: [(&str, usize); 3] = [("network namespaces", 4), ("interfaces", 4), ("open files of this process", 64)];
/// A request that was not answered by then hangs.
const HANGS: Duration = Duration::from_secs(180);

#[test]
fn an_engine_killed_under_the_server_leaves_what_the_server_says() {
    block_on(async {
        let mut dice = Dice::new("service_death");
        let mut server = ServerProcess::start(SETTINGS).await;
        // What earlier suites left.
        server.client().clean_up(false).await.unwrap();
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            drop(Scene::set(&server, class).await);
            clear(&server.client()).await;
        }
        let before = Census::take(&server.scope);
        let mut told = BTreeMap::<String, usize>::new();
        for round in 0..scaled(10, 240) {
            let class = if round % 2 == 0 { IsolationClass::Container } else { IsolationClass::Gvisor };
            let verb = VERBS[usize::try_from(round / 2).unwrap() % VERBS.len()];
            let scene = Scene::set(&server, class).await;
            let delay = Duration::from_micros(dice.below(if class == IsolationClass::Gvisor { 250_000 } else { 10_000 }));
            let (gofer, in_fork) = (dice.below(2) == 0, verb.forks() && dice.below(2) == 0);
            let performing = tokio::time::timeout(HANGS, scene.perform(verb));
            let killing = async {
                let doomed = if in_fork { scene.newborn().await } else { Some(scene.sandbox.id.clone()) };
                let killed = kill_engine(class, doomed.as_ref()?, delay, gofer).await?;
                Some((killed, doomed?))
            };
            let (done, killed) = tokio::join!(performing, killing);
            let context = format!("round {round}: {verb:?} of {class}, killed {killed:?} after {delay:?}");
            let done = done.unwrap_or_else(|_| panic!("{context}: hangs\n{}", server.last_words()));
            let context = format!("{context}: {done:?}");
            let state = after::check(&scene, verb, &done, killed.as_ref().map(|(_, doomed)| doomed), &context).await;
            assert_eq!(agreement(&server).await, Ok(()), "{context}\n{}", server.last_words());
            drop(scene);
            if dice.below(4) == 0 {
                server.kill();
                server.restart().await;
                assert_eq!(agreement(&server).await, Ok(()), "{context}, and a new server\n{}", server.last_words());
            }
            clear(&server.client()).await;
            let outcome = if killed.is_some() { state } else { "nothing was left to kill" };
            *told.entry(format!("{class} {verb:?}: {}, {outcome}", if done.is_ok() { "done" } else { "refused" })).or_default() += 1;
            if round % 10 == 9 {
                let settled = Census::settle(&before, &server.scope, &TOLERATED).await;
                assert_eq!(settled, Ok(()), "{context}\n{}", server.last_words());
            }
        }
        println!("{told:#?}");
        assert!(server.stop().success(), "\n{}", server.last_words());
        for (class, verb) in ["container", "gvisor"].into_iter().flat_map(|class| VERBS.map(|verb| (class, verb))) {
            let hit = |outcome: &String| outcome.starts_with(&format!("{class} {verb:?}")) && !outcome.ends_with("to kill");
            assert!(!full() || told.keys().any(hit), "nothing was killed during {verb:?} of {class}");
        }
    });
}
