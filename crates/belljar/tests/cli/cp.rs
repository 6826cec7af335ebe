//! Files and directories into a sandbox and out of it again.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::scene::Scene;

/// A directory with everything that can be copied, and odd names.
fn make_tree(root: &Path, bytes: usize) {
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    for name in [&b"with space"[..], b"new\nline", b"-rf", b"\xff\xfe", "\u{fc}n\u{ef}".as_bytes(), b"\x1b[2J", b"a:b"] {
        fs::write(root.join(OsStr::from_bytes(name)), name).unwrap();
    }
    fs::write(root.join("none"), "").unwrap();
    fs::write(root.join("sub/run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(root.join("sub/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("sub/deep"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(root.join("sub/deep/large"), belljar_testkit::pattern(bytes)).unwrap();
    symlink("sub/run.sh", root.join("link")).unwrap();
    symlink("../run.sh", root.join("sub/deep/up")).unwrap();
}

fn differences(one: &Path, other: &Path) -> String {
    let output = Command::new("diff").args(["-r", "--no-dereference"]).args([one, other]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_directory_comes_back_as_it_went() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let here = tempfile::tempdir().unwrap();
    let source = here.path().join("tree");
    make_tree(&source, 20 << 20);
    let into = sandbox.at("/tmp/");
    scene.run([OsStr::new("cp"), source.as_os_str(), OsStr::new(&into)]).ok();
    assert_eq!(
        sandbox.sh("/tmp/tree/link && stat -c %a /tmp/tree/sub/deep && stat -c %U /tmp/tree/none").ok().stdout_text(),
        "ran\n700\nuser\n"
    );

    let back = here.path().join("back");
    let from = sandbox.at("/tmp/tree");
    let report = scene.run([OsStr::new("cp"), OsStr::new("--json"), OsStr::new(&from), back.as_os_str()]).ok().json();
    assert_eq!(differences(&source, &back), "");
    assert_eq!(fs::metadata(back.join("sub/run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!((&report["files"], &report["directories"], &report["links"]), (&json!(10), &json!(4), &json!(2)));
    assert_eq!(report["left_out"], json!([]));

    // Into a directory that is there, under its own name.
    scene.run([OsStr::new("cp"), OsStr::new(&from), here.path().join("empty-one").as_os_str()]).ok();
    let existing = here.path().join("existing");
    fs::create_dir(&existing).unwrap();
    scene.run([OsStr::new("cp"), OsStr::new(&from), existing.as_os_str()]).ok();
    assert_eq!(differences(&source, &existing.join("tree")), "");
}

#[test]
fn one_file_and_streams() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let here = tempfile::tempdir().unwrap();
    let content = belljar_testkit::pattern(1 << 20);
    scene.run_with(["cp", "-", &sandbox.at("piped")], content.clone()).ok();
    assert!(scene.run(["cp", &sandbox.at("/home/user/piped"), "-"]).ok().stdout == content);
    let file = here.path().join("file");
    scene.run([OsStr::new("cp"), OsStr::new(&sandbox.at("piped")), file.as_os_str()]).ok();
    assert!(fs::read(&file).unwrap() == content);
    fs::write(&file, "shorter").unwrap();
    scene.run([OsStr::new("cp"), file.as_os_str(), OsStr::new(&sandbox.at("piped"))]).ok();
    assert_eq!(sandbox.sh("cat piped").ok().stdout_text(), "shorter");
    scene.run([OsStr::new("cp"), OsStr::new("--user"), OsStr::new("root"), file.as_os_str(), OsStr::new(&sandbox.at("/etc/"))]).ok();
    assert_eq!(sandbox.sh("cat /etc/file").ok().stdout_text(), "shorter");
}

#[test]
fn nothing_is_written_outside_the_destination() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let here = tempfile::tempdir().unwrap();
    let (outside, inside) = (here.path().join("outside"), here.path().join("inside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "precious").unwrap();
    // What is a link in the first copy is a directory, and a file, in the second.
    let first = format!(
        "mkdir -p /tmp/t/d && cd /tmp/t && ln -s {0} door && ln -s {0}/precious file && ln -s ../../outside d/up && ln -s d/up/.. via && mkfifo pipe",
        outside.display()
    );
    sandbox.sh(&first).ok();
    let copy = |from: &str| scene.run([OsStr::new("cp"), OsStr::new(&sandbox.at(from)), inside.as_os_str()]);
    let done = copy("/tmp/t").ok();
    for left_out in ["door", "file", "d/up", "via"] {
        assert!(done.stderr.contains(&format!("left out /tmp/t/{left_out}: it is a link that leads out")), "{left_out}: {}", done.stderr);
    }
    assert!(done.stderr.contains("left out /tmp/t/pipe"), "{}", done.stderr);
    assert!(fs::read_dir(&inside).unwrap().all(|entry| entry.unwrap().file_name() == "d"));
    // Even where such links are here already, they are not followed.
    symlink(&outside, inside.join("door")).unwrap();
    sandbox.sh("cd /tmp/t && rm door file && mkdir door && echo pwned > door/precious").ok();
    let refused = copy("/tmp/t/.");
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    symlink(outside.join("precious"), inside.join("file")).unwrap();
    sandbox.sh("cd /tmp/t && rm -r door && echo pwned > file").ok();
    let refused = copy("/tmp/t/.");
    assert!(refused.code == 1 && refused.stderr.contains("links are not followed"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "precious");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
