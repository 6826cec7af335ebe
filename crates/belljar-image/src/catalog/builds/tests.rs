//! Archives from senders that are slow, silent or gone: they have no thread, are given up, and leave nothing.

use std::future::Future;

use belljar_ports::Templates;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::{Catalog, CatalogOptions};

const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(50);
/// What takes longer hangs.
const HANGING: Duration = Duration::from_secs(30);

struct Scene {
    _directory: tempfile::TempDir,
    store: LayerStore,
    project: ProjectId,
    hash: FilesHash,
}

fn scene() -> (Runtime, Scene) {
    let directory = tempfile::tempdir().unwrap();
    let store = LayerStore::open(&directory.path().join("pool")).unwrap();
    let (project, hash) = ("one".parse().unwrap(), "a".repeat(64).parse().unwrap());
    let runtime = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(2).enable_time().build().unwrap();
    (runtime, Scene { _directory: directory, store, project, hash })
}

fn staged(scene: &Scene) -> usize {
    std::fs::read_dir(scene.store.pool().join("staging")).unwrap().count()
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    timeout(HANGING, work).await.unwrap_or_else(|_| panic!("hangs: {what}"))
}

fn saying(first: &'static [u8]) -> FileStream {
    Box::pin(stream::once(async move { Ok(Bytes::from_static(first)) }).chain(stream::pending()))
}

#[test]
fn silent_senders_take_no_threads_and_leave_nothing() {
    let (runtime, scene) = scene();
    runtime.block_on(async {
        let sending = || put_files(&scene.store, &scene.project, &scene.hash, saying(b"some"), NEVER);
        let all = futures_util::future::join_all((0..10).map(|_| sending()));
        let others = async {
            while staged(&scene) < 10 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let catalog = Catalog::new(scene.store.clone(), CatalogOptions::default());
            catalog.find(&scene.project, &"base".parse().unwrap()).await.unwrap()
        };
        let all = Box::pin(all);
        let others = Box::pin(others);
        match in_time("a look for a template beside silent senders", futures_util::future::select(all, others)).await {
            futures_util::future::Either::Right((found, _still_sending)) => assert_eq!(found, None),
            futures_util::future::Either::Left((sent, _)) => panic!("they never end: {sent:?}"),
        }
        let gone = async {
            while staged(&scene) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        in_time("senders that went away are cleared up after", gone).await;
    });
    runtime.shutdown_background();
}

#[test]
fn a_sender_that_falls_silent_is_given_up() {
    let (runtime, scene) = scene();
    runtime.block_on(async {
        for content in [saying(b""), saying(b"some")] {
            let sent = in_time("a silent sender", put_files(&scene.store, &scene.project, &scene.hash, content, SOON)).await;
            let told = belljar_types::chain(&sent.unwrap_err()).to_string();
            assert!(told.contains("nothing came for 0.05 seconds"), "{told}");
            assert_eq!(staged(&scene), 0);
            assert!(scene.store.open_upload(&scene.project, &scene.hash).unwrap().is_none());
        }
    });
}

#[test]
fn what_was_sent_is_what_is_read() {
    let (runtime, scene) = scene();
    runtime.block_on(async {
        let pieces: Vec<_> = [PIECE, 0, 1, 2 * PIECE + 7].iter().map(|length| Ok(Bytes::from(vec![7; *length]))).collect();
        put_files(&scene.store, &scene.project, &scene.hash, Box::pin(stream::iter(pieces)), NEVER).await.unwrap();
        let file = scene.store.open_upload(&scene.project, &scene.hash).unwrap().unwrap();
        let read: Vec<Bytes> = stream_of(file).map(Result::unwrap).collect().await;
        assert_eq!(read.concat(), vec![7; 3 * PIECE + 8]);
        let broken: FileStream = Box::pin(stream::once(async { Err(io::Error::other("gone")) }));
        let other = "b".repeat(64).parse().unwrap();
        put_files(&scene.store, &scene.project, &other, broken, NEVER).await.unwrap_err();
        assert_eq!((staged(&scene), scene.store.open_upload(&scene.project, &other).unwrap().is_none()), (0, true));
    });
}
