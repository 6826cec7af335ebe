//! Bytes of HTTP: heads up to their empty line, and bodies by their framing. Chunks are read and written anew; trailers are dropped.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::head::Framing;
use crate::counts::Direction;
use crate::relay::pass;
use crate::session::Session;

const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_LINE: usize = 4096;
const PIECE: usize = 32 << 10;
/// Trailers are read and dropped, but not for ever.
const MOST_TRAILERS: usize = 64;

/// What was read from a stream and not used yet.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: Vec<u8>,
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Reader {
    /// What is left, for whoever goes on with the stream.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.bytes
    }

    async fn more(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        let mut piece = vec![0; PIECE];
        let count = from.read(&mut piece).await?;
        self.bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Everything up to and with the empty line; `None` if the stream ended before it began.
    pub(crate) async fn head(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let window = self.bytes.get(searched..).unwrap_or_default();
            if let Some(at) = window.windows(4).position(|four| four == b"\r\n\r\n") {
                let tail = self.bytes.split_off(searched + at + 4);
                return Ok(Some(std::mem::replace(&mut self.bytes, tail)));
            }
            // Two line ends of the wrong kind end a head for some readers.
            if self.bytes.windows(2).any(|two| two == b"\n\n") || self.bytes.len() > LONGEST_HEAD {
                return Err(invalid("the head is too long or malformed"));
            }
            searched = self.bytes.len().saturating_sub(3);
            if self.more(from).await? == 0 {
                return if self.bytes.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    async fn line(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let tail = self.bytes.split_off(at + 1);
                let mut line = std::mem::replace(&mut self.bytes, tail);
                if !line.ends_with(b"\r\n") || line.get(..line.len() - 2).unwrap_or_default().contains(&b'\r') {
                    return Err(invalid("a line has to end with CR LF"));
                }
                line.truncate(line.len() - 2);
                return Ok(line);
            }
            if self.bytes.len() > LONGEST_LINE {
                return Err(invalid("a line is too long"));
            }
            if self.more(from).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Hands a body on.
    pub(crate) async fn body(
        &mut self,
        framing: Framing,
        session: &Session,
        direction: Direction,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.exactly(length, session, direction, from, to).await,
            Framing::Chunked => loop {
                let line = self.line(from).await?;
                let length = chunk_length(&line).ok_or_else(|| invalid("the length of a chunk cannot be read"))?;
                if length == 0 {
                    for _ in 0..MOST_TRAILERS {
                        if self.line(from).await?.is_empty() {
                            return pass(session, direction, b"0\r\n\r\n", to).await;
                        }
                    }
                    return Err(invalid("there are too many trailers"));
                }
                pass(session, direction, format!("{length:x}\r\n").as_bytes(), to).await?;
                self.exactly(length, session, direction, from, to).await?;
                if !self.line(from).await?.is_empty() {
                    return Err(invalid("a chunk is longer than it says"));
                }
                pass(session, direction, b"\r\n", to).await?;
            },
            Framing::UntilEnd => loop {
                let piece = std::mem::take(&mut self.bytes);
                pass(session, direction, &piece, to).await?;
                if self.more(from).await? == 0 {
                    return Ok(());
                }
            },
        }
    }

    async fn exactly(
        &mut self,
        mut length: u64,
        session: &Session,
        direction: Direction,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        while length > 0 {
            if self.bytes.is_empty() && self.more(from).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let taken = self.bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
            let tail = self.bytes.split_off(taken);
            let piece = std::mem::replace(&mut self.bytes, tail);
            pass(session, direction, &piece, to).await?;
            length -= u64::try_from(taken).unwrap_or(length);
        }
        Ok(())
    }
}

/// Hexadecimal digits and nothing else: extensions have no use and many readings.
fn chunk_length(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let plain = (1..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u64::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_one_length() {
        assert_eq!(chunk_length(b"1f"), Some(31));
        for line in [&b""[..], b"0x1", b"-1", b"+1", b" 1", b"1 ", b"1;x=y", b"fffffffffffffffff", b"1\r"] {
            assert_eq!(chunk_length(line), None, "{line:?}");
        }
    }

    #[tokio::test]
    async fn heads_are_cut_at_the_empty_line_and_nowhere_else() {
        let mut reader = Reader::default();
        let mut stream = &b"GET / HTTP/1.1\r\nA: b\r\n\r\nPOST"[..];
        assert_eq!(reader.head(&mut stream).await.unwrap().unwrap(), b"GET / HTTP/1.1\r\nA: b\r\n\r\n");
        assert_eq!(reader.rest(), b"POST");
        assert!(Reader::default().head(&mut &b""[..]).await.unwrap().is_none());
        assert!(Reader::default().head(&mut &b"GET / HTTP/1.1\n\n"[..]).await.is_err());
        assert!(Reader::default().head(&mut &vec![b'a'; LONGEST_HEAD + PIECE][..]).await.is_err());
    }
}
