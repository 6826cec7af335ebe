//! Archives, honest and hostile, written byte by byte: an ordinary tar writer refuses to make the hostile ones.

use std::io::{Read, Write};

const BLOCK: usize = 512;

/// One entry, with its headers as they will be written.
#[derive(Clone)]
pub(crate) struct Entry {
    name: Vec<u8>,
    link: Vec<u8>,
    kind: u8,
    mode: u32,
    owner: (u32, u32),
    device: (u32, u32),
    mtime: u64,
    content: Content,
    pax: Vec<(String, Vec<u8>)>,
    long_name: Option<Vec<u8>>,
    sparse: Option<(u64, Vec<(u64, u64)>)>,
}

#[derive(Clone)]
enum Content {
    Bytes(Vec<u8>),
    Zeros(u64),
    /// Only the header is written, promising this much.
    Promised(u64),
}

impl Entry {
    pub(crate) fn kind(name: &str, kind: u8) -> Self {
        Self {
            name: name.into(),
            link: Vec::new(),
            kind,
            mode: 0o644,
            owner: (0, 0),
            device: (0, 0),
            mtime: 1_700_000_000,
            content: Content::Bytes(Vec::new()),
            pax: Vec::new(),
            long_name: None,
            sparse: None,
        }
    }

    pub(crate) fn file(name: &str, content: &[u8]) -> Self {
        Self { content: Content::Bytes(content.to_vec()), ..Self::kind(name, b'0') }
    }

    pub(crate) fn raw_name(name: &[u8], content: &[u8]) -> Self {
        Self { name: name.to_vec(), ..Self::file("", content) }
    }

    pub(crate) fn zeros(name: &str, size: u64) -> Self {
        Self { content: Content::Zeros(size), ..Self::kind(name, b'0') }
    }

    /// Bytes that do not compress, the same every time.
    pub(crate) fn noise(name: &str, size: usize) -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        };
        Self::file(name, &(0..size).map(|_| next()).collect::<Vec<_>>())
    }

    pub(crate) fn directory(name: &str) -> Self {
        Self { mode: 0o755, ..Self::kind(name, b'5') }
    }

    pub(crate) fn symlink(name: &str, target: &str) -> Self {
        Self { link: target.into(), mode: 0o777, ..Self::kind(name, b'2') }
    }

    pub(crate) fn hard_link(name: &str, target: &str) -> Self {
        Self { link: target.into(), ..Self::kind(name, b'1') }
    }

    pub(crate) fn device(name: &str, kind: u8, major: u32, minor: u32) -> Self {
        Self { device: (major, minor), ..Self::kind(name, kind) }
    }

    pub(crate) fn gnu_long(name: &str, content: &[u8]) -> Self {
        Self { long_name: Some(name.into()), ..Self::file("short", content) }
    }

    /// A file whose name may be longer than a plain header holds.
    pub(crate) fn file_of_any_name(name: &str, content: &[u8]) -> Self {
        if name.len() < 100 { Self::file(name, content) } else { Self::gnu_long(name, content) }
    }

    pub(crate) fn gnu_long_header(size: u64) -> Self {
        Self { content: Content::Promised(size), ..Self::kind("././@LongLink", b'L') }
    }

    pub(crate) fn global_pax(key: &str, value: &[u8]) -> Self {
        Self { content: Content::Bytes(pax_record(key, value)), ..Self::kind("pax_global_header", b'g') }
    }

    /// A GNU sparse file: `stretches` of data in a file of `size`.
    pub(crate) fn sparse(name: &str, size: u64, stretches: &[(u64, &[u8])]) -> Self {
        let content = stretches.iter().flat_map(|(_, data)| data.iter().copied()).collect();
        let map = stretches.iter().map(|(offset, data)| (*offset, data.len() as u64)).collect();
        Self { content: Content::Bytes(content), sparse: Some((size, map)), ..Self::kind(name, b'S') }
    }

    pub(crate) fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    pub(crate) fn owner(self, uid: u32, gid: u32) -> Self {
        Self { owner: (uid, gid), ..self }
    }

    pub(crate) fn mtime(self, mtime: u64) -> Self {
        Self { mtime, ..self }
    }

    pub(crate) fn pax(mut self, key: &str, value: &[u8]) -> Self {
        self.pax.push((key.to_owned(), value.to_vec()));
        self
    }

    fn write(&self, out: &mut dyn Write) {
        if let Some(name) = &self.long_name {
            Self { content: Content::Bytes([name, &b"\0"[..]].concat()), ..Self::kind("././@LongLink", b'L') }.write(out);
        }
        if !self.pax.is_empty() {
            let records = self.pax.iter().flat_map(|(key, value)| pax_record(key, value)).collect();
            Self { content: Content::Bytes(records), ..Self::kind("pax", b'x') }.write(out);
        }
        let size = match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Zeros(size) | Content::Promised(size) => *size,
        };
        out.write_all(&self.header(size)).unwrap();
        match &self.content {
            Content::Bytes(bytes) => out.write_all(bytes).unwrap(),
            Content::Zeros(size) => drop(std::io::copy(&mut std::io::repeat(0).take(*size), out).unwrap()),
            Content::Promised(_) => return,
        }
        let padding = usize::try_from(size.wrapping_neg() % BLOCK as u64).unwrap();
        out.write_all(&vec![0; padding]).unwrap();
    }

    fn header(&self, size: u64) -> [u8; BLOCK] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(self.mode);
        header.set_uid(self.owner.0.into());
        header.set_gid(self.owner.1.into());
        header.set_mtime(self.mtime);
        header.set_size(size);
        header.set_device_major(self.device.0).unwrap();
        header.set_device_minor(self.device.1).unwrap();
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..self.name.len()].copy_from_slice(&self.name);
        gnu.linkname[..self.link.len()].copy_from_slice(&self.link);
        gnu.typeflag[0] = self.kind;
        if let Some((real_size, map)) = &self.sparse {
            gnu.set_real_size(*real_size);
            for (slot, (offset, length)) in gnu.sparse.iter_mut().zip(map) {
                slot.set_offset(*offset);
                slot.set_length(*length);
            }
        }
        header.set_cksum();
        *header.as_bytes()
    }
}

fn pax_record(key: &str, value: &[u8]) -> Vec<u8> {
    let payload = key.len() + value.len() + 3;
    let mut length = payload + 1;
    while payload + length.to_string().len() != length {
        length = payload + length.to_string().len();
    }
    [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
}

/// A tar in the making.
#[derive(Clone, Default)]
pub(crate) struct Archive {
    entries: Vec<Entry>,
}

impl Archive {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    fn write(&self, out: &mut dyn Write) {
        for entry in &self.entries {
            entry.write(out);
        }
    }

    /// Without the blocks that end an archive.
    pub(crate) fn unfinished(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    pub(crate) fn tar(&self) -> Vec<u8> {
        let mut out = self.unfinished();
        out.extend([0; 2 * BLOCK]);
        out
    }

    pub(crate) fn gzip(&self) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        self.write(&mut out);
        out.write_all(&[0; 2 * BLOCK]).unwrap();
        out.finish().unwrap()
    }

    pub(crate) fn zstd(&self) -> Vec<u8> {
        let mut out = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        self.write(&mut out);
        out.write_all(&[0; 2 * BLOCK]).unwrap();
        out.finish().unwrap()
    }
}
