//! What fills a disk: room that is taken and not written, so that it costs the machine nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::FallocateFlags;

/// What it is made of; the last pieces are smaller, so that nothing is left between them.
const PIECES: [u64; 3] = [1 << 20, 64 << 10, 4 << 10];
/// Few enough small ones that giving back large ones is what counts.
const MOST_SMALL: u64 = 64;

/// A directory on a disk that is to run full.
pub struct Ballast {
    directory: PathBuf,
    /// Where the filesystem is mounted, if it must be asked to give room back.
    pool: Option<PathBuf>,
}

impl Ballast {
    /// On a pool, which is a btrfs.
    pub fn in_pool(pool: &Path) -> Self {
        Self { directory: pool.join("ballast"), pool: Some(pool.to_owned()) }
    }

    /// On any other disk.
    pub fn on(disk: &Path) -> Self {
        Self { directory: disk.join("ballast"), pool: None }
    }

    /// Takes all room but about this much.
    pub fn fill_but(&self, left: u64) {
        fs::create_dir_all(&self.directory).expect("there is room for a directory");
        let mut number = 0_u64;
        for size in PIECES {
            let most = if size == PIECES[0] { u64::MAX } else { number + MOST_SMALL };
            while number < most && take(&self.directory.join(number.to_string()), size).is_ok() {
                number += 1;
            }
        }
        for piece in 0..(left / PIECES[0]).min(number) {
            fs::remove_file(self.directory.join(piece.to_string())).expect("room can be given back");
        }
        self.write_out();
    }

    /// Gives all of it back.
    pub fn give_back(&self) {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            removed => removed.expect("the ballast can be removed"),
        }
        if let Some(pool) = &self.pool {
            // What was taken for files serves nothing else until it is seen to be empty, which the kernel leaves for ten seconds otherwise.
            run(Command::new("btrfs").args(["balance", "start", "-dusage=0"]).arg(pool)).expect("empty room is given back");
        }
        self.write_out();
    }

    /// Freed room is there for others when the filesystem has written down that it is free.
    fn write_out(&self) {
        if let Some(pool) = &self.pool {
            run(Command::new("btrfs").args(["filesystem", "sync"]).arg(pool)).expect("the pool can be written out");
        }
    }
}

/// Takes room without writing to it, or leaves nothing.
fn take(path: &Path, bytes: u64) -> io::Result<()> {
    let taken = rustix::fs::fallocate(&File::create(path)?, FallocateFlags::empty(), 0, bytes);
    if taken.is_err() {
        fs::remove_file(path)?;
    }
    Ok(taken?)
}

/// Runs a program that must work.
pub(crate) fn run(command: &mut Command) -> io::Result<()> {
    let status = command.stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?} ended with {status}"))) }
}
