//! A bucket on a directory: how it is mounted, how its files look and what is open.

mod calls;

use std::collections::HashMap;
use std::path::{Path as FsPath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{Config, FileAttr, FileHandle, FileType, MountOption, Session, SessionACL};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::{Builder, Runtime};

use crate::BucketError;
use crate::drafts::Drafts;
use crate::listing::Entry;
use crate::nodes::Kind;
use crate::store::{Seen, Store};
use crate::windows::Window;

/// How long the kernel believes what it was told of a file. Others may write to the bucket too.
const BELIEVED: Duration = Duration::from_secs(1);
const BLOCK: u32 = 4096;

/// What to serve.
#[derive(Debug)]
pub struct Bucket {
    /// The bucket.
    pub store: Arc<dyn ObjectStore>,
    /// The keys below this are served, and no others.
    pub prefix: String,
    /// Where files are kept while they are written.
    pub drafts: PathBuf,
    /// How many bytes of them there may be at once.
    pub drafts_bytes: u64,
    /// How it looks from inside.
    pub appearance: Appearance,
}

/// How a bucket's files look: they have no owner and no mode of their own.
#[derive(Debug, Clone, Copy)]
pub struct Appearance {
    /// Whose they seem to be, as the host counts.
    pub user: u32,
    /// Of which group.
    pub group: u32,
    /// Whether nothing can be written.
    pub read_only: bool,
}

/// Serves a bucket on a directory. Calls `ready` when it can be used and returns when it is unmounted.
pub fn serve(bucket: Bucket, mount: &FsPath, ready: impl FnOnce()) -> Result<(), BucketError> {
    let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("bucket").enable_all().build().map_err(BucketError::Threads)?;
    let write = if bucket.appearance.read_only { MountOption::RO } else { MountOption::RW };
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("bucket".to_owned()), MountOption::DefaultPermissions, MountOption::NoSuid, MountOption::NoDev, write];
    // The kernel checks owners and modes, as they appear.
    config.acl = SessionACL::All;
    let filesystem = Server::new(bucket, runtime);
    let mounted = Session::new(filesystem, mount, &config).map_err(|source| BucketError::Mount { path: mount.to_owned(), source })?;
    ready();
    mounted.run().map_err(|source| BucketError::Serve { path: mount.to_owned(), source })
}

/// What is open.
#[derive(Debug, Clone)]
enum Handle {
    Read(Arc<Window>),
    Write,
    Directory(Arc<Vec<Entry>>),
}

#[derive(Debug)]
struct Server {
    runtime: Runtime,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    appearance: Appearance,
    handles: Mutex<HashMap<u64, Handle>>,
    next: AtomicU64,
}

impl Server {
    fn new(bucket: Bucket, runtime: Runtime) -> Self {
        let store = Store::new(bucket.store, Path::from(bucket.prefix), Drafts::new(bucket.drafts, bucket.drafts_bytes));
        let shared = Shared { store, appearance: bucket.appearance, handles: Mutex::default(), next: AtomicU64::new(1) };
        Self { runtime, shared: Arc::new(shared) }
    }
}

impl Shared {
    fn attributes(&self, seen: &Seen) -> FileAttr {
        let Appearance { user, group, read_only } = self.appearance;
        let (kind, perm, nlink) = match (seen.kind, read_only) {
            (Kind::Directory, false) => (FileType::Directory, 0o755, 2),
            (Kind::Directory, true) => (FileType::Directory, 0o555, 2),
            (Kind::File, false) => (FileType::RegularFile, 0o644, 1),
            (Kind::File, true) => (FileType::RegularFile, 0o444, 1),
        };
        let modified = seen.modified;
        FileAttr {
            ino: seen.number,
            size: seen.size,
            blocks: seen.size.div_ceil(512),
            atime: modified,
            mtime: modified,
            ctime: modified,
            crtime: modified,
            kind,
            perm,
            nlink,
            uid: user,
            gid: group,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        }
    }

    fn opened(&self, handle: Handle) -> FileHandle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.handles().insert(number, handle);
        FileHandle(number)
    }

    fn handle(&self, handle: FileHandle) -> Option<Handle> {
        self.handles().get(&handle.0).cloned()
    }

    fn closed(&self, handle: FileHandle) -> Option<Handle> {
        self.handles().remove(&handle.0)
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<u64, Handle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
