//! The parts of a parcel, written and read one after the other.

use std::io::{self, Read, Write};

use belljar_ports::ParcelError;
use sha2::{Digest, Sha256};

pub(crate) const MAGIC: &[u8; 17] = b"belljar snapshot\n";
/// The newest format known here.
pub(crate) const VERSION: u32 = 1;
const LONGEST_NAME: u32 = 256;
const LONGEST_PIECE: usize = 256 << 10;

/// Writes what comes before all parts.
pub(crate) fn begin(out: &mut impl Write) -> io::Result<()> {
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())
}

/// Reads what comes before all parts, and refuses what is something else or newer.
pub(crate) fn expect_beginning(input: &mut impl Read) -> Result<(), ParcelError> {
    let mut magic = [0; MAGIC.len()];
    read_exact(input, &mut magic, "its beginning").map_err(|error| match error {
        // A file that is shorter than that is something else.
        ParcelError::CutShort { .. } => ParcelError::Foreign,
        other => other,
    })?;
    if magic != *MAGIC {
        return Err(ParcelError::Foreign);
    }
    match read_number(input, "its beginning")? {
        VERSION => Ok(()),
        found if found > VERSION => Err(ParcelError::Newer { found, known: VERSION }),
        found => Err(ParcelError::Damaged { part: "its beginning".to_owned(), reason: format!("there is no format {found}") }),
    }
}

/// One part that is being written.
pub(crate) struct PartWriter<W: Write> {
    out: W,
    hash: Sha256,
    buffer: Vec<u8>,
}

impl<W: Write> PartWriter<W> {
    pub(crate) fn begin(mut out: W, name: &str) -> io::Result<Self> {
        let length = u32::try_from(name.len()).ok().filter(|length| *length <= LONGEST_NAME);
        out.write_all(&length.ok_or(io::ErrorKind::InvalidInput)?.to_le_bytes())?;
        out.write_all(name.as_bytes())?;
        let mut hash = Sha256::new();
        hash.update(name);
        Ok(Self { out, hash, buffer: Vec::with_capacity(LONGEST_PIECE) })
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.send()?;
        self.out.write_all(&0u32.to_le_bytes())?;
        self.out.write_all(&self.hash.finalize())
    }

    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.hash.update(&self.buffer);
        let length = u32::try_from(self.buffer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for PartWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(LONGEST_PIECE - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == LONGEST_PIECE {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One part that is being read.
pub(crate) struct PartReader<R: Read> {
    input: R,
    name: String,
    hash: Sha256,
    /// Bytes of the current piece that were not read yet.
    left: u32,
    ended: bool,
}

impl<R: Read> PartReader<R> {
    /// The part that must come next.
    pub(crate) fn expect(mut input: R, name: &str) -> Result<Self, ParcelError> {
        let length = read_number(&mut input, name)?;
        let mut found = vec![0; usize::try_from(length.min(LONGEST_NAME)).unwrap_or(0)];
        read_exact(&mut input, &mut found, name)?;
        if length > LONGEST_NAME || found != name.as_bytes() {
            return Err(ParcelError::Damaged { part: name.to_owned(), reason: "another part is in its place".to_owned() });
        }
        let mut hash = Sha256::new();
        hash.update(name);
        Ok(Self { input, name: name.to_owned(), hash, left: 0, ended: false })
    }

    /// Reads what is left of it, and checks its digest: until then nothing that was read may be believed.
    pub(crate) fn finish(mut self) -> Result<(), ParcelError> {
        io::copy(&mut self, &mut io::sink()).map_err(|error| told(error, &self.name))?;
        let mut expected = [0; 32];
        read_exact(&mut self.input, &mut expected, &self.name)?;
        if self.hash.finalize().as_slice() != expected.as_slice() {
            return Err(ParcelError::Damaged { part: self.name, reason: "its digest is another".to_owned() });
        }
        Ok(())
    }
}

impl<R: Read> Read for PartReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            let length = read_number(&mut self.input, &self.name).map_err(io::Error::other)?;
            if length == 0 {
                self.ended = true;
                return Ok(0);
            }
            if length as usize > LONGEST_PIECE {
                let reason = "a length makes no sense".to_owned();
                return Err(io::Error::other(ParcelError::Damaged { part: self.name.clone(), reason }));
            }
            self.left = length;
        }
        let wanted = buffer.len().min(self.left as usize);
        let read = self.input.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(io::Error::other(ParcelError::CutShort { part: self.name.clone() }));
        }
        self.hash.update(&buffer[..read]);
        self.left -= u32::try_from(read).unwrap_or(self.left);
        Ok(read)
    }
}

/// The end of everything: a part without content, and nothing after it.
pub(crate) fn expect_end(input: &mut impl Read) -> Result<(), ParcelError> {
    PartReader::expect(&mut *input, "end")?.finish()?;
    match input.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(ParcelError::Damaged { part: "end".to_owned(), reason: "something follows it".to_owned() }),
        Err(error) => Err(ParcelError::Source(error)),
    }
}

/// What went wrong below a reader that can only speak of I/O.
pub(crate) fn told(error: io::Error, part: &str) -> ParcelError {
    match error.downcast::<ParcelError>() {
        Ok(inner) => inner,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => ParcelError::CutShort { part: part.to_owned() },
        Err(error) => ParcelError::Source(error),
    }
}

fn read_number(input: &mut impl Read, part: &str) -> Result<u32, ParcelError> {
    let mut bytes = [0; 4];
    read_exact(input, &mut bytes, part)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_exact(input: &mut impl Read, buffer: &mut [u8], part: &str) -> Result<(), ParcelError> {
    input.read_exact(buffer).map_err(|error| told(error, part))
}
