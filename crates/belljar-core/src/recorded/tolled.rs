//! A connection to a program inside whose every byte is counted before it goes on. Where a budget ends, so does the connection: what may still go
//! does, and nothing after it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use belljar_ports::{GuestConnection, GuestError, GuestReader, GuestWriter, Toll};
use bytes::Bytes;

use crate::metering::Counts;

/// One direction of a connection.
struct Tolled<D: ?Sized> {
    inner: Box<D>,
    counts: Counts,
    /// Of both directions: the connection is over with either.
    over: Arc<AtomicBool>,
}

/// The same connection, counted.
pub(super) fn tolled(connection: GuestConnection, counts: &Counts) -> GuestConnection {
    let (reader, writer) = connection.split();
    let over = Arc::new(AtomicBool::new(false));
    let reader = Tolled { inner: reader, counts: counts.clone(), over: Arc::clone(&over) };
    GuestConnection::new(reader, Tolled { inner: writer, counts: counts.clone(), over })
}

impl<D: ?Sized> Tolled<D> {
    /// The part of these bytes that may go.
    fn pay(&self, mut bytes: Bytes, toll: impl Fn(&Counts, u64) -> u64) -> Bytes {
        let asked = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let paid = toll(&self.counts, asked);
        if paid < asked {
            self.over.store(true, Ordering::Release);
            bytes.truncate(usize::try_from(paid).unwrap_or(0));
        }
        bytes
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

fn used_up(operation: &'static str) -> GuestError {
    GuestError::Lost { operation, source: io::Error::new(io::ErrorKind::QuotaExceeded, "a budget of bytes is used up") }
}

#[async_trait]
impl GuestReader for Tolled<dyn GuestReader> {
    async fn read(&mut self) -> Result<Option<Bytes>, GuestError> {
        if self.is_over() {
            return Err(used_up("read from a port"));
        }
        let Some(bytes) = self.inner.read().await? else { return Ok(None) };
        let may = self.pay(bytes, Toll::leaving);
        if may.is_empty() && self.is_over() { Err(used_up("read from a port")) } else { Ok(Some(may)) }
    }
}

#[async_trait]
impl GuestWriter for Tolled<dyn GuestWriter> {
    async fn write(&mut self, bytes: Bytes) -> Result<(), GuestError> {
        let may = self.pay(bytes, Toll::entering);
        if !may.is_empty() {
            self.inner.write(may).await?;
        }
        if self.is_over() { Err(used_up("write to a port")) } else { Ok(()) }
    }

    async fn finish(&mut self) -> Result<(), GuestError> {
        self.inner.finish().await
    }
}
