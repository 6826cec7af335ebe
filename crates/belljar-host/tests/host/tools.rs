//! A machine without the programs that are needed is told so, with the package to install, and nothing starts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use belljar_host::Host;

use crate::scene::config;

const DIRECTORY: &str = "BELLJAR_TEST_TOOLS_DIRECTORY";

/// Not a test: what the test below starts where no program can be found.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the test that takes its programs away"]
async fn an_owner_without_programs() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let refused = Host::open(config(&directory)).await.err().unwrap();
    println!("\n{refused}");
}

fn open_without_programs(directory: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tools::an_owner_without_programs", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_named_with_its_package_and_nothing_starts() {
    let empty = tempfile::tempdir().unwrap();
    let said = open_without_programs(empty.path());
    assert!(said.contains("found no mkfs.btrfs to make the pool") && said.contains("install the package btrfs-progs"), "{said}");
    let host = Host::open(config(empty.path())).await.unwrap();
    host.close().await.unwrap();

    let said = open_without_programs(empty.path());
    assert!(said.contains("found no nft to load the firewall rules") && said.contains("install the package nftables"), "{said}");
    let host = Host::open(config(empty.path())).await.unwrap();
    host.close().await.unwrap();
}
