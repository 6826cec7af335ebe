//! A file as a block device, for the pool that is an image on any filesystem.
//!
//! The device goes away with its last user (`autoclear`), so that nothing is left when the pool is unmounted or the maker crashes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const ATTEMPTS: usize = 64;

/// `struct loop_config` of the kernel's `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// `struct loop_info64`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// A loop device in use; it is freed when this and all mounts of it are gone.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    _open: OwnedFd,
}

impl LoopDevice {
    /// The device node to mount.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The device to which this image is attached, if it is.
pub fn find(image: &Path) -> io::Result<Option<LoopDevice>> {
    let image = std::fs::canonicalize(image)?;
    for entry in std::fs::read_dir("/sys/block")? {
        let entry = entry?;
        let Ok(backing) = std::fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        if Path::new(backing.trim_end_matches('\n')) == image {
            let path = Path::new("/dev").join(entry.file_name());
            let device = OpenOptions::new().read(true).write(true).open(&path)?;
            return Ok(Some(LoopDevice { path, _open: device.into() }));
        }
    }
    Ok(None)
}

/// Attaches an image file to a free loop device.
pub fn attach(image: &File) -> io::Result<LoopDevice> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    for _ in 0..ATTEMPTS {
        // SAFETY: LOOP_CTL_GET_FREE takes no argument; the descriptor is open for the length of the call.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        match configure(&device, image) {
            Ok(()) => return Ok(LoopDevice { path, _open: device.into() }),
            // Somebody else took it between the two calls.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}

fn configure(device: &File, image: &File) -> io::Result<()> {
    let fd = u32::try_from(image.as_raw_fd()).map_err(io::Error::other)?;
    let info = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let config = LoopConfig { fd, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: `config` has the layout of the kernel's `struct loop_config` (checked by the test below) and outlives the call; both
    // descriptors are open; the kernel takes its own reference to the image.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }

    #[test]
    fn an_attached_image_shows_its_bytes_and_the_device_is_freed_with_its_last_user() {
        let image = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(image.path(), [7u8; 4096]).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(image.path()).unwrap();
        let device = attach(&file).unwrap();
        assert_eq!(std::fs::read(device.path()).unwrap(), vec![7u8; 4096]);
        let name = device.path().file_name().unwrap().to_owned();
        assert_eq!(find(image.path()).unwrap().unwrap().path(), device.path());
        let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
        assert!(std::fs::read_to_string(&backing).unwrap().contains(image.path().to_str().unwrap()));
        drop(device);
        let shown = std::fs::read_to_string(&backing).unwrap_or_default();
        assert!(!shown.contains(image.path().to_str().unwrap()), "{shown}");
    }
}
