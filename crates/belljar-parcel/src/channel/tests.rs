//! Ends that say nothing and take nothing: they are given up, and until then the others go on.

use futures_util::{FutureExt, TryStreamExt};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::unpacking::read_manifest;

/// Nobody is given up during a test.
const NEVER: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(50);
/// What takes longer hangs.
const HANGING: Duration = Duration::from_secs(30);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).max_blocking_threads(2).enable_time().build().unwrap()
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    timeout(HANGING, work).await.unwrap_or_else(|_| panic!("hangs: {what}"))
}

fn saying(first: &'static [u8]) -> BlobStream {
    Box::pin(stream::once(async move { Ok(Bytes::from_static(first)) }).chain(stream::pending()))
}

/// More than what may be on its way.
fn fill(out: &mut Outgoing) -> io::Result<()> {
    (0..20).try_for_each(|_| out.write_all(&[7; PIECE]))
}

#[test]
fn silent_senders_leave_threads_for_others() {
    let runtime = runtime();
    runtime.block_on(async {
        let passage = Passage::new(1, NEVER);
        let mut waiting: Vec<_> = (0..50).map(|_| Box::pin(read_manifest(&passage, Box::pin(stream::pending())))).collect();
        for opening in &mut waiting {
            assert!(opening.now_or_never().is_none());
        }
        in_time("work beside silent senders", tokio::task::spawn_blocking(|| ())).await.unwrap();
    });
    runtime.shutdown_background();
}

#[test]
fn readers_that_take_nothing_leave_threads_for_others() {
    let runtime = runtime();
    runtime.block_on(async {
        let passage = Passage::new(1, NEVER);
        let (mut waiting, mut begun) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            let mut sending = Box::pin(passage.send_out(fill));
            match (&mut sending).now_or_never() {
                Some(stream) => begun.push(stream),
                None => waiting.push(sending),
            }
        }
        assert_eq!((begun.len(), waiting.len()), (1, 49));
        in_time("work beside readers that take nothing", tokio::task::spawn_blocking(|| ())).await.unwrap();
    });
    runtime.shutdown_background();
}

#[test]
fn a_sender_that_falls_silent_is_given_up() {
    let runtime = runtime();
    runtime.block_on(async {
        let passage = Passage::new(1, SOON);
        let empty: BlobStream = Box::pin(stream::repeat_with(|| Ok(Bytes::new())).then(|piece| async {
            tokio::task::yield_now().await;
            piece
        }));
        for content in [saying(b""), saying(b"bell"), saying(b"belljar snapshot\n\x01\0\0\0\x08\0\0\0mani"), empty] {
            match in_time("a silent sender", read_manifest(&passage, content)).await {
                Err(ParcelError::Source(error)) => {
                    assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::TimedOut, "nothing came for 0.05 seconds"));
                }
                other => panic!("{:?}", other.map(drop)),
            }
        }
    });
    runtime.shutdown_background();
}

#[test]
fn a_reader_that_takes_nothing_is_given_up_and_told() {
    let runtime = runtime();
    runtime.block_on(async {
        let passage = Passage::new(1, SOON);
        let stuck = passage.send_out(fill).await;
        let next = in_time("the next, behind a reader that takes nothing", passage.send_out(|out| out.write_all(b"next"))).await;
        assert_eq!(next.map_ok(|piece| piece.to_vec()).try_concat().await.unwrap(), b"next");
        let ended = in_time("its stream", stuck.try_for_each(|_| async { Ok(()) })).await.unwrap_err();
        assert_eq!((ended.kind(), ended.to_string().as_str()), (io::ErrorKind::TimedOut, "nothing was taken for 0.05 seconds"));
    });
    runtime.shutdown_background();
}

#[test]
fn what_is_written_arrives_with_the_error_behind_it() {
    let runtime = runtime();
    runtime.block_on(async {
        let passage = Passage::new(1, NEVER);
        for fails in [false, true] {
            let work = move |out: &mut Outgoing| {
                fill(out)?;
                if fails { Err(io::Error::other("a bad disk")) } else { out.write_all(b"x") }
            };
            let mut arrived = 0;
            let ended = passage.send_out(work).await.try_for_each(|piece| {
                arrived += piece.len();
                async { Ok(()) }
            });
            let told = in_time("a stream that is read", ended).await.err().map(|error| error.to_string());
            assert_eq!((arrived, told), if fails { (20 * PIECE, Some("a bad disk".to_owned())) } else { (20 * PIECE + 1, None) });
        }
    });
    runtime.shutdown_background();
}
