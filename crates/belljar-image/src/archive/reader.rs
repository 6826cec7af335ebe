//! Reads tar streams entry by entry with bounded memory.
//!
//! Archives come from strangers. The usual readers take a long name or an extended header of any size into memory before anybody can
//! look at it; this one bounds every header, and hands out file data as it flows.

use std::io::{self, Read};

use super::member::{Attributes, Member, MemberKind, Mtime, Stretch};
use super::pax::PaxRecords;
use super::{ArchiveError, Refusal};

const BLOCK: usize = 512;
/// Extended attributes of 64 KiB each and a path fit in easily.
const EXTENDED_HEADER_MAX: u64 = 1 << 20;
const STRETCHES_MAX: usize = 1 << 16;

/// A tar stream.
pub(crate) struct TarReader<R> {
    input: R,
    data_left: u64,
    padding: u64,
    started: bool,
}

impl<R: Read> TarReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, data_left: 0, padding: 0, started: false }
    }

    /// The next entry; its data is read from `self` before the next call, and skipped if it is not.
    pub(crate) fn next(&mut self) -> Result<Option<Member>, ArchiveError> {
        let mut long_name = None;
        let mut long_link = None;
        let mut pax = PaxRecords::default();
        loop {
            self.skip_data()?;
            let Some(block) = self.header_block()? else { return Ok(None) };
            let header = tar::Header::from_byte_slice(&block);
            let named = |refusal| ArchiveError::Refused { entry: header.path_bytes().into_owned(), reason: refusal };
            let kind = header.as_old().linkflag[0];
            let size = header.entry_size().map_err(|_| named(Refusal::Header("the size is not a number")))?;
            match kind {
                b'L' => long_name = Some(until_nul(self.extended(size).map_err(in_entry(header))?)),
                b'K' => long_link = Some(until_nul(self.extended(size).map_err(in_entry(header))?)),
                b'x' => pax = PaxRecords::parse(&self.extended(size).map_err(in_entry(header))?).map_err(named)?,
                b'g' => {
                    let global = PaxRecords::parse(&self.extended(size).map_err(in_entry(header))?).map_err(named)?;
                    if !global.is_only_comment() {
                        return Err(named(Refusal::Header("a global header changes other entries")));
                    }
                }
                kind => {
                    let size = pax.size().map_err(named)?.unwrap_or(size);
                    // The plain header may have only the beginning of a long name, which may end anywhere.
                    let named_apart = long_name.is_some() || pax.has_path();
                    let mut member = plain_member(header, kind, named_apart).map_err(named)?;
                    if let Some(name) = long_name {
                        member.path = name;
                    }
                    if let Some(link) = long_link {
                        member.link = link;
                    }
                    self.expect_data(if has_data(&member.kind) { size } else { 0 });
                    member.size = size;
                    if kind == b'S' {
                        let (stretches, real_size) = self.stretches(header)?;
                        member.size = real_size;
                        member.kind = MemberKind::File { sparse: Some(stretches) };
                    }
                    let entry = member.path.clone();
                    pax.apply(&mut member).map_err(|reason| ArchiveError::Refused { entry, reason })?;
                    return Ok(Some(member));
                }
            }
        }
    }

    /// What is read from, standing at the data of the current entry until some of it is read.
    pub(crate) fn input(&self) -> &R {
        &self.input
    }

    /// Reads what follows the archive's end, so that a digest over the whole stream covers it.
    pub(crate) fn drain(&mut self) -> Result<(), ArchiveError> {
        io::copy(&mut self.input, &mut io::sink()).map(drop).map_err(ArchiveError::from_read)
    }

    fn expect_data(&mut self, size: u64) {
        self.data_left = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
    }

    fn skip_data(&mut self) -> Result<(), ArchiveError> {
        let skip = self.data_left.saturating_add(self.padding);
        let skipped = io::copy(&mut self.input.by_ref().take(skip), &mut io::sink()).map_err(ArchiveError::from_read)?;
        // The last entry's padding may be missing; missing data may not.
        if skipped < self.data_left {
            return Err(ArchiveError::Archive(Refusal::Damaged("it ends in the middle of a file")));
        }
        self.expect_data(0);
        Ok(())
    }

    /// A header, or `None` at the end of the archive.
    fn header_block(&mut self) -> Result<Option<[u8; BLOCK]>, ArchiveError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.input.read(&mut block[filled..]).map_err(ArchiveError::from_read)? {
                0 if filled == 0 && self.started => return Ok(None),
                0 => return Err(ArchiveError::Archive(Refusal::Damaged("it ends in the middle of a header"))),
                read => filled += read,
            }
        }
        self.started = true;
        if block.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        let header = tar::Header::from_byte_slice(&block);
        let sum = block[..148].iter().chain(&block[156..]).map(|b| u32::from(*b)).sum::<u32>() + 8 * u32::from(b' ');
        if header.cksum().ok() != Some(sum) {
            return Err(ArchiveError::Archive(Refusal::Damaged("a header has a wrong checksum")));
        }
        Ok(Some(block))
    }

    fn extended(&mut self, size: u64) -> Result<Vec<u8>, ArchiveError> {
        if size > EXTENDED_HEADER_MAX {
            return Err(ArchiveError::Archive(Refusal::HeaderSize { limit: EXTENDED_HEADER_MAX }));
        }
        self.expect_data(size);
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes).map_err(ArchiveError::from_read)?;
        Ok(bytes)
    }

    /// The map of a file with holes: four stretches in its header, more in the blocks after it.
    fn stretches(&mut self, header: &tar::Header) -> Result<(Vec<Stretch>, u64), ArchiveError> {
        let named = |refusal| ArchiveError::Refused { entry: header.path_bytes().into_owned(), reason: refusal };
        let gnu = header.as_gnu().ok_or_else(|| named(Refusal::Header("a sparse file needs a GNU header")))?;
        let real_size = gnu.real_size().map_err(|_| named(Refusal::Header("the size is not a number")))?;
        let mut map = SparseMap { stretches: Vec::new(), data_left: self.data_left, real_size };
        map.add(&gnu.sparse).map_err(named)?;
        let mut more = gnu.is_extended();
        while more {
            let mut extension = tar::GnuExtSparseHeader::new();
            self.input.read_exact(extension.as_mut_bytes()).map_err(ArchiveError::from_read)?;
            map.add(extension.sparse()).map_err(named)?;
            more = extension.is_extended();
        }
        if map.data_left != 0 {
            return Err(named(Refusal::Header("a sparse file's map does not match its data")));
        }
        Ok((map.stretches, real_size))
    }
}

