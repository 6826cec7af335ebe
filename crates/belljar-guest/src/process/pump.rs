//! Moves a process's output into its spool, and decides what happens when that is full.
//!
//! | choice | a reader is attached | nobody reads |
//! |---|---|---|
//! | drop oldest | waits for the reader while it keeps taking; forgets once it stops for [`STALL`] | forgets the oldest |
//! | slow | waits for all readers, however long | waits |
//! | kill | waits for the readers while they keep taking; kills once they stop for [`STALL`] | kills |

use std::rc::Rc;
use std::time::Duration;

use belljar_types::{KillCause, Offsets, Overflow, StreamKind};

use super::channel::Channel;
use super::record::Process;

const PIECE: usize = 64 << 10;
/// After how long without progress a reader is no longer waited for.
const STALL: Duration = Duration::from_secs(1);
/// What a pipe can still hold when its writer is dead: it is taken whatever the policy, since nobody can write more.
const LEFT_IN_PIPE: usize = 64 << 10;

/// Reads until the end of the stream.
pub(super) async fn run(process: Rc<Process>, stream: StreamKind, channel: Rc<Channel>) {
    let mut buffer = vec![0u8; PIECE];
    loop {
        let room = process.room_in(stream);
        let wanted = if room > 0 {
            room.min(PIECE)
        } else if process.died.get().is_some() {
            PIECE
        } else {
            match process.wait_for_room().await {
                Full::TryAgain => continue,
                // One byte more than fits is the proof that it writes more than its spool holds.
                Full::OneMoreIsTooMany => 1,
            }
        };
        let count = match channel.read(buffer.get_mut(..wanted).unwrap_or_default()).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if room == 0 && process.died.get().is_none() && process.policy.overflow == Overflow::Kill && process.room_in(stream) == 0 {
            process.kill(KillCause::Overflow);
            // The pipe stays open until then, or the writer would die of its closing and not of its judgement.
            process.gone().await;
            break;
        }
        let extra = if process.died.get().is_some() && process.policy.overflow == Overflow::Slow { LEFT_IN_PIPE } else { 0 };
        process.spool(stream).borrow_mut().push(bytes, extra);
        process.changed.notify_waiters();
    }
    process.open_streams.set(process.open_streams.get() - 1);
    process.changed.notify_waiters();
}

enum Full {
    TryAgain,
    OneMoreIsTooMany,
}

impl Process {
    /// How many bytes may be taken now.
    fn room_in(&self, stream: StreamKind) -> usize {
        let floor = self.floor(stream);
        let room = self.spool(stream).borrow_mut().room(floor);
        // Memory for all is short: what exited long ago makes place for what runs.
        if room < 4096 && self.owner.upgrade().is_some_and(|owner| owner.budget.is_tight() && owner.make_room()) {
            return self.spool(stream).borrow_mut().room(floor);
        }
        room
    }

    /// The offset before which everything may be forgotten.
    fn floor(&self, stream: StreamKind) -> u64 {
        let readers = self.readers.borrow();
        let drop_oldest = self.policy.overflow == Overflow::DropOldest;
        let counted = readers.values().filter(|reader| !(drop_oldest && reader.stalled));
        let at = |offsets: Offsets| match stream {
            StreamKind::Stdout => offsets.stdout,
            StreamKind::Stderr => offsets.stderr,
        };
        let nobody = if drop_oldest { u64::MAX } else { 0 };
        // What a server has taken it may not have passed on when it dies: half the spool is kept for whoever comes back for it.
        let history = if drop_oldest { 0 } else { u64::from(self.policy.capacity / 2) };
        counted.map(|reader| at(reader.acknowledged).saturating_sub(history)).min().unwrap_or(nobody)
    }

    async fn wait_for_room(&self) -> Full {
        let room = self.room.notified();
        match self.policy.overflow {
            Overflow::Slow => room.await,
            Overflow::Kill if self.readers.borrow().is_empty() => return Full::OneMoreIsTooMany,
            Overflow::Kill => {
                if tokio::time::timeout(STALL, room).await.is_err() {
                    return Full::OneMoreIsTooMany;
                }
            }
            Overflow::DropOldest => {
                if tokio::time::timeout(STALL, room).await.is_err() {
                    for reader in self.readers.borrow_mut().values_mut() {
                        reader.stalled = true;
                    }
                }
            }
        }
        Full::TryAgain
    }
}
