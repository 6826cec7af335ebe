//! The sandbox's users as they were last read. Every operation on a file asks for them; the files are read again only when one of them is
//! another or was changed, because in gVisor opening and reading two files costs more than most of those operations.

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{GROUP, PASSWD, Users, read_bounded};

static KNOWN: Mutex<Option<(Stamps, Arc<Users>)>> = Mutex::new(None);

/// What changes when a file does. The kernel gives no two changes the same time once somebody has looked at it.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

type Stamps = [Option<Stamp>; 2];

fn stamp(path: &str) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
        changed: (file.ctime(), file.ctime_nsec()),
    })
}

/// The users as the files say now.
pub(super) fn users() -> Arc<Users> {
    // Looked at before they are read: what changes meanwhile is another file at the next look.
    let stamps = [stamp(PASSWD), stamp(GROUP)];
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, users)) = &*known
        && *of == stamps
    {
        return Arc::clone(users);
    }
    let users = Arc::new(Users { passwd: read_bounded(PASSWD), group: read_bounded(GROUP) });
    *known = Some((stamps, Arc::clone(&users)));
    users
}
