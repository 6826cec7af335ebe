//! Archives by a program that nobody here wrote: GNU tar, in each of its formats, must give the layer that a copy of the tree gives.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use belljar_image::{ArchiveForm, ArchiveLimits, ImageError, LayerStore, Refusal};

fn odd_tree(root: &Path) {
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::write(root.join("usr/bin/tool"), vec![7; 70_000]).unwrap();
    fs::set_permissions(root.join("usr/bin/tool"), fs::Permissions::from_mode(0o6755)).unwrap();
    fs::hard_link(root.join("usr/bin/tool"), root.join("usr/bin/zz-alias")).unwrap();
    symlink("usr/bin", root.join("bin")).unwrap();
    fs::write(root.join("old"), b"before 1970").unwrap();
    chown(root.join("old"), Some(1000), Some(65_534)).unwrap();
    fs::File::open(root.join("old")).unwrap().set_modified(std::time::UNIX_EPOCH - std::time::Duration::from_secs(86_400)).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o1777)).unwrap();
}

/// What only the newer formats can hold.
fn odder_tree(root: &Path) {
    odd_tree(root);
    let long = root.join("long-name-".repeat(20)).join("deeper-".repeat(30));
    fs::create_dir_all(&long).unwrap();
    fs::write(long.join("x".repeat(200)), b"long").unwrap();
    symlink("target-".repeat(40), root.join("long-link")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"bad utf-8 \xff \n tab\t")), b"odd").unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(8 << 20).unwrap();
    for block in 0..20 {
        std::os::unix::fs::FileExt::write_at(&sparse, &[b'd'; 4096], block * 300_000).unwrap();
    }
}

fn tar(root: &Path, options: &[&str]) -> Vec<u8> {
    let output = Command::new("tar").args(options).args(["--numeric-owner", "-c", "."]).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn every_format_of_gnu_tar_gives_the_same_layer() {
    let directory = tempfile::tempdir().unwrap();
    let store = LayerStore::open(&directory.path().join("pool")).unwrap();
    let import = |archive: &[u8]| store.import_tar(archive, ArchiveForm::RootFilesystem, ArchiveLimits::default(), "gnu tar");
    let plain = directory.path().join("plain");
    odd_tree(&plain);
    let expected = store.import_tree(&plain, "copy").unwrap().digest;
    let odder = directory.path().join("odder");
    odder_tree(&odder);
    let expected_odder = store.import_tree(&odder, "copy").unwrap().digest;
    for format in ["--format=gnu", "--format=oldgnu", "--format=posix", "--gzip", "--zstd"] {
        assert_eq!(import(&tar(&plain, &[format])).unwrap().digest, expected, "{format}");
        assert_eq!(import(&tar(&odder, &[format])).unwrap().digest, expected_odder, "{format}");
    }
    assert_eq!(import(&tar(&odder, &["--format=gnu", "--sparse"])).unwrap().digest, expected_odder);
    let layer = store.layer_directory(&expected_odder);
    assert_eq!(layer.join("old").metadata().unwrap().mtime(), -86_400);
    store.verify(&expected_odder).unwrap();
    let error = import(&tar(&odder, &["--format=posix", "--sparse"])).unwrap_err();
    let ImageError::Archive(error) = error else { panic!("{error:?}") };
    assert_eq!(error.refusal(), Some(&Refusal::Sparse));
    assert!(error.to_string().ends_with("make the archive without --sparse"), "{error}");
}
