//! Bytes in both directions, counted and paced, until both sides have said all.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::counts::Direction;
use crate::session::Session;

const PIECE: usize = 32 << 10;

/// Anything that bytes go through.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Why a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both sides were done, or one was gone.
    Done,
    /// A limit or a budget of bytes was reached.
    Spent,
}

/// Relays until both sides are done.
pub(crate) async fn relay(session: &Session, client: impl Stream, upstream: impl Stream) -> Ended {
    let (client_read, client_write) = tokio::io::split(client);
    let (upstream_read, upstream_write) = tokio::io::split(upstream);
    let out = pump(session, Direction::Out, client_read, upstream_write);
    let back = pump(session, Direction::In, upstream_read, client_write);
    match tokio::try_join!(out, back) {
        Ok(_) => Ended::Done,
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => Ended::Spent,
        Err(_) => Ended::Done,
    }
}

async fn pump(
    session: &Session,
    direction: Direction,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let count = from.read(&mut piece).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        pass(session, direction, piece.get(..count).unwrap_or_default(), &mut to).await?;
    }
}

/// Hands bytes on, as many as may still go.
pub(crate) async fn pass(session: &Session, direction: Direction, bytes: &[u8], to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let paid = usize::try_from(session.spend(direction, u64::try_from(bytes.len()).unwrap_or(u64::MAX)).await).unwrap_or(usize::MAX);
    let (may, may_not) = bytes.split_at_checked(paid).unwrap_or((bytes, &[]));
    to.write_all(may).await?;
    if may_not.is_empty() { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
}
