//! The little of netlink that is needed: one request, its answers, its acknowledgement, without waiting and without a process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;
pub(super) const CREATE_NEW: u16 = 0x400 | 0x200;
pub(super) const CREATE_OR_REPLACE: u16 = 0x400 | 0x100;
const NESTED: u16 = 0x8000;

/// A message being written: header, fixed part, attributes.
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    pub(super) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut request = Self { bytes: vec![0; HEADER] };
        request.bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        request.bytes[6..8].copy_from_slice(&(flags | REQUEST | ACKNOWLEDGE).to_ne_bytes());
        request.raw(fixed);
        request
    }

    pub(super) fn dump(kind: u16, fixed: &[u8]) -> Self {
        Self::new(kind, DUMP, fixed)
    }

    /// Bytes outside any attribute, padded as netlink wants it.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(value.len() + 4).expect("attributes here are a few bytes");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.raw(value);
    }

    pub(super) fn text(&mut self, kind: u16, value: &str) {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes);
    }

    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.attribute(kind | NESTED, &[]);
        fill(self);
        let length = u16::try_from(self.bytes.len() - start).expect("nested attributes here are a few hundred bytes");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("a request is a few hundred bytes");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// A netlink socket; it stays in the network namespace in which it was made.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    pub(super) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        Ok(Self { socket: socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)? })
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Sends a request and returns the bodies of its answers (without their headers) once the kernel is done with it.
    pub(super) fn call(&self, request: Request) -> io::Result<Vec<Vec<u8>>> {
        send(&self.socket, &request.finish(), SendFlags::empty())?;
        let mut answers = Vec::new();
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            let (length, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let mut rest = buffer.get(..length).unwrap_or_default();
            while let Some((kind, body, next)) = message(rest) {
                rest = next;
                match kind {
                    ERROR => {
                        let code = body.get(..4).map_or(0, |bytes| i32::from_ne_bytes(bytes.try_into().expect("four bytes")));
                        return if code == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-code)) };
                    }
                    DONE => return Ok(answers),
                    _ => answers.push(body.to_vec()),
                }
            }
        }
    }
}

fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(HEADER..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The attributes in a message, with nesting and byte-order marks taken off their kinds.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}
