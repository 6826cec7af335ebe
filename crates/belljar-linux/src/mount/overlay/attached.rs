//! Overlays for kernels before 6.15, which take only layers that are attached in the mount namespace of whoever asks.
//!
//! They are attached where nobody else ever looks: in a mount namespace that one thread makes for itself and that ends with it. The
//! overlay keeps its own hold on its layers, so what comes back is attached nowhere, as on later kernels. All layers are named in the
//! one option that every kernel knows, which is also the only one that is not cut at 255 bytes: by `mount`, in one page of options.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::super::{bare_namespace, memory_filesystem, restrict};
use super::{FileIdentity, Overlay, Restrictions, SOURCE};

/// A directory of the bare mount namespace.
const PLACE: &str = "/dev";
/// Names below it: these, and one number per layer.
const WRITABLE: &str = "w";
const WHOLE: &str = "o";

pub(super) fn mount(overlay: &Overlay<'_>, restrictions: Restrictions) -> io::Result<OwnedFd> {
    let namespace = starting_point()?;
    let copies = overlay.lower.iter().map(|layer| detached_copy(*layer)).collect::<io::Result<Vec<_>>>()?;
    let lower: Vec<_> = overlay.lower.iter().zip(&copies).map(|(layer, copy)| copy.as_ref().map_or(*layer, AsFd::as_fd)).collect();
    let writable = detached_copy(overlay.writable)?;
    let writable = writable.as_ref().map_or(overlay.writable, AsFd::as_fd);
    let overlay = &Overlay { lower: &lower, writable, root_id: overlay.root_id };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("overlay".into()).spawn_scoped(scope, || {
            enter_private_copy(namespace)?;
            let mounted = mount_here(overlay);
            // Everything below goes along; the namespace itself may outlive this thread's last word by a moment.
            unmount(PLACE, UnmountFlags::DETACH)?;
            mounted
        })?;
        let mount = thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that mounts overlays panicked")))?;
        restrict(mount.as_fd(), restrictions)?;
        Ok(mount)
    })
}

/// Of a directory in the caller's own mount namespace. These kernels cannot copy what is detached already, and need not.
fn detached_copy(layer: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    match open_tree(layer, "", OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH) {
        Ok(copy) => Ok(Some(copy)),
        Err(Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A namespace with next to nothing in it, so that a copy of it costs next to nothing.
fn starting_point() -> io::Result<BorrowedFd<'static>> {
    static BARE: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(known) = BARE.get() {
        return Ok(known.as_fd());
    }
    let made = bare_namespace()?;
    Ok(BARE.get_or_init(|| made).as_fd())
}

fn enter_private_copy(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: concerns the root and the working directory of this thread only, which is ours and ends soon.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?;
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Mount))?;
    // SAFETY: as above, and its mounts.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    Ok(())
}

fn mount_here(overlay: &Overlay<'_>) -> io::Result<OwnedFd> {
    let files = overlay.lower.len() as u64 + 8;
    attach(memory_filesystem(1 << 20, files, 0o700, Restrictions::NONE)?.as_fd(), PLACE)?;
    // Names relative to here are short, and all that the options of the overlay show to a sandbox.
    rustix::process::chdir(PLACE)?;
    let lower: Vec<String> = (0..overlay.lower.len()).map(|number| number.to_string()).collect();
    for (name, layer) in lower.iter().map(String::as_str).zip(overlay.lower).chain([(WRITABLE, &overlay.writable)]) {
        make_directory(name)?;
        attach(*layer, name)?;
    }
    make_directory(WHOLE)?;
    let top_first = lower.iter().rev().map(String::as_str).collect::<Vec<_>>().join(":");
    let options = format!("lowerdir={top_first},upperdir={WRITABLE}/upper,workdir={WRITABLE}/work,redirect_dir=on,volatile");
    let options = CString::new(options)?;
    let as_its_root = FileIdentity::assume(overlay.root_id)?;
    rustix::mount::mount(SOURCE, WHOLE, "overlay", MountFlags::empty(), Some(options.as_c_str()))?;
    drop(as_its_root);
    Ok(open_tree(CWD, WHOLE, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?)
}

fn make_directory(name: &str) -> io::Result<()> {
    Ok(rustix::fs::mkdir(name, Mode::RWXU)?)
}

fn attach(mount: BorrowedFd<'_>, at: &str) -> io::Result<()> {
    Ok(move_mount(mount, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}
