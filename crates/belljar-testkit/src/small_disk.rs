//! A disk of few megabytes beside everything else, for what is kept outside of a pool: files that are exported, blobs, a bucket.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::ballast::{Ballast, run};

/// A mounted ext4 of its own; unmounted and gone when dropped.
pub struct SmallDisk {
    mounted: PathBuf,
    /// Fills it.
    pub ballast: Ballast,
    _home: TempDir,
}

impl SmallDisk {
    /// Makes one of this size. A few of its megabytes are its own.
    pub fn make(bytes: u64) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        let (image, mounted) = (home.path().join("image"), home.path().join("disk"));
        File::create(&image)?.set_len(bytes)?;
        std::fs::create_dir(&mounted)?;
        run(Command::new("mkfs.ext4").args(["-q", "-m", "0", "-O", "^has_journal"]).arg(&image))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mounted))?;
        Ok(Self { ballast: Ballast::on(&mounted), mounted, _home: home })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.mounted
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: whoever still has a file open on it is about to end.
        let _unmounted = run(Command::new("umount").arg("--lazy").arg(&self.mounted));
    }
}