impl<R: Read> Read for TarReader<R> {
    /// Data of the current entry.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.data_left).unwrap_or(usize::MAX).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        match self.input.read(&mut buffer[..wanted])? {
            0 => Err(io::Error::other(Refusal::Damaged("it ends in the middle of a file"))),
            read => {
                self.data_left -= read as u64;
                Ok(read)
            }
        }
    }
}

struct SparseMap {
    stretches: Vec<Stretch>,
    data_left: u64,
    real_size: u64,
}

impl SparseMap {
    fn add(&mut self, headers: &[tar::GnuSparseHeader]) -> Result<(), Refusal> {
        const BAD: Refusal = Refusal::Header("a sparse file's map makes no sense");
        for header in headers.iter().filter(|header| !header.is_empty()) {
            let (offset, length) = (header.offset().map_err(|_| BAD)?, header.length().map_err(|_| BAD)?);
            let after = self.stretches.last().map_or(0, |last| last.offset + last.length);
            let end = offset.checked_add(length).ok_or(BAD)?;
            if offset < after || end > self.real_size || self.stretches.len() == STRETCHES_MAX {
                return Err(BAD);
            }
            self.data_left = self.data_left.checked_sub(length).ok_or(BAD)?;
            self.stretches.push(Stretch { offset, length });
        }
        Ok(())
    }
}

fn in_entry(header: &tar::Header) -> impl FnOnce(ArchiveError) -> ArchiveError {
    let entry = header.path_bytes().into_owned();
    |error| match error {
        ArchiveError::Archive(reason @ Refusal::HeaderSize { .. }) => ArchiveError::Refused { entry, reason },
        error => error,
    }
}

fn until_nul(mut name: Vec<u8>) -> Vec<u8> {
    if let Some(end) = name.iter().position(|b| *b == 0) {
        name.truncate(end);
    }
    name
}

fn device(header: &tar::Header) -> Option<(u32, u32)> {
    header.device_major().ok().flatten().zip(header.device_minor().ok().flatten())
}

fn has_data(kind: &MemberKind) -> bool {
    matches!(kind, MemberKind::File { .. } | MemberKind::Unknown(_))
}

fn plain_member(header: &tar::Header, kind: u8, named_apart: bool) -> Result<Member, Refusal> {
    let path = header.path_bytes().into_owned();
    let number = |_| Refusal::Header("an owner, mode or time is not a number");
    let kind = match kind {
        // Archives older than the directory type mark directories by a slash.
        b'\0' | b'0' | b'7' if !named_apart && path.ends_with(b"/") => MemberKind::Directory,
        b'\0' | b'0' | b'7' | b'S' => MemberKind::File { sparse: None },
        b'1' => MemberKind::HardLink,
        b'2' => MemberKind::Symlink,
        b'3' if device(header) == Some((0, 0)) => MemberKind::Whiteout,
        b'3' | b'4' => MemberKind::Device,
        b'5' => MemberKind::Directory,
        b'6' => MemberKind::Fifo,
        other => MemberKind::Unknown(other),
    };
    let attributes = Attributes {
        mode: header.mode().map_err(number)? & 0o7777,
        uid: header.uid().map_err(number)?,
        gid: header.gid().map_err(number)?,
        // Times before 1970 are stored as two's complement.
        mtime: Mtime { seconds: header.mtime().map_err(number)?.cast_signed(), nanoseconds: 0 },
        xattrs: Vec::new(),
    };
    Ok(Member { path, kind, link: header.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default(), attributes, size: 0 })
}
