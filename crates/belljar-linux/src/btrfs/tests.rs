//! On a real filesystem in an image of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;

struct Mounted {
    directory: tempfile::TempDir,
}

impl Mounted {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        assert!(std::process::Command::new("mkfs.btrfs").arg("-q").arg(&image).status().unwrap().success());
        let device = crate::loopdev::attach(&std::fs::File::options().read(true).write(true).open(&image).unwrap()).unwrap();
        let mounted = Self { directory };
        std::fs::create_dir(mounted.path()).unwrap();
        rustix::mount::mount(device.path(), mounted.path(), "btrfs", rustix::mount::MountFlags::empty(), None).unwrap();
        mounted
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("mount")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        rustix::mount::unmount(self.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

fn write_until_refused(path: &Path, most: usize) -> io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    for _ in 0..most {
        file.write_all(&[1; 1 << 20])?;
        file.sync_data()?;
    }
    Ok(())
}

#[test]
fn a_limited_subvolume_stops_root_and_is_gone_with_its_quota_when_dropped() {
    let mounted = Mounted::new();
    let filesystem = open_directory(&mounted.path()).unwrap();
    enable_quotas(&filesystem).unwrap();
    assert_eq!(enable_quotas(&filesystem).unwrap(), enable_quotas(&filesystem).unwrap(), "turning on twice changes nothing");
    let name = OsStr::new("sub");
    create_subvolume(&filesystem, name).unwrap();
    let path = mounted.path().join("sub");
    let id = subvolume_id(open_directory(&path).unwrap()).unwrap();
    write_until_refused(&path.join("free"), 12).expect("control: without a limit there is room");
    std::fs::remove_file(path.join("free")).unwrap();
    sync(&filesystem).unwrap();
    limit_subvolume(&filesystem, id, 8 << 20).unwrap();
    let refused = write_until_refused(&path.join("bound"), 12).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EDQUOT));
    let filesystem_id = filesystem_id(&filesystem).unwrap();
    assert!((4 << 20..=8 << 20).contains(&subvolume_usage(&filesystem_id, id).unwrap()));
    assert!(subvolume_exists(&filesystem, id).unwrap());
    assert!(quota_records(&filesystem_id).unwrap().contains(&id));

    delete_subvolume(&filesystem, name).unwrap();
    sync(&filesystem).unwrap();
    assert!(!subvolume_exists(&filesystem, id).unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !remove_quota_record(&filesystem, id).unwrap() {
        assert!(Instant::now() < deadline);
        sync(&filesystem).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!quota_records(&filesystem_id).unwrap().contains(&id));
}

#[test]
fn names_that_are_no_names_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let open = open_directory(directory.path()).unwrap();
    for name in ["", "a\0b", &"x".repeat(300)] {
        assert!(create_subvolume(&open, OsStr::new(name)).is_err(), "{name:?}");
    }
    let elsewhere = create_subvolume(&open, OsStr::new("sub")).unwrap_err();
    assert_eq!(elsewhere.raw_os_error(), Some(libc::ENOTTY), "a directory that is not on btrfs");
}

/// A snapshot is a number of its own: what is changed on one side is not seen on the other, and each side's limit counts what it wrote itself.
#[test]
fn a_snapshot_holds_what_was_there_and_goes_its_own_way() {
    let mounted = Mounted::new();
    let filesystem = open_directory(&mounted.path()).unwrap();
    enable_quotas(&filesystem).unwrap();
    create_subvolume(&filesystem, OsStr::new("parent")).unwrap();
    let parent = open_directory(&mounted.path().join("parent")).unwrap();
    std::fs::write(mounted.path().join("parent/file"), vec![7; 1 << 20]).unwrap();
    snapshot_subvolume(&parent, &filesystem, OsStr::new("kept"), true).unwrap();
    std::fs::write(mounted.path().join("parent/file"), "changed").unwrap();
    assert_eq!(std::fs::read(mounted.path().join("kept/file")).unwrap(), vec![7; 1 << 20]);
    let refused = std::fs::write(mounted.path().join("kept/file"), "x").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));

    let kept = open_directory(&mounted.path().join("kept")).unwrap();
    snapshot_subvolume(&kept, &filesystem, OsStr::new("fork"), false).unwrap();
    let fork = open_directory(&mounted.path().join("fork")).unwrap();
    limit_subvolume(&filesystem, subvolume_id(&fork).unwrap(), 16 << 20).unwrap();
    let refused = write_until_refused(&mounted.path().join("fork/own"), 32).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EDQUOT));
    drop((parent, kept, fork));
    for name in ["parent", "kept", "fork"] {
        delete_subvolume(&filesystem, OsStr::new(name)).unwrap();
    }
    assert!(snapshot_subvolume(&filesystem, &filesystem, OsStr::new(""), true).is_err());
}
