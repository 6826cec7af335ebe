//! Volumes in a sandbox: each a mount of its own with the sandbox's owners, at a directory that is made in the root if it is not there.
//!
//! The directory is made through the overlay before anybody runs in it, as the sandbox's root and without following a link: what a template or an
//! earlier run left there cannot lead the host anywhere else.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use belljar_host::ShownVolume;
use belljar_linux::launch::Attach;
use belljar_linux::mount::{FileIdentity, Restrictions};
use belljar_linux::resolve;
use rustix::fs::Mode;

use super::mapped;
use crate::errors::ContainerError;

/// In the order in which they are attached.
pub(super) fn assemble(root: &OwnedFd, volumes: &[ShownVolume], users: &OwnedFd, root_id: u32) -> Result<Vec<Attach>, ContainerError> {
    let attach = |volume: &ShownVolume| {
        let failed = |source| ContainerError::VolumePoint { path: volume.at.clone(), source };
        make_point(root, volume, root_id).map_err(failed)?;
        let quiet = Restrictions::NO_SETUID.and(Restrictions::NO_DEVICES);
        let restrictions = if volume.read_only { quiet.and(Restrictions::READ_ONLY) } else { quiet };
        let at = CString::new(volume.at.as_str()).map_err(|error| failed(error.into()))?;
        Ok(Attach { mount: mapped(&volume.source, users, restrictions)?, at })
    };
    volumes.iter().map(attach).collect()
}

fn make_point(root: &OwnedFd, volume: &ShownVolume, root_id: u32) -> io::Result<()> {
    let _as_its_root = FileIdentity::assume(root_id)?;
    resolve::make_directories_beneath(root, volume.at.beneath_root(), Mode::from_raw_mode(0o755)).map(drop)
}
