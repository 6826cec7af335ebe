//! `belljar run` through the program itself; what the guard keeps is tried where the guard is.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn tree(name: &str) -> PathBuf {
    let tree = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).join("tree");
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("../secret"), "TOPSECRET").unwrap();
    tree
}

fn run(tree: &PathBuf, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_belljar")).arg("run").args(arguments).current_dir(tree).output().unwrap()
}

#[test]
fn the_commands_code_is_the_programs_code() {
    let tree = tree("run-codes");
    for (script, code) in [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143)] {
        assert_eq!(run(&tree, &["--", "sh", "-c", script]).status.code(), Some(code), "{script}");
    }
    assert_eq!(run(&tree, &["--", "no-such-program"]).status.code(), Some(127));
    assert_eq!(run(&tree, &["--ro", "/", "--", "true"]).status.code(), Some(125));
}

#[test]
fn the_directory_is_there_and_what_is_beside_it_is_not() {
    let tree = tree("run-files");
    let outside = run(&tree, &["--rw", "--", "sh", "-c", "cat ../secret; echo made > file"]);
    assert!(outside.status.success() && outside.stdout.is_empty(), "{outside:?}");
    assert_eq!(fs::read_to_string(tree.join("file")).unwrap(), "made\n");
    let read_only = run(&tree, &["sh", "-c", "cat file; echo more > file || exit 9"]);
    assert_eq!((read_only.status.code(), read_only.stdout.as_slice()), (Some(9), b"made\n".as_slice()), "{read_only:?}");
}

#[test]
fn options_of_the_command_are_not_ours() {
    let tree = tree("run-options");
    let echoed = run(&tree, &["echo", "--rw", "--help", "-v"]);
    assert_eq!(echoed.stdout, b"--rw --help -v\n", "{echoed:?}");
}
