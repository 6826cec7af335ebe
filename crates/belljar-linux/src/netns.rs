//! Network namespaces that have a name on disk, and what is done inside them.
//!
//! A namespace belongs to a thread, so everything that has to happen inside one happens on a thread of its own that ends there:
//! no thread ever has to find its way back, and none of an async runtime's threads is ever elsewhere. Sockets stay in the namespace they were made in.

mod link;
mod netlink;
mod purge;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

pub use link::{Link, Links, VethEnd};
pub use purge::{close_connections, close_connections_to, forget_connections};

/// An open network namespace.
#[derive(Debug)]
pub struct Netns {
    handle: OwnedFd,
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Netns {
    /// Opens the namespace kept at this path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        // A file whose namespace was never attached, or is gone, is an ordinary empty file.
        let id = rustix::fs::fstatfs(&handle)?;
        const NSFS_MAGIC: u64 = 0x6e73_6673;
        if u64::try_from(id.f_type).ok() == Some(NSFS_MAGIC) { Ok(Self { handle }) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// The namespace of the calling thread.
    pub fn current() -> io::Result<Self> {
        Ok(Self { handle: File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// Makes a new namespace and keeps it at `path`, where there must be nothing yet.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::options().write(true).create_new(true).open(path)?;
        let made = on_own_thread(|| {
            // SAFETY: this thread was just made, shares its namespaces with nobody and ends here, so that nothing else can observe the
            // change; file descriptors are not unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            mount("/proc/thread-self/ns/net", path, "", MountFlags::BIND, None)?;
            Ok(())
        });
        if let Err(error) = made {
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Self::open(path)
    }

    /// Takes away what keeps the namespace; it goes when nothing runs in it any more. Does nothing if there is none.
    pub fn forget(path: &Path) -> io::Result<()> {
        // Several mounts may be stacked after a crash; EINVAL says that there is none left.
        while unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {}
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Runs `work` on a thread inside the namespace and returns its answer.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_own_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// Puts the calling thread into the namespace for the rest of its life. Only for threads made for it.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.handle.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// The number by which `/proc/<pid>/ns/net` shows it.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.handle)?.st_ino)
    }

    /// Whether any process other than this one is inside.
    pub fn has_processes(&self) -> io::Result<bool> {
        let wanted = format!("net:[{}]", self.inode()?);
        for entry in std::fs::read_dir("/proc")? {
            let entry = entry?;
            let is_process = entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
            // A process that ended meanwhile, or is a zombie, has no link.
            if is_process && std::fs::read_link(entry.path().join("ns/net")).is_ok_and(|link| link.as_os_str() == wanted.as_str()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Makes `path` a mount point of its own whose mounts no other mount namespace sees, or leaves it if it is one.
pub fn make_private_mount(path: &Path) -> io::Result<()> {
    if mount_change(path, MountPropagationFlags::PRIVATE).is_err() {
        mount(path, path, "", MountFlags::BIND, None)?;
        mount_change(path, MountPropagationFlags::PRIVATE)?;
    }
    Ok(())
}

/// Sets a value below `/proc/sys/net` of the namespace the calling thread is in. `false` if this kernel does not have it.
pub fn set_sysctl(name: &str, value: &str) -> io::Result<bool> {
    match std::fs::write(Path::new("/proc/sys/net").join(name), value) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("netns".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the network namespace panicked")))
    })
}
