//! The server is killed in the middle of pushing a snapshot to a bucket: nothing that anybody could pull is there, and the next start ends
//! what was under way. A few kills by default, 200 with `BELLJAR_FULL=1`. The seed is printed; `BELLJAR_SEED` plays the same moments again.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use belljar_client::{CreateSandbox, NewFile, NewForks, NewImport, NewSnapshot};
use belljar_testkit::s3::{self, S3Server};
use belljar_testkit::{Dice, ServerProcess, block_on, path, pattern, scaled};

const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
disk_reserve = \"64MiB\"
";

/// What is written over the layers: 19 parts of 8 MiB, of which at most 14 are let through before the kill.
const LARGE: usize = 150 << 20;
const PARTS: u64 = 12;

fn settings(bucket: &S3Server, home: &std::path::Path) -> String {
    let key = home.join("key");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key).unwrap();
    let text = format!("access_key_id = \"{}\"\nsecret_access_key = \"{}\"\n", s3::ACCESS_KEY, s3::SECRET_KEY);
    std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
    format!(
        "{SETTINGS}\n[blobs]\nkind = \"s3\"\nendpoint = \"{}\"\nregion = \"{}\"\nbucket = \"{}\"\nkey_file = \"{}\"\n",
        bucket.endpoint(),
        s3::REGION,
        s3::BUCKET,
        key.display()
    )
}

#[test]
fn a_push_that_is_cut_short_leaves_nothing_that_can_be_pulled() {
    block_on(async {
        let mut dice = Dice::new("push");
        let home = tempfile::tempdir().unwrap();
        let bucket = S3Server::start(&home.path().join("bucket"), 1000).await.unwrap();
        let mut server = ServerProcess::start(&settings(&bucket, home.path())).await;
        let client = server.client();
        let request = CreateSandbox { isolation: Some("container".to_owned()), ..CreateSandbox::default() };
        let sandbox = client.create_sandbox(&request, None).await.unwrap();
        let id = sandbox.id;
        let named = |name: &str| NewSnapshot { name: Some(name.to_owned()), ..NewSnapshot::default() };
        // Layers are sent once: the pushes that are cut short are about the rest.
        client.take_snapshot(&id, &named("first")).await.unwrap();
        client.push_snapshot("first").await.unwrap();
        client.write_file(&id, &path("/tmp/large"), NewFile::default(), pattern(LARGE)).await.unwrap();
        client.take_snapshot(&id, &named("travels")).await.unwrap();
        client.kill_sandbox(&id).await.unwrap();
        let before_all = bucket.keys();
        for round in 0..scaled(4, 200) {
            let parts = usize::try_from(dice.below(PARTS)).unwrap();
            bucket.allow_parts(parts);
            let before = bucket.parts();
            let pushing = tokio::spawn({
                let client = server.client();
                async move { client.push_snapshot("travels").await }
            });
            bucket.parts_taken(before + parts).await;
            server.kill();
            assert!(pushing.await.unwrap().is_err(), "round {round}: nobody was told that it was done");
            assert_eq!(bucket.keys(), before_all, "round {round}, after {parts} parts: nothing new is there");
            bucket.allow_parts(usize::MAX);
            server.restart().await;
            assert_eq!(bucket.uploads_under_way(), 0, "round {round}: the next start ends what was under way");
            let pulled = server.client().pull_snapshot("travels", &NewImport::default()).await;
            assert!(pulled.is_err(), "round {round}: there is nothing to pull");
        }
        let client = server.client();
        let pushed = client.push_snapshot("travels").await.unwrap();
        assert_eq!((pushed.name.as_str(), bucket.keys().len()), ("travels", before_all.len() + 2));
        for name in ["travels", "first"] {
            client.remove_snapshot(name).await.unwrap();
        }
        let pulled = client.pull_snapshot("travels", &NewImport::default()).await.unwrap();
        for fork in client.fork_snapshot(&pulled.id, &NewForks { count: 1, ..NewForks::default() }).await.unwrap() {
            client.kill_sandbox(&fork.sandbox.unwrap().id).await.unwrap();
        }
        client.remove_snapshot(&pulled.id).await.unwrap();
        tokio::time::timeout(Duration::from_secs(60), async { server.stop() }).await.unwrap();
    });
}
