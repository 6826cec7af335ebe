//! Archives from strangers: how they are read, what they may hold, and how they are unpacked without ever leaving a directory.

mod decompress;
mod limits;
mod member;
pub(crate) mod pack;
mod path;
mod pax;
mod reader;
mod refusal;
pub(crate) mod tree;
mod unpack;

pub(crate) use decompress::Decompressed;
pub use limits::ArchiveLimits;
pub(crate) use member::MemberKind;
pub(crate) use path::EntryPath;
pub(crate) use reader::TarReader;
pub use refusal::{ArchiveError, Refusal};
pub use unpack::ArchiveForm;
pub(crate) use unpack::{unpack, unpack_plain};
