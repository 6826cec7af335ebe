//! Lines from a connection into the sandbox, never longer than what is sensible and never more than one at a time.

use belljar_core::{GuestConnection, GuestError};
use bytes::{Bytes, BytesMut};

/// The longest line: a large picture fits, a sandbox that wants to fill the host's memory does not get far.
pub(crate) const LONGEST: usize = 16 << 20;

/// Why there is no next line.
#[derive(Debug)]
pub(crate) enum NoLine {
    /// The connection failed.
    Guest(GuestError),
    /// The line has no end.
    TooLong,
    /// The connection ended inside a line.
    Torn,
}

/// A connection, read line by line.
pub(crate) struct Lines {
    connection: GuestConnection,
    buffer: BytesMut,
    /// Up to here there is no end of a line.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(connection: GuestConnection) -> Self {
        Self { connection, buffer: BytesMut::new(), searched: 0 }
    }

    /// Sends a line.
    pub(crate) async fn send(&mut self, line: Bytes) -> Result<(), GuestError> {
        self.connection.write(line).await
    }

    /// The next line without its end; `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, NoLine> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', unsearched) {
                let mut line = self.buffer.split_to(self.searched + end + 1);
                line.truncate(line.len() - 1);
                self.searched = 0;
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > LONGEST {
                return Err(NoLine::TooLong);
            }
            match self.connection.read().await.map_err(NoLine::Guest)? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(NoLine::Torn),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use belljar_core::{GuestReader, GuestWriter};

    use super::*;

    /// The bytes of a sandbox, in the pieces in which they came.
    struct Pieces(VecDeque<Bytes>);

    #[async_trait::async_trait]
    impl GuestReader for Pieces {
        async fn read(&mut self) -> Result<Option<Bytes>, GuestError> {
            Ok(self.0.pop_front())
        }
    }

    /// Takes everything.
    struct Nowhere;

    #[async_trait::async_trait]
    impl GuestWriter for Nowhere {
        async fn write(&mut self, _bytes: Bytes) -> Result<(), GuestError> {
            Ok(())
        }

        async fn finish(&mut self) -> Result<(), GuestError> {
            Ok(())
        }
    }

    fn lines(pieces: impl IntoIterator<Item = &'static [u8]>) -> Lines {
        Lines::new(GuestConnection::new(Pieces(pieces.into_iter().map(Bytes::from_static).collect()), Nowhere))
    }

    #[tokio::test]
    async fn a_line_may_come_in_any_pieces() {
        let mut lines = lines([b"a" as &[u8], b"b\nc", b"\n\n", b"d\n"]);
        for expected in ["ab", "c", "", "d"] {
            assert_eq!(lines.next().await.unwrap().unwrap(), expected);
        }
        assert!(lines.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn half_a_line_at_the_end_is_torn() {
        let mut lines = lines([b"a\nb" as &[u8]]);
        assert!(lines.next().await.unwrap().is_some());
        assert!(matches!(lines.next().await, Err(NoLine::Torn)));
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_collected() {
        const PIECE: &[u8] = &[b'x'; 1 << 20];
        let endless = std::iter::repeat_n(PIECE, 1000);
        assert!(matches!(lines(endless).next().await, Err(NoLine::TooLong)));
    }
}
