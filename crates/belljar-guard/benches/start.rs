//! How long a start takes, beside Debian's `bwrap` with the same namespaces and much the same mounts. Prints; checks nothing.
//!
//! The two take turns, so that whatever else the machine does hits both alike.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run has nothing to tell, and tells the rest on standard output"
)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;
const USER: u32 = 12345;
const BWRAP: [&str; 20] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
];

fn time(command: &mut Command) -> Duration {
    let begin = Instant::now();
    assert!(command.status().unwrap().success());
    begin.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    let program = place.path().join("belljar-run");
    std::fs::copy(env!("CARGO_BIN_EXE_belljar-run"), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    for (who, id) in [("root", None), ("ordinary user", Some(USER))] {
        let prepare = |mut command: Command| {
            command.current_dir(&tree);
            if let Some(id) = id {
                command.uid(id).gid(id);
            }
            command
        };
        let mut guard = Command::new(&program);
        guard.args(["--", "/usr/bin/true"]);
        let mut bwrap = Command::new("bwrap");
        bwrap.args(BWRAP).arg("--ro-bind").args([&tree, &tree]).arg("--chdir").arg(&tree).arg("/usr/bin/true");
        let (mut guard, mut bwrap) = (prepare(guard), prepare(bwrap));
        let (mut of_guard, mut of_bwrap): (Vec<_>, Vec<_>) = (0..ROUNDS).map(|_| (time(&mut guard), time(&mut bwrap))).unzip();
        let (of_guard, of_bwrap) = (median(&mut of_guard), median(&mut of_bwrap));
        println!("{who}: guard {of_guard:.1?}, bwrap {of_bwrap:.1?}, ratio {:.2}", of_guard.as_secs_f64() / of_bwrap.as_secs_f64());
    }
}
