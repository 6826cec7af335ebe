//! Tells a root filesystem from an image by what is in the archive: its name and media type are a stranger's word.
//!
//! An image has its documents at the top (`manifest.json`, `index.json`, `oci-layout`); a root filesystem has system directories there.
//! Whichever comes first decides, so that a root filesystem is not read to its end twice. An archive with neither is taken for a root
//! filesystem, a bare one.

use std::fs::File;
use std::path::Path;

use belljar_types::{Template, TemplateName};
use rustix::fs::{CWD, Mode, OFlags};

use crate::archive::{ArchiveError, ArchiveLimits, Decompressed, MemberKind, TarReader};
use crate::progress::Stoppable;
use crate::{ImageError, LayerStore, OciError, Progress, ProgressSink};

const IMAGE_DOCUMENTS: [&[u8]; 3] = [b"manifest.json", b"index.json", b"oci-layout"];
const SYSTEM_DIRECTORIES: [&[u8]; 8] = [b"bin", b"dev", b"etc", b"lib", b"proc", b"sbin", b"usr", b"var"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    RootFilesystem,
    Image,
}

impl LayerStore {
    /// Takes an archive, plain, gzip or zstd, as a template: a root filesystem, a tar of an OCI layout, or what `docker save` wrote.
    pub fn import_archive(&self, name: TemplateName, archive: &Path, progress: &dyn ProgressSink) -> Result<Template, ImageError> {
        progress.report(Progress::Step("looking into the archive"));
        match recognise(open(archive)?, progress)? {
            Kind::RootFilesystem => self.import_tarball(name, open(archive)?, ArchiveLimits::default(), progress),
            Kind::Image => self.import_docker_archive(name, archive, None, progress),
        }
    }
}

/// Opens an ordinary file; a pipe would be waited for, and could not be read twice.
fn open(path: &Path) -> Result<File, OciError> {
    let opened = || {
        let file = File::from(rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is not an ordinary file")) }
    };
    opened().map_err(|source| OciError::Open { path: path.to_owned(), source })
}

fn recognise(archive: File, progress: &dyn ProgressSink) -> Result<Kind, ArchiveError> {
    let stream = Decompressed::new(Stoppable::new(archive, progress), ArchiveLimits::default()).map_err(ArchiveError::Read)?;
    let mut members = TarReader::new(stream);
    while let Some(member) = members.next()? {
        let mut parts = member.path.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".");
        let (Some(top), deeper) = (parts.next(), parts.next()) else { continue };
        if SYSTEM_DIRECTORIES.contains(&top) && (deeper.is_some() || !matches!(member.kind, MemberKind::File { .. })) {
            return Ok(Kind::RootFilesystem);
        }
        if deeper.is_none() && IMAGE_DOCUMENTS.contains(&top) && !matches!(member.kind, MemberKind::Directory) {
            return Ok(Kind::Image);
        }
    }
    Ok(Kind::RootFilesystem)
}
