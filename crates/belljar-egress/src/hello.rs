//! The first message of TLS, read whole: it may come in any number of records and segments, and the name in it counts only when all of it is there.
//!
//! Nothing is guessed from a part: a reader that looks at one record sees no name in a message that was split to hide it.

use tokio::io::{AsyncRead, AsyncReadExt};

use belljar_policy::HostName;

/// More than any honest client sends.
const LARGEST: usize = 64 << 10;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_HELLO: u16 = 0xfe0d;
const HOST_NAME: u8 = 0;

/// What a client said first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The one name it asks for.
    pub(crate) name: Option<HostName>,
    /// Whether another, hidden name may be in it.
    pub(crate) encrypted: bool,
}

/// Why it could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoHello {
    #[error("this is not TLS")]
    NotTls,
    #[error("the first message of TLS is malformed")]
    Malformed,
    #[error("the first message of TLS is too long")]
    TooLong,
    #[error("the connection ended before its first message did")]
    Ended,
}

/// Reads until the message is whole. Returns what it says, and every byte that was read.
pub(crate) async fn read_hello(stream: &mut (impl AsyncRead + Unpin)) -> Result<(Hello, Vec<u8>), NoHello> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        match parse(&bytes)? {
            Some(hello) => return Ok((hello, bytes)),
            None if bytes.len() >= LARGEST => return Err(NoHello::TooLong),
            None => {}
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return Err(NoHello::Ended),
            Ok(count) => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
}

/// `None` if more is needed.
fn parse(bytes: &[u8]) -> Result<Option<Hello>, NoHello> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(length) = message_length(&message)? {
            if length > LARGEST {
                return Err(NoHello::TooLong);
            }
            if let Some(body) = message.get(4..4 + length) {
                return read_body(body).map(Some).ok_or(NoHello::Malformed);
            }
        }
        if rest.first().is_some_and(|kind| *kind != HANDSHAKE) {
            return Err(if message.is_empty() { NoHello::NotTls } else { NoHello::Malformed });
        }
        if rest.get(1).is_some_and(|major| *major != 3) {
            return Err(NoHello::NotTls);
        }
        let Some(head) = rest.first_chunk::<5>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length == 0 || length > (1 << 14) + 256 {
            return Err(NoHello::Malformed);
        }
        // A part of a record is enough to see the length of the message, and never enough to see its end.
        let available = rest.get(5..).unwrap_or_default();
        let taken = available.get(..length);
        message.extend_from_slice(taken.unwrap_or(available));
        match taken {
            Some(_) => rest = available.get(length..).unwrap_or_default(),
            None => {
                return match message_length(&message)? {
                    Some(length) if length > LARGEST => Err(NoHello::TooLong),
                    _ => Ok(None),
                };
            }
        }
    }
}

fn message_length(message: &[u8]) -> Result<Option<usize>, NoHello> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(NoHello::Malformed);
    }
    Ok(message.first_chunk::<4>().map(|head| usize::try_from(u32::from_be_bytes([0, head[1], head[2], head[3]])).unwrap_or(usize::MAX)))
}

fn read_body(body: &[u8]) -> Option<Hello> {
    let mut body = Reader(body);
    body.take(2 + 32)?;
    body.short_list()?;
    body.list()?;
    body.short_list()?;
    let mut hello = Hello { name: None, encrypted: false };
    if body.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(body.list()?);
    let mut seen = false;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.list()?;
        match kind {
            ENCRYPTED_HELLO => hello.encrypted = true,
            // Two of them would let two readers see two names.
            SERVER_NAME if seen => return None,
            SERVER_NAME => {
                seen = true;
                hello.name = Some(read_name(content)?);
            }
            _ => {}
        }
    }
    body.0.is_empty().then_some(hello)
}

fn read_name(content: &[u8]) -> Option<HostName> {
    let mut content = Reader(content);
    let mut names = Reader(content.list()?);
    let kind = names.take(1)?;
    let name = names.list()?;
    let alone = content.0.is_empty() && names.0.is_empty() && kind == [HOST_NAME];
    HostName::from_wire(name).filter(|_| alone)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// Bytes behind a length of two bytes.
    fn list(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }

    /// Bytes behind a length of one byte.
    fn short_list(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests;
