//! A connection to a program inside whose every byte is counted before it goes on. Where a budget ends, so does the connection: what may still go
//! does, and nothing after it.

use std::io;

use async_trait::async_trait;
use belljar_ports::{GuestConnection, GuestError, Toll};
use bytes::Bytes;

use crate::metering::Counts;

pub(super) struct Tolled {
    inner: Box<dyn GuestConnection>,
    counts: Counts,
    over: bool,
}

impl Tolled {
    pub(super) fn new(inner: Box<dyn GuestConnection>, counts: Counts) -> Self {
        Self { inner, counts, over: false }
    }

    /// The part of these bytes that may go.
    fn pay(&mut self, mut bytes: Bytes, toll: impl Fn(&Counts, u64) -> u64) -> Bytes {
        let asked = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let paid = toll(&self.counts, asked);
        if paid < asked {
            self.over = true;
            bytes.truncate(usize::try_from(paid).unwrap_or(0));
        }
        bytes
    }
}

fn used_up(operation: &'static str) -> GuestError {
    GuestError::Lost { operation, source: io::Error::new(io::ErrorKind::QuotaExceeded, "a budget of bytes is used up") }
}

#[async_trait]
impl GuestConnection for Tolled {
    async fn read(&mut self) -> Result<Option<Bytes>, GuestError> {
        if self.over {
            return Err(used_up("read from a port"));
        }
        let Some(bytes) = self.inner.read().await? else { return Ok(None) };
        let may = self.pay(bytes, Toll::leaving);
        if may.is_empty() && self.over { Err(used_up("read from a port")) } else { Ok(Some(may)) }
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), GuestError> {
        let may = self.pay(bytes, Toll::entering);
        if !may.is_empty() {
            self.inner.write(may).await?;
        }
        if self.over { Err(used_up("write to a port")) } else { Ok(()) }
    }

    async fn finish(&mut self) -> Result<(), GuestError> {
        self.inner.finish().await
    }
}
