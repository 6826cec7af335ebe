//! A bucket that is really mounted, and used as a directory by ordinary calls and ordinary programs. Needs root and the kernel's fuse.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its scene has nothing to say")]

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use belljar_bucket::{Appearance, Bucket, BucketError, serve};
use object_store::local::LocalFileSystem;
use rustix::mount::{UnmountFlags, unmount};

const MIB: usize = 1 << 20;

/// A bucket in a directory, with `served/` of it mounted.
struct Scene {
    directory: tempfile::TempDir,
    server: Option<JoinHandle<Result<(), BucketError>>>,
}

impl Scene {
    fn open(read_only: bool, drafts_bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["bucket/served", "drafts", "mount"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("bucket/outside"), "not served").unwrap();
        fs::create_dir(directory.path().join("bucket/served/there")).unwrap();
        fs::write(directory.path().join("bucket/served/there/before"), "was here before").unwrap();
        // Without directories that hold nothing: a bucket has none.
        let store = LocalFileSystem::new_with_prefix(directory.path().join("bucket")).unwrap().with_automatic_cleanup(true);
        let bucket = Bucket {
            store: Arc::new(store),
            prefix: "served".to_owned(),
            drafts: directory.path().join("drafts"),
            drafts_bytes,
            appearance: Appearance { user: 1000, group: 1000, read_only },
        };
        let mount = directory.path().join("mount");
        let (tell, told) = std::sync::mpsc::channel();
        let server = std::thread::spawn(move || serve(bucket, &mount, move || tell.send(()).unwrap()));
        if told.recv().is_err() {
            panic!("{:?}", server.join().unwrap());
        }
        Self { directory, server: Some(server) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("mount").join(name)
    }

    fn object(&self, name: &str) -> PathBuf {
        self.directory.path().join("bucket/served").join(name)
    }

    /// What a shell prints that stands in the mount.
    fn shell(&self, script: &str) -> String {
        let done = Command::new("sh").args(["-euc", script]).current_dir(self.path("")).output().unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        unmount(self.path(""), UnmountFlags::DETACH).unwrap();
        if let Some(server) = self.server.take() {
            let ended = server.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: std::io::Result<T>, number: rustix::io::Errno) {
    assert_eq!(result.unwrap_err().raw_os_error(), Some(number.raw_os_error()));
}

#[test]
fn files_are_objects_and_objects_are_files() {
    let scene = Scene::open(false, 1 << 30);
    assert_eq!(fs::read_to_string(scene.path("there/before")).unwrap(), "was here before");
    assert!(!scene.path("outside").exists() && !scene.path("../outside").exists());
    let large = pattern(21 * MIB + 7);
    fs::create_dir(scene.path("new")).unwrap();
    fs::write(scene.path("new/large"), &large).unwrap();
    assert!(fs::read(scene.object("new/large")).unwrap() == large, "it is whole when it is closed");
    assert!(fs::read(scene.path("new/large")).unwrap() == large);
    let mut middle = vec![0; 5 * MIB];
    File::open(scene.path("new/large")).unwrap().read_exact_at(&mut middle, 3_000_001).unwrap();
    assert!(middle == large[3_000_001..3_000_001 + 5 * MIB]);
    fs::write(scene.path("empty"), "").unwrap();
    assert_eq!(fs::read(scene.object("empty")).unwrap(), b"");
    // What others put into the bucket shows.
    fs::write(scene.object("late"), "by somebody else").unwrap();
    assert_eq!(fs::read_to_string(scene.path("late")).unwrap(), "by somebody else");
    assert_eq!(scene.shell("find . -type f | sort").trim(), "./empty\n./late\n./new/large\n./there/before");
    let owner = fs::metadata(scene.path("late")).unwrap();
    assert_eq!((owner.uid(), owner.gid(), owner.mode() & 0o7777), (1000, 1000, 0o644));
}

#[test]
fn a_file_is_changed_in_place_and_sent_when_it_is_synced_or_closed() {
    let scene = Scene::open(false, 1 << 30);
    let mut file = OpenOptions::new().read(true).write(true).open(scene.path("there/before")).unwrap();
    file.seek(SeekFrom::Start(4)).unwrap();
    file.write_all(b"HERE").unwrap();
    let on_the_way = fs::read_to_string(scene.path("there/before")).unwrap();
    assert_eq!(on_the_way, "was HERE before", "whoever reads through the mount reads what was written");
    assert_eq!(fs::read_to_string(scene.object("there/before")).unwrap(), "was here before");
    file.sync_all().unwrap();
    assert_eq!(fs::read_to_string(scene.object("there/before")).unwrap(), "was HERE before");
    file.set_len(3).unwrap();
    file.rewind().unwrap();
    let mut all = String::new();
    file.read_to_string(&mut all).unwrap();
    drop(file);
    assert_eq!((all.as_str(), fs::read_to_string(scene.object("there/before")).unwrap().as_str()), ("was", "was"));
    let mut end = OpenOptions::new().append(true).open(scene.path("there/before")).unwrap();
    end.write_all(b" appended").unwrap();
    drop(end);
    assert_eq!(fs::read_to_string(scene.object("there/before")).unwrap(), "was appended");
    fs::write(scene.path("there/before"), "anew").unwrap();
    assert_eq!(fs::read_to_string(scene.object("there/before")).unwrap(), "anew");
    // An editor's way: a new file, renamed over the old one.
    fs::write(scene.path("there/.before.new"), "from beside").unwrap();
    fs::rename(scene.path("there/.before.new"), scene.path("there/before")).unwrap();
    assert_eq!(fs::read_to_string(scene.path("there/before")).unwrap(), "from beside");
    assert!(!scene.object("there/.before.new").exists());
}

#[test]
fn names_come_and_go() {
    let scene = Scene::open(false, 1 << 30);
    refused(fs::create_dir(scene.path("there")), rustix::io::Errno::EXIST);
    refused(fs::remove_dir(scene.path("there")), rustix::io::Errno::NOTEMPTY);
    refused(fs::remove_file(scene.path("nothing")), rustix::io::Errno::NOENT);
    fs::create_dir_all(scene.path("a/b/c")).unwrap();
    assert_eq!(scene.shell("ls -A a/b"), "c\n");
    fs::remove_dir(scene.path("a/b/c")).unwrap();
    fs::remove_file(scene.path("there/before")).unwrap();
    assert_eq!(scene.shell("ls -A there"), "", "an emptied directory stays");
    fs::remove_dir(scene.path("there")).unwrap();
    assert_eq!(fs::metadata(scene.path("there")).unwrap_err().kind(), ErrorKind::NotFound);
    let mut gone = File::create(scene.path("gone")).unwrap();
    gone.write_all(b"never sent").unwrap();
    fs::remove_file(scene.path("gone")).unwrap();
    drop(gone);
    assert!(!scene.object("gone").exists(), "what was removed while it was open does not come back");
    let mut exclusive = OpenOptions::new();
    exclusive.write(true).create_new(true);
    exclusive.open(scene.path("one")).unwrap();
    assert_eq!(exclusive.open(scene.path("one")).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn ordinary_programs_work_in_it() {
    let scene = Scene::open(false, 1 << 30);
    scene.shell(
        "mkdir tree && cd tree && mkdir -p x/y && for i in 1 2 3; do echo $i > x/y/$i; done && tar -cf ../tree.tar . && cd .. &&
         mv tree moved && mkdir out && tar --no-same-owner --no-same-permissions -m -xf tree.tar -C out && diff -r moved out && rm -r moved",
    );
    assert_eq!(scene.shell("cat out/x/y/*; ls"), "1\n2\n3\nout\nthere\ntree.tar\n");
    let rows = scene.shell(
        "python3 -c \"import csv; w = csv.writer(open('t.csv', 'w')); [w.writerow((i, i * i)) for i in range(50000)]\" && wc -l < t.csv",
    );
    assert_eq!(rows, "50000\n");
}

#[test]
fn what_a_bucket_cannot_do_is_refused() {
    let scene = Scene::open(false, 4 * MIB as u64);
    refused(std::os::unix::fs::symlink("/etc/passwd", scene.path("link")), rustix::io::Errno::PERM);
    refused(fs::hard_link(scene.path("there/before"), scene.path("hard")), rustix::io::Errno::PERM);
    refused(std::os::unix::fs::chown(scene.path("there/before"), Some(0), None), rustix::io::Errno::PERM);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(scene.path("much")).unwrap();
    file.write_all_at(&pattern(3 * MIB), 0).unwrap();
    refused(file.write_all_at(b"too far", 5 * MIB as u64), rustix::io::Errno::NOSPC);
    drop(file);
    fs::write(scene.path("more"), pattern(4 * MIB)).unwrap();
    assert_eq!(fs::metadata(scene.object("more")).unwrap().len(), 4 * MIB as u64, "room is given back when a file is sent");
}

#[test]
fn a_bucket_that_is_read_only_is_only_read() {
    let scene = Scene::open(true, 0);
    assert_eq!(fs::read_to_string(scene.path("there/before")).unwrap(), "was here before");
    for refusal in [fs::write(scene.path("new"), ""), fs::create_dir(scene.path("d")), fs::remove_file(scene.path("there/before"))] {
        refused(refusal, rustix::io::Errno::ROFS);
    }
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_is_not_mixed() {
    let scene = Scene::open(false, 1 << 30);
    fs::write(scene.object("changing"), vec![b'a'; 8 * MIB]).unwrap();
    let file = File::open(scene.path("changing")).unwrap();
    let mut first = [0; 16];
    file.read_exact_at(&mut first, 0).unwrap();
    assert_eq!(first, [b'a'; 16]);
    replace(&scene.object("changing"), &vec![b'b'; 8 * MIB]);
    let mut last = [0; 16];
    let read = file.read_exact_at(&mut last, 7 * MIB as u64);
    refused(read, rustix::io::Errno::STALE);
}

fn replace(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("beside");
    fs::write(&beside, bytes).unwrap();
    fs::rename(beside, path).unwrap();
}
