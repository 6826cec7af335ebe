//! Lists that are wanted whole: gathered within bounds on their number, their bytes and the time they take.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::GuestError;
use belljar_types::{FileInfo, Invalid, ListeningPort, ProcessInfo};

use crate::error::{misbehaved, too_slow};
use crate::exchange::{Asked, Exchange};
use crate::pool::Pool;
use crate::stream::{ItemReader, Reader, Step};

/// All bytes of one list; a hundred thousand files with paths of 400 bytes are 40 MB.
const MOST_BYTES: usize = 64 << 20;

/// The room that an item takes here. It can be far more than its bytes on the way: an empty argument is one byte there.
pub(crate) trait Weigh: Sized {
    /// In bytes, beyond the item itself and what it brought along.
    fn extra(&self) -> usize {
        0
    }
}

impl Weigh for FileInfo {}
impl Weigh for ListeningPort {}

impl Weigh for ProcessInfo {
    fn extra(&self) -> usize {
        self.argv.len() * size_of::<Vec<u8>>()
    }
}

/// A list that comes at once.
pub(crate) async fn all<B, T>(pool: &Arc<Pool>, asked: &Asked, most: u64, limit: Duration) -> Result<Vec<T>, GuestError>
where
    B: for<'b> minicbor::Decode<'b, ()> + 'static,
    T: TryFrom<B, Error = Invalid> + Weigh + Send + 'static,
{
    let work = async {
        let exchange = Exchange::open(pool, asked).await?;
        gather::<B, T>(exchange, most).await
    };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(too_slow(asked.verb)))
}

/// A list that comes after an answer.
pub(crate) async fn after_answer<B, T>(pool: &Arc<Pool>, asked: &Asked, most: u64, limit: Duration) -> Result<Vec<T>, GuestError>
where
    B: for<'b> minicbor::Decode<'b, ()> + 'static,
    T: TryFrom<B, Error = Invalid> + Weigh + Send + 'static,
{
    let work = async {
        let (exchange, ()) = Exchange::ask(pool, asked, limit).await?;
        gather::<B, T>(exchange, most).await
    };
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(too_slow(asked.verb)))
}

async fn gather<B, T>(mut exchange: Exchange, most: u64) -> Result<Vec<T>, GuestError>
where
    B: for<'b> minicbor::Decode<'b, ()> + 'static,
    T: TryFrom<B, Error = Invalid> + Weigh + Send + 'static,
{
    let mut reader = ItemReader::<B, T>::new(most);
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        let frame = exchange.receive().await?;
        bytes += frame.body.len();
        let some = match reader.take(&exchange, frame)? {
            Step::Give(item) => vec![item],
            Step::GiveAll(some) => some,
            Step::Over => {
                exchange.finish();
                return Ok(items);
            }
        };
        bytes += some.iter().map(Weigh::extra).sum::<usize>();
        if bytes > MOST_BYTES {
            return Err(misbehaved(exchange.verb, "a list that is too long"));
        }
        items.extend(some);
    }
}
