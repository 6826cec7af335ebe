//! Places run full while the server works with them: the disk that a snapshot is exported to, the pool that it is imported or pulled into, where it is pushed to, and the
//! pool on which a volume is copied and room is made. Real disks of few megabytes, a random amount of room left, everything over HTTP or with the program.
//!
//! What fails says which place was full; nothing half is seen, nothing acknowledged is lost, and the same works once there is room. A quick slice by default, 168
//! rounds with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays it again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "full_places/scene.rs"]
mod scene;
#[path = "full_places/verbs.rs"]
mod verbs;

use std::collections::BTreeMap;

use belljar_testkit::s3::S3Server;
use belljar_testkit::{Ballast, Census, Dice, ServerProcess, SmallDisk, block_on, full, scaled};
use scene::{Scene, settings_for_bucket};
use tokio::sync::Mutex;
use verbs::VERBS;

const POOL_BYTES: u64 = 512 << 20;
const DISK_BYTES: u64 = 96 << 20;
/// What is carried has 20 to 50 MiB.
const MOST_LEFT: u64 = 48 << 20;
const TOLERATED: [(&str, usize); 3] = [("network namespaces", 4), ("interfaces", 4), ("open files of this process", 64)];
const CLASSES: [&str; 2] = ["container", "gvisor"];

const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
disk_reserve = \"0B\"
[sandboxes.default_limits]
memory = \"128MiB\"
disk = \"64MiB\"
";

/// There is one laboratory for both.
static TURN: Mutex<()> = Mutex::const_new(());

#[test]
fn a_place_that_is_full_is_named_and_nothing_half_is_seen_there() {
    block_on(async {
        let _turn = TURN.lock().await;
        let mut dice = Dice::new("full_places");
        let outside = SmallDisk::make(DISK_BYTES).unwrap();
        let blobs = format!("[blobs]\nkind = \"directory\"\ndirectory = \"{}\"\n", outside.path().join("blobs").display());
        let server = ServerProcess::start_small(POOL_BYTES, &format!("{SETTINGS}{blobs}")).await;
        // What a run that failed has left.
        server.client().clean_up(false).await.unwrap();
        let pool = Ballast::in_pool(&server.scope.data_dir.join("pool"));
        for class in CLASSES {
            Scene::set(&server, &outside, class).await.clear().await;
        }
        let before = Census::take(&server.scope);
        let mut told = BTreeMap::<String, (usize, usize)>::new();
        for round in 0..scaled(14, 168) {
            let round = usize::try_from(round).unwrap();
            let (class, verb) = (CLASSES[round % 2], VERBS[round / 2 % VERBS.len()]);
            let scene = Scene::set(&server, &outside, class).await;
            let ground = scene.prepare(verb).await;
            let left = dice.below(MOST_LEFT);
            let full_one = if verb.is_outside() { &outside.ballast } else { &pool };
            full_one.fill_but(left);
            let done = scene.perform(verb, &ground).await;
            let context = format!("round {round}: {verb:?} of {class} with {left} bytes left: {done:?}");
            assert!(done.is_ok() || !verb.makes_room(), "{context}: what makes room must work\n{}", server.last_words());
            if let Err(words) = &done {
                assert!(verb.names_the_place(words), "{context} does not say what was full\n{}", server.last_words());
                scene.check_nothing_of_it(verb, &ground, &context).await;
            }
            full_one.give_back();
            if done.is_err() {
                scene.check_nothing_of_it(verb, &ground, &context).await;
                scene.perform(verb, &ground).await.unwrap_or_else(|words| panic!("{context}, and with room again: {words}"));
            }
            scene.check_done(verb, &ground, &context).await;
            scene.clear().await;
            let (at_once, later) = told.entry(format!("{class} {verb:?}")).or_default();
            *if done.is_ok() { at_once } else { later } += 1;
            // The filesystem takes its time to forget quota groups, so that is looked at once in a while.
            if round % (2 * VERBS.len()) == 2 * VERBS.len() - 1 {
                let settled = Census::settle(&before, &server.scope, &TOLERATED).await;
                assert_eq!(settled, Ok(()), "{context}\n{}", server.last_words());
            }
        }
        server.close_small();
        println!("(done at once, done once there was room): {told:#?}");
        for verb in VERBS.into_iter().filter(|verb| full() && verb.needs_room()) {
            let failed: usize = CLASSES.iter().map(|class| told.get(&format!("{class} {verb:?}")).map_or(0, |(_, failed)| *failed)).sum();
            assert!(failed >= 4, "hardly any place was full for {verb:?}: {told:?}");
        }
    });
}

/// A bucket says that it is full in its own words, and is asked again for a while before it is believed.
#[test]
fn a_bucket_that_is_full_is_named_and_nothing_half_is_seen_in_it() {
    block_on(async {
        let _turn = TURN.lock().await;
        let mut dice = Dice::new("full_bucket");
        let home = tempfile::tempdir().unwrap();
        let outside = SmallDisk::make(DISK_BYTES).unwrap();
        let bucket = S3Server::start(&outside.path().join("bucket"), 1000).await.unwrap();
        let server = ServerProcess::start_small(POOL_BYTES, &format!("{SETTINGS}{}", settings_for_bucket(&bucket, home.path()))).await;
        let mut failed = 0;
        for round in 0..scaled(1, 12) {
            let class = CLASSES[usize::try_from(round % 2).unwrap()];
            let scene = Scene::set(&server, &outside, class).await;
            let (keys, left) = (bucket.keys(), dice.below(MOST_LEFT / 3));
            outside.ballast.fill_but(left);
            let pushed = scene.client.push_snapshot(&scene.kept.id).await;
            let context = format!("round {round}: push of {class} with {left} bytes left: {pushed:?}");
            outside.ballast.give_back();
            if let Err(error) = &pushed {
                failed += 1;
                let problem = error.problem().unwrap_or_else(|| panic!("{context}\n{}", server.last_words()));
                assert_eq!(problem.code, "blobs_full", "{context}\n{}", server.last_words());
                assert_eq!(bucket.uploads_under_way(), 0, "{context}");
                // Layers that were sent are whole, and are not sent again.
                let new = bucket.keys().into_iter().filter(|key| !keys.contains(key)).find(|key| !key.starts_with("layers/"));
                assert_eq!(new, None, "{context}");
                scene
                    .client
                    .push_snapshot(&scene.kept.id)
                    .await
                    .unwrap_or_else(|error| panic!("{context}, and with room again: {error:?}"));
            }
            let (id, mark) = (scene.kept.id.clone(), scene.mark().await);
            scene.client.remove_snapshot(&id).await.unwrap();
            let pulled = scene.client.pull_snapshot(&id, &Default::default()).await.unwrap_or_else(|error| panic!("{context}: {error:?}"));
            scene.check_fork(&pulled.id, &mark, &context).await;
            scene.client.remove_snapshot(&pulled.id).await.unwrap();
            scene.clear().await;
            for key in bucket.keys() {
                std::fs::remove_file(bucket.file(&key)).unwrap();
            }
        }
        server.close_small();
        println!("{failed} pushes found the bucket full");
        assert!(failed > 0, "the bucket was never full");
    });
}
