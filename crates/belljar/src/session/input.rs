//! Standard input on its way to a process. A thread reads it, because a read of a terminal cannot be called back; when the program ends, nobody waits for it.
//!
//! The thread reads ahead by a bounded number of bytes even while the process takes none, so that the keys that leave are seen then too.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use belljar_client::{ClientError, Feeder};
use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::leave_keys::{LeaveKeys, Typed};
use crate::screen;

const PIECE: usize = 64 << 10;
/// What was read while the last piece was on its way goes together, up to here.
const TOGETHER: usize = 256 << 10;
/// How far reading may be ahead.
const AHEAD: usize = 1 << 20;

/// Why no more input is passed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Standard input ended, or the process takes no more.
    AtEnd,
    /// The person at the terminal wants to leave.
    ByKeys,
}

/// Standard input.
pub(super) struct Input {
    queue: Arc<Queue>,
}

impl Input {
    /// Begins to read. In a raw terminal, the keys that leave are watched for.
    pub(super) fn new(raw: bool) -> Self {
        let queue = Arc::new(Queue::default());
        let filled = Arc::clone(&queue);
        std::thread::spawn(move || {
            read(&filled, std::io::stdin().lock(), raw.then(LeaveKeys::new));
            filled.end();
        });
        Self { queue }
    }

    /// Passes everything on, in order, until it ends.
    pub(super) async fn feed(self, feeder: Feeder) -> Result<Left, ClientError> {
        tokio::select! {
            () = self.queue.leaving.notified() => Ok(Left::ByKeys),
            fed = self.pass_on(feeder) => fed.map(|()| Left::AtEnd),
        }
    }

    async fn pass_on(&self, mut feeder: Feeder) -> Result<(), ClientError> {
        while let Some(bytes) = self.queue.take().await {
            if !feeder.write(bytes).await? {
                return Ok(());
            }
        }
        feeder.close().await
    }
}

fn read(queue: &Queue, mut from: impl Read, mut keys: Option<LeaveKeys>) {
    let mut buffer = vec![0; PIECE];
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => buffer.get(..count).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        match keys.as_mut().map(|keys| keys.take(bytes)) {
            None => queue.put(bytes),
            Some(Typed::Send(bytes)) => queue.put(&bytes),
            Some(Typed::Help(bytes)) => {
                screen::remark("\r\nbelljar: after Enter,  ~.  leaves (the process is sent SIGHUP),  ~~  sends one ~,  ~?  shows this\r");
                queue.put(&bytes);
            }
            Some(Typed::Leave) => return queue.leaving.notify_one(),
        }
    }
}

#[derive(Default)]
struct Ahead {
    bytes: BytesMut,
    ended: bool,
}

/// Bytes between the thread that reads and the task that sends.
#[derive(Default)]
struct Queue {
    ahead: Mutex<Ahead>,
    room: Condvar,
    filled: Notify,
    leaving: Notify,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes; waits first while there are too many.
    fn put(&self, bytes: &[u8]) {
        let full = |ahead: &mut Ahead| ahead.bytes.len() >= AHEAD;
        let mut ahead = self.room.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        ahead.bytes.extend_from_slice(bytes);
        drop(ahead);
        self.filled.notify_one();
    }

    fn end(&self) {
        self.lock().ended = true;
        self.filled.notify_one();
    }

    /// The next bytes; `None` at the end.
    async fn take(&self) -> Option<Bytes> {
        loop {
            {
                let mut ahead = self.lock();
                let count = ahead.bytes.len().min(TOGETHER);
                if count > 0 {
                    self.room.notify_one();
                    return Some(ahead.bytes.split_to(count).freeze());
                }
                if ahead.ended {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_arrives_in_order_however_far_the_reader_is_ahead() {
        let input: Vec<u8> = (0..5_000_000_u32).map(|n| u8::try_from(n % 251).unwrap_or(0)).collect();
        let queue = Arc::new(Queue::default());
        let (filled, source) = (Arc::clone(&queue), input.clone());
        std::thread::spawn(move || {
            read(&filled, source.as_slice(), None);
            filled.end();
        });
        let mut got = Vec::new();
        while let Some(bytes) = queue.take().await {
            assert!(bytes.len() <= TOGETHER);
            got.extend_from_slice(&bytes);
        }
        assert!(got == input);
    }

    #[tokio::test]
    async fn leaving_is_seen_while_nothing_is_taken() {
        let queue = Arc::new(Queue::default());
        let filled = Arc::clone(&queue);
        std::thread::spawn(move || read(&filled, &b"typed into the void\r~."[..], Some(LeaveKeys::new())));
        queue.leaving.notified().await;
    }
}
