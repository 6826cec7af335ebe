//! Lists that are wanted whole: gathered within bounds on their number, their bytes and the time they take.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::GuestError;
use belljar_types::Invalid;

use crate::error::{misbehaved, too_slow};
use crate::exchange::{Asked, Exchange};
use crate::pool::Pool;
use crate::stream::{ItemReader, Reader, Step};

/// All bytes of one list; a hundred thousand files with paths of 400 bytes are 40 MB.
const MOST_BYTES: usize = 64 << 20;

/// A list that comes at once.
pub(crate) async fn all<B, T>(pool: &Arc<Pool>, asked: &Asked, most: u64, limit: Duration) -> Result<Vec<T>, GuestError>
where
    B: for<'b> minicbor::Decode<'b, ()> + 'static,
    T: TryFrom<B, Error = Invalid> + Send + 'static,
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
    T: TryFrom<B, Error = Invalid> + Send + 'static,
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
    T: TryFrom<B, Error = Invalid> + Send + 'static,
{
    let mut reader = ItemReader::<B, T>::new(most);
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        let frame = exchange.receive().await?;
        bytes += frame.body.len();
        if bytes > MOST_BYTES {
            return Err(misbehaved(exchange.verb, "a list that is too long"));
        }
        match reader.take(&exchange, frame)? {
            Step::Give(item) => items.push(item),
            Step::GiveAll(some) => items.extend(some),
            Step::Over => {
                exchange.finish();
                return Ok(items);
            }
        }
    }
}
