//! What a crash leaves half sent is seen by nobody and goes at the next start; and who asks with the wrong key gets nothing.

use belljar_blobs::{open_directory, open_s3};
use belljar_ports::Blobs;
use belljar_testkit::s3;

use crate::scene::{Scene, bucket, key, of, pieces};

#[tokio::test]
async fn a_directory_forgets_what_was_half_written() {
    let scene = Scene::directory();
    scene.blobs.put(&key("a/whole"), of(vec![Ok("x".into())]), 9).await.unwrap();
    let half = scene.home.path().join("blobs/a/half#1");
    std::fs::write(&half, "h").unwrap();
    assert_eq!(scene.keys("a").await, ["a/whole"]);
    let again = open_directory(&scene.home.path().join("blobs")).unwrap();
    assert!(!half.exists());
    assert!(again.head(&key("a/whole")).await.unwrap().is_some());
}

#[tokio::test]
async fn an_upload_that_a_crash_left_is_ended_by_the_next_start() {
    let mut scene = Scene::s3().await;
    let server = scene.server.take().unwrap();
    server.allow_parts(1);
    let blobs = open_s3(bucket(&server, scene.home.path().join("journal"), s3::SECRET_KEY)).await.unwrap();
    let sending = tokio::spawn(async move { blobs.put(&key("a/half"), pieces(60, 1 << 20), u64::MAX).await });
    server.parts_taken(1).await;
    // As a process that is killed: nothing of it runs any more, and nothing was told that it ended.
    sending.abort();
    assert!(sending.await.unwrap_err().is_cancelled());
    assert_eq!((server.uploads_under_way(), server.keys().len()), (1, 0));
    server.allow_parts(usize::MAX);
    let next = open_s3(bucket(&server, scene.home.path().join("journal"), s3::SECRET_KEY)).await.unwrap();
    assert_eq!((server.uploads_under_way(), server.keys().len()), (0, 0));
    assert_eq!(next.head(&key("a/half")).await.unwrap(), None);
    assert_eq!(std::fs::read_dir(scene.home.path().join("journal")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_wrong_key_is_refused_by_the_service() {
    let scene = Scene::s3().await;
    let server = scene.server.as_ref().unwrap();
    let stranger = open_s3(bucket(server, scene.home.path().join("other"), "another secret")).await.unwrap();
    assert!(stranger.put(&key("a/b"), of(vec![Ok("x".into())]), 9).await.is_err());
    assert!(server.keys().is_empty());
    assert!(server.counts().1 > 0);
    scene.blobs.put(&key("a/b"), of(vec![Ok("x".into())]), 9).await.unwrap();
    assert!(stranger.head(&key("a/b")).await.is_err());
}
