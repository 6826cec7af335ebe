//! Archives made to hurt. Each is unpacked by the store, which must refuse it for the right reason and keep nothing of it; where a careless
//! extractor would have done the damage, one is let loose on the same bytes in a scratch directory to show that the attack is real.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_image::{ArchiveError, ArchiveForm, ArchiveLimits, ImageError, LayerStore, Refusal};

use crate::archives::{Archive, Entry};

struct Scene {
    directory: tempfile::TempDir,
    store: LayerStore,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = LayerStore::open(&directory.path().join("pool")).unwrap();
        Self { directory, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn import(&self, archive: impl Read, form: ArchiveForm, limits: ArchiveLimits) -> Result<(), ArchiveError> {
        match self.store.import_tar(archive, form, limits, "test") {
            Ok(_) => Ok(()),
            Err(ImageError::Archive(error)) => Err(error),
            Err(error) => panic!("{error:?}"),
        }
    }

    #[track_caller]
    fn refuses_with(&self, archive: &[u8], limits: ArchiveLimits, expected: &Refusal) {
        for form in [ArchiveForm::RootFilesystem, ArchiveForm::OciLayer] {
            let error = self.import(archive, form, limits).expect_err("the archive must be refused");
            assert_eq!(error.refusal(), Some(expected), "{error:?}");
            self.holds_nothing();
        }
    }

    #[track_caller]
    fn refuses(&self, archive: &[u8], expected: &Refusal) {
        self.refuses_with(archive, ArchiveLimits::default(), expected);
    }

    #[track_caller]
    fn holds_nothing(&self) {
        for part in ["layers", "staging"] {
            let left: Vec<_> = fs::read_dir(self.path("pool").join(part)).unwrap().collect();
            assert!(left.is_empty(), "{part} still holds {left:?}");
        }
    }

    /// What a careless extraction of the same bytes does, in a directory of its own. `-P` is what makes GNU tar careless.
    fn careless(&self, archive: &[u8]) -> PathBuf {
        let target = self.path("careless");
        fs::create_dir(&target).unwrap();
        let file = self.path("archive.tar");
        fs::write(&file, archive).unwrap();
        let _ = Command::new("tar").arg("-xPf").arg(&file).arg("-C").arg(&target).output().unwrap();
        target
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn absolute_names_are_refused() {
    let scene = Scene::new();
    let victim = scene.path("victim");
    let archive = Archive::new().add(Entry::file(victim.to_str().unwrap(), b"owned")).tar();
    scene.refuses(&archive, &Refusal::AbsolutePath);
    assert!(!exists(&victim));
    scene.careless(&archive);
    assert_eq!(fs::read(&victim).unwrap(), b"owned");
}

#[test]
fn names_that_climb_are_refused() {
    let scene = Scene::new();
    let archive = Archive::new().add(Entry::file("../victim", b"owned")).tar();
    scene.refuses(&archive, &Refusal::ParentPath);
    scene.careless(&archive);
    assert_eq!(fs::read(scene.path("victim")).unwrap(), b"owned");
    let hidden = Archive::new().add(Entry::file("a/b/../../../victim", b"owned")).tar();
    scene.refuses(&hidden, &Refusal::ParentPath);
}

#[test]
fn long_names_and_extended_headers_are_held_to_the_same_rules() {
    let scene = Scene::new();
    let climbing = format!("{}../../victim", "a/".repeat(80));
    scene.refuses(&Archive::new().add(Entry::gnu_long(&climbing, b"owned")).tar(), &Refusal::ParentPath);
    scene.refuses(&Archive::new().add(Entry::file("innocent", b"owned").pax("path", b"/etc/victim")).tar(), &Refusal::AbsolutePath);
    scene.refuses(&Archive::new().add(Entry::file("innocent", b"owned").pax("path", b"a\0b")).tar(), &Refusal::BadName);
}

#[test]
fn entries_through_a_symbolic_link_are_refused() {
    let scene = Scene::new();
    let outside = scene.path("outside");
    fs::create_dir(&outside).unwrap();
    let archive = Archive::new().add(Entry::symlink("way", outside.to_str().unwrap())).add(Entry::file("way/victim", b"owned")).tar();
    scene.refuses(&archive, &Refusal::ThroughLink);
    assert!(!exists(&outside.join("victim")));
    scene.careless(&archive);
    assert_eq!(fs::read(outside.join("victim")).unwrap(), b"owned");
    let inside = Archive::new().add(Entry::directory("real")).add(Entry::symlink("way", "real")).add(Entry::directory("way/deeper")).tar();
    scene.refuses(&inside, &Refusal::ThroughLink);
}

#[test]
fn a_link_is_replaced_and_not_written_through() {
    let scene = Scene::new();
    let victim = scene.path("victim");
    fs::write(&victim, b"precious").unwrap();
    let archive = Archive::new().add(Entry::symlink("file", victim.to_str().unwrap())).add(Entry::file("file", b"owned")).tar();
    let layer = scene.store.import_tar(&archive[..], ArchiveForm::RootFilesystem, ArchiveLimits::default(), "test").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let unpacked = scene.store.layer_directory(&layer.digest).join("file");
    assert!(unpacked.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(unpacked).unwrap(), b"owned");
}

#[test]
fn a_directory_entry_does_not_change_what_a_link_points_to() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let victim = scene.path("victim");
    fs::create_dir(&victim).unwrap();
    fs::set_permissions(&victim, PermissionsExt::from_mode(0o700)).unwrap();
    let archive = Archive::new().add(Entry::symlink("d", victim.to_str().unwrap())).add(Entry::directory("d").mode(0o777)).tar();
    scene.import(&archive[..], ArchiveForm::RootFilesystem, ArchiveLimits::default()).unwrap();
    assert_eq!(victim.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn hard_links_out_of_the_tree_are_refused() {
    let scene = Scene::new();
    let victim = scene.path("victim");
    fs::write(&victim, b"precious").unwrap();
    let target = victim.to_str().unwrap();
    let archive = Archive::new().add(Entry::hard_link("link", target)).add(Entry::file("link", b"owned")).tar();
    scene.refuses(&archive, &Refusal::HardLink { target: target.into() });
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let control = Archive::new().add(Entry::hard_link("link", target)).tar();
    let careless = scene.careless(&control);
    fs::write(careless.join("link"), b"owned").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"owned", "a careless extraction makes a second name for a file of the host");
    scene.refuses(&Archive::new().add(Entry::hard_link("link", "../victim")).tar(), &Refusal::HardLink { target: b"../victim".into() });
}

#[test]
fn hard_links_through_or_to_symbolic_links_are_refused() {
    let scene = Scene::new();
    let through = Archive::new().add(Entry::symlink("way", "/etc")).add(Entry::hard_link("stolen", "way/passwd")).tar();
    scene.refuses(&through, &Refusal::HardLink { target: b"way/passwd".into() });
    let to = Archive::new().add(Entry::symlink("way", "/etc/passwd")).add(Entry::hard_link("stolen", "way")).tar();
    scene.refuses(&to, &Refusal::HardLink { target: b"way".into() });
    let nothing = Archive::new().add(Entry::hard_link("stolen", "later")).add(Entry::file("later", b"x")).tar();
    scene.refuses(&nothing, &Refusal::HardLink { target: b"later".into() });
}

#[test]
fn devices_are_refused() {
    let scene = Scene::new();
    for kind in [b'3', b'4'] {
        let archive = Archive::new().add(Entry::device("disk", kind, 8, 0)).tar();
        scene.refuses(&archive, &Refusal::Device);
    }
    // Even the one that would look like a whiteout: only the store makes those.
    scene.refuses(&Archive::new().add(Entry::device("gone", b'3', 0, 0)).tar(), &Refusal::Device);
    let careless = scene.careless(&Archive::new().add(Entry::device("disk", b'4', 8, 0)).tar());
    use std::os::unix::fs::FileTypeExt;
    assert!(careless.join("disk").symlink_metadata().unwrap().file_type().is_block_device());
}

#[test]
fn unknown_kinds_of_entries_are_refused() {
    let scene = Scene::new();
    scene.refuses(&Archive::new().add(Entry::kind("odd", b'V')).tar(), &Refusal::Kind(b'V'));
    let global = Archive::new().add(Entry::global_pax("path", b"everything")).add(Entry::file("a", b"")).tar();
    scene.refuses(&global, &Refusal::Header("a global header changes other entries"));
}

#[test]
fn overlay_attributes_from_archives_are_refused_and_labels_dropped() {
    let scene = Scene::new();
    let archive = Archive::new().add(Entry::directory("d").pax("SCHILY.xattr.trusted.overlay.opaque", b"y")).tar();
    scene.refuses(&archive, &Refusal::Attribute(b"trusted.overlay.opaque".into()));
    let labelled =
        Archive::new().add(Entry::file("f", b"").pax("SCHILY.xattr.security.selinux", b"x").pax("SCHILY.xattr.user.k", b"v")).tar();
    let plain = Archive::new().add(Entry::file("f", b"").pax("SCHILY.xattr.user.k", b"v")).tar();
    let import = |tar: &[u8]| scene.store.import_tar(tar, ArchiveForm::RootFilesystem, ArchiveLimits::default(), "test").unwrap().digest;
    assert_eq!(import(&labelled), import(&plain));
    let bare = Archive::new().add(Entry::file("f", b"")).tar();
    assert_ne!(import(&bare), import(&plain), "user attributes are content");
}

#[test]
fn owners_outside_the_sandbox_are_refused() {
    let scene = Scene::new();
    scene.refuses(&Archive::new().add(Entry::file("f", b"").owner(65_536, 0)).tar(), &Refusal::Owner(65_536));
    scene.refuses(&Archive::new().add(Entry::file("f", b"").pax("gid", b"4294967295")).tar(), &Refusal::Owner(4_294_967_295));
}

#[test]
fn compression_bombs_are_refused_long_before_they_are_unpacked() {
    let scene = Scene::new();
    let limits = ArchiveLimits { ratio_free_bytes: 8 << 20, ..ArchiveLimits::default() };
    let bomb = Archive::new().add(Entry::zeros("zeros", 512 << 20));
    for packed in [bomb.gzip(), bomb.zstd()] {
        assert!(packed.len() < 1 << 20, "{}", packed.len());
        scene.refuses_with(&packed, limits, &Refusal::Ratio { limit: limits.ratio });
    }
    // As a control, an honest archive of the same size passes.
    let honest = Archive::new().add(Entry::noise("noise", 16 << 20));
    scene.import(&honest.gzip()[..], ArchiveForm::RootFilesystem, limits).unwrap();
}

#[test]
fn large_files_and_large_totals_are_refused() {
    let scene = Scene::new();
    let limits = ArchiveLimits { file_bytes: 1000, total_bytes: 2500, ..ArchiveLimits::default() };
    scene.refuses_with(&Archive::new().add(Entry::zeros("f", 1001)).tar(), limits, &Refusal::FileSize { limit: 1000 });
    let many = ["a", "b", "c"].into_iter().fold(Archive::new(), |archive, name| archive.add(Entry::zeros(name, 1000))).tar();
    scene.refuses_with(&many, limits, &Refusal::TotalSize { limit: 2500 });
    // The same name again and again counts again and again: it is work, whatever remains of it.
    let same = (0..3).fold(Archive::new(), |archive, _| archive.add(Entry::zeros("a", 1000))).tar();
    scene.refuses_with(&same, limits, &Refusal::TotalSize { limit: 2500 });
}

#[test]
fn a_file_of_holes_counts_with_its_full_size() {
    let scene = Scene::new();
    let archive = Archive::new().add(Entry::sparse("holes", 1 << 60, &[(0, b"start")])).tar();
    let limit = ArchiveLimits::default().file_bytes;
    scene.refuses(&archive, &Refusal::FileSize { limit });
    let lying = Archive::new().add(Entry::sparse("holes", 4, &[(0, b"start")])).tar();
    scene.refuses(&lying, &Refusal::Header("a sparse file's map makes no sense"));
}

#[test]
fn too_many_entries_and_too_deep_ones_are_refused() {
    let scene = Scene::new();
    let limits = ArchiveLimits { entries: 10, depth: 5, ..ArchiveLimits::default() };
    let many = (0..11).fold(Archive::new(), |archive, n| archive.add(Entry::file(&format!("f{n}"), b""))).tar();
    scene.refuses_with(&many, limits, &Refusal::Entries { limit: 10 });
    scene.refuses_with(&Archive::new().add(Entry::file("a/b/c/d/e/f", b"")).tar(), limits, &Refusal::Depth { limit: 5 });
    scene.refuses(&Archive::new().add(Entry::gnu_long(&"x".repeat(300), b"")).tar(), &Refusal::LongName);
}

#[test]
fn endless_headers_are_refused_without_being_read() {
    let scene = Scene::new();
    // The header promises 8 GiB of name; the rest would be produced on demand, and reading it must not happen.
    let start = Archive::new().add(Entry::gnu_long_header(8 << 30)).unfinished();
    let mut endless = Endless { start: std::io::Cursor::new(start), given: 0 };
    let error = scene.import(&mut endless, ArchiveForm::RootFilesystem, ArchiveLimits::default()).unwrap_err();
    assert_eq!(error.refusal(), Some(&Refusal::HeaderSize { limit: 1 << 20 }));
    assert!(endless.given < 1 << 20, "{} bytes were read", endless.given);
    scene.holds_nothing();
}

struct Endless {
    start: std::io::Cursor<Vec<u8>>,
    given: usize,
}

impl Read for Endless {
    fn read(&mut self, mut buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = match self.start.read(buffer)? {
            0 => buffer.write(&[b'x'; 4096])?,
            read => read,
        };
        self.given += read;
        Ok(read)
    }
}

#[test]
fn damaged_archives_are_refused() {
    let scene = Scene::new();
    let whole = Archive::new().add(Entry::noise("f", 5000)).tar();
    scene.refuses(&whole[..3000], &Refusal::Damaged("it ends in the middle of a file"));
    scene.refuses(&whole[..300], &Refusal::Damaged("it ends in the middle of a header"));
    scene.refuses(b"", &Refusal::Damaged("it ends in the middle of a header"));
    let mut flipped = whole.clone();
    flipped[0] ^= 1;
    scene.refuses(&flipped, &Refusal::Damaged("a header has a wrong checksum"));
    let noise = Archive::new().add(Entry::noise("f", 5000)).gzip();
    let error = scene.import(&noise[..2000], ArchiveForm::RootFilesystem, ArchiveLimits::default()).unwrap_err();
    assert!(matches!(error, ArchiveError::Read(_)), "{error:?}");
    scene.holds_nothing();
}

#[test]
fn a_link_planted_in_the_store_by_hand_is_not_followed_either() {
    // The kernel resolves beneath the tree's own descriptor: even a link that did not come from the archive leads nowhere.
    let scene = Scene::new();
    let outside = scene.path("outside");
    fs::create_dir(&outside).unwrap();
    let tree = scene.path("tree");
    fs::create_dir(&tree).unwrap();
    symlink(&outside, tree.join("way")).unwrap();
    let layer = scene.store.import_tree(&tree, "test").unwrap();
    let copied = scene.store.layer_directory(&layer.digest).join("way");
    assert_eq!(fs::read_link(copied).unwrap(), outside);
}

#[test]
fn refusals_are_printed_without_the_strangers_control_characters() {
    let scene = Scene::new();
    let archive = Archive::new().add(Entry::file("../\u{1b}[31mred", b"")).tar();
    let error = scene.import(&archive[..], ArchiveForm::RootFilesystem, ArchiveLimits::default()).unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "archive entry \"../\\u{1b}[31mred\" refused: its name contains \"..\"");
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

#[test]
fn mangled_archives_neither_panic_nor_escape_nor_leave_anything() {
    let scene = Scene::new();
    let honest = Archive::new()
        .add(Entry::directory("d"))
        .add(Entry::file("d/file", b"content").pax("SCHILY.xattr.user.a", b"b").pax("mtime", b"12.5"))
        .add(Entry::symlink("l", "../../outside"))
        .add(Entry::hard_link("h", "d/file"))
        .add(Entry::gnu_long(&"long/".repeat(30), b"x"))
        .add(Entry::sparse("s", 4096, &[(0, b"a"), (2048, b"b")]))
        .add(Entry::file("d/.wh.gone", b""))
        .tar();
    let (mut dice, mut taken, mut refused) = (Dice(0x2545_f491_4f6c_dd1d), 0, 0);
    for _ in 0..400 {
        let mut mangled = honest.clone();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(mangled.len());
            mangled[at] = [0, 0xff, b'/', b'.', b'7', b'L', b'x', b'1'][dice.roll(8)];
        }
        // With checksums made right again, the damage gets past the first guard.
        for block in mangled.chunks_exact_mut(512).filter(|block| &block[257..262] == b"ustar") {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        match scene.import(&mangled[..], ArchiveForm::OciLayer, ArchiveLimits::default()) {
            Ok(()) => taken += 1,
            Err(_) => refused += 1,
        }
        assert_eq!(fs::read_dir(scene.path("pool/staging")).unwrap().count(), 0);
    }
    assert!(taken > 30 && refused > 30, "both paths are exercised: {taken} taken, {refused} refused");
    let outside: Vec<_> = fs::read_dir(scene.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(outside, ["pool"]);
    for layer in scene.store.layers().unwrap() {
        scene.store.verify(&layer.digest).unwrap();
    }
}
