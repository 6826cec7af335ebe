//! The checks that both places pass.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_ports::{BlobError, Wanted};
use belljar_testkit::{Dice, sha256};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::scene::{Scene, key, of, pieces};

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

pub(crate) async fn what_was_put_is_read_whole_and_in_part(scene: &Scene) {
    let name = key("artifacts/ab/hello");
    assert_eq!(scene.blobs.head(&name).await.unwrap(), None);
    assert!(scene.blobs.get(&name, Wanted::Whole { sha256: HELLO.to_owned() }).await.unwrap().is_none());
    let put = scene.blobs.put(&name, of(vec![Ok("hel".into()), Ok(Bytes::new()), Ok("lo".into())]), 5).await.unwrap();
    assert_eq!((put.bytes, put.sha256.as_str(), put.first.as_slice()), (5, HELLO, b"hello".as_slice()));
    assert_eq!(scene.whole(&name, HELLO).await.unwrap(), b"hello");
    let head = scene.blobs.head(&name).await.unwrap().unwrap();
    assert_eq!((head.key, head.bytes), (name.clone(), 5));
    for (range, expected) in [(0..2, "he"), (1..4, "ell"), (3..900, "lo")] {
        let (bytes, part) = scene.blobs.get(&name, Wanted::Part(range)).await.unwrap().unwrap();
        let part = part.map(Result::unwrap).collect::<Vec<_>>().await.concat();
        assert_eq!((part.as_slice(), bytes), (expected.as_bytes(), expected.len() as u64));
    }
    let beyond = scene.blobs.get(&name, Wanted::Part(5..6)).await;
    assert!(matches!(beyond, Err(BlobError::OutOfRange { bytes: 5, from: 5, .. })));
    scene.blobs.put(&name, of(vec![]), 5).await.unwrap();
    assert_eq!(scene.whole(&name, &sha256(b"")).await.unwrap(), b"");
}

pub(crate) async fn what_needs_many_parts_comes_back_the_same(scene: &Scene) {
    // Around the size of a part, where one is cut off by one or not at all.
    const PART: usize = 8 << 20;
    for (count, size) in [(8, 1 << 20), (1, PART + 1), (3, PART), (37, 999_983)] {
        let name = key(&format!("large/{count}-{size}"));
        let expected = pieces(count, size).try_collect::<Vec<_>>().await.unwrap().concat();
        let put = scene.blobs.put(&name, pieces(count, size), u64::MAX).await.unwrap();
        assert_eq!((put.bytes, put.sha256.as_str()), (expected.len() as u64, sha256(&expected).as_str()));
        assert!(scene.whole(&name, &put.sha256).await.unwrap() == expected);
        let (from, end) = (PART as u64 - 3, put.bytes.min(PART as u64 + 3));
        let (_, part) = scene.blobs.get(&name, Wanted::Part(from..end)).await.unwrap().unwrap();
        let part = part.try_collect::<Vec<_>>().await.unwrap().concat();
        assert_eq!(Some(part.as_slice()), expected.get(PART - 3..usize::try_from(end).unwrap()));
    }
}

pub(crate) async fn what_is_too_large_or_cut_short_leaves_nothing(scene: &Scene) {
    let name = key("artifacts/half");
    for (count, size) in [(2, 3), (30, 1 << 20)] {
        let most = (count * size) as u64 - 1;
        let large = scene.blobs.put(&name, pieces(count, size), most).await;
        assert!(matches!(large, Err(BlobError::TooLarge { most: told }) if told == most), "{large:?}");
        let cut = pieces(count, size).chain(of(vec![Err(ErrorKind::ConnectionReset.into())]));
        let cut = scene.blobs.put(&name, Box::pin(cut), u64::MAX).await;
        assert!(matches!(cut, Err(BlobError::Source(_))), "{cut:?}");
        assert_eq!(scene.blobs.head(&name).await.unwrap(), None);
        assert!(scene.keys("artifacts").await.is_empty());
        if let Some(server) = &scene.server {
            assert_eq!(server.uploads_under_way(), 0);
        }
    }
}

pub(crate) async fn what_was_damaged_is_never_given_as_whole(scene: &Scene) {
    let name = key("artifacts/damaged");
    let put = scene.blobs.put(&name, pieces(11, 1 << 20), u64::MAX).await.unwrap();
    let good = std::fs::read(scene.file(&name)).unwrap();
    let mut dice = Dice::new("blobs");
    for _try in 0..20 {
        let at = usize::try_from(dice.below(good.len() as u64)).unwrap();
        let mut bad = good.clone();
        bad[at] ^= 1 << dice.below(8);
        std::fs::write(scene.file(&name), &bad).unwrap();
        let error = scene.whole(&name, &put.sha256).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "byte {at} was changed: {error}");
        std::fs::write(scene.file(&name), &good[..at]).unwrap();
        assert!(scene.whole(&name, &put.sha256).await.is_err(), "it was cut at {at}");
    }
    std::fs::write(scene.file(&name), &good).unwrap();
    assert_eq!(scene.whole(&name, &put.sha256).await.unwrap().len(), good.len());
}

pub(crate) async fn what_is_removed_is_gone_and_lists_are_by_words(scene: &Scene) {
    for name in ["a/1", "a/2", "a/3", "a/b/4", "a/b/5", "ab/6", "c"] {
        scene.blobs.put(&key(name), of(vec![Ok("x".into())]), 9).await.unwrap();
    }
    assert_eq!(scene.keys("a").await, ["a/1", "a/2", "a/3", "a/b/4", "a/b/5"]);
    assert_eq!(scene.keys("a/b").await, ["a/b/4", "a/b/5"]);
    assert!(scene.keys("nothing").await.is_empty());
    for _twice in 0..2 {
        scene.blobs.remove(&key("a/2")).await.unwrap();
    }
    assert_eq!(scene.keys("a").await, ["a/1", "a/3", "a/b/4", "a/b/5"]);
}

/// Every piece says when it is let go: what is held at one time must not grow with what passes through.
pub(crate) async fn what_is_held_does_not_grow_with_the_blob(scene: &Scene) {
    const PIECE: usize = 1 << 20;
    let held = Arc::new(Held::default());
    let making = Arc::clone(&held);
    let content = stream::iter((0..160).map(move |_number| Ok(Bytes::from_owner(Tracked::new(&making, PIECE)))));
    let put = scene.blobs.put(&key("large/streamed"), Box::pin(content), u64::MAX).await.unwrap();
    assert_eq!(put.bytes, 160 * PIECE as u64);
    assert_eq!(held.now.load(Ordering::SeqCst), 0);
    let most = held.most.load(Ordering::SeqCst);
    assert!(most <= 40 * PIECE, "{most} bytes were held at one time");
}

#[derive(Default)]
struct Held {
    now: AtomicUsize,
    most: AtomicUsize,
}

struct Tracked {
    bytes: Vec<u8>,
    held: Arc<Held>,
}

impl Tracked {
    fn new(held: &Arc<Held>, size: usize) -> Self {
        let now = held.now.fetch_add(size, Ordering::SeqCst) + size;
        held.most.fetch_max(now, Ordering::SeqCst);
        Self { bytes: vec![7; size], held: Arc::clone(held) }
    }
}

impl AsRef<[u8]> for Tracked {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}
