//! The container class on the kernel that Debian 12 comes with, not only on this machine's: older overlays, other defaults, cgroup v2 alone.

#[path = "emulation/machine.rs"]
mod machine;

use std::path::{Path, PathBuf};

use machine::{assert_all_kept, machine};

/// What a host of the container class needs and a bare kernel does not have loaded.
const MODULES: [&str; 13] = [
    "overlay",
    "btrfs",
    "loop",
    "veth",
    "nf_tables",
    "nft_chain_nat",
    "nft_masq",
    "nft_nat",
    "nft_ct",
    "nft_reject_inet",
    "nft_fib_inet",
    "nft_limit",
    "nft_log",
];
const PROGRAMS: [&str; 2] = ["/usr/sbin/nft", "/usr/sbin/mkfs.btrfs"];

#[test]
fn the_container_class_keeps_its_promises() {
    let mut machine = machine();
    machine.args(["--memory", "2048", "--time-limit", "600", "--env", "BELLJAR_GUEST=/guest"]);
    machine.arg("--with").arg(format!("{}=/guest", agent().display()));
    for module in MODULES {
        machine.args(["--module", module]);
    }
    for program in PROGRAMS {
        machine.args(["--with", program]);
    }
    let output = machine.arg(env!("CARGO_BIN_EXE_container_trial")).output().expect("the machine can be started");
    assert_all_kept(&output, Some("Linux 6.1."));
}

fn agent() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest/belljar-guest");
    let path = std::env::var_os("BELLJAR_GUEST").map_or_else(built, PathBuf::from);
    assert!(path.exists(), "{} is not there: run `make guest`, or set BELLJAR_GUEST", path.display());
    path
}
