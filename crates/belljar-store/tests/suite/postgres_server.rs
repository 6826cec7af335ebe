//! A PostgreSQL server of the tests' own, from the distribution's package: in a temporary directory, on a unix socket, as the user `postgres`.
//!
//! A shell holds it and waits on a pipe from this process. However this process ends, the pipe closes, and the shell stops the server and removes all.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::LazyLock;

const KEEPER: &str = r#"
trap '' INT TERM HUP
dir=$(mktemp -d /tmp/belljar-postgres.XXXXXX) && cd "$dir" || exit 1
trap 'rm -rf "$dir"' EXIT
if "$0/initdb" --pgdata=data --username=belljar --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >log 2>&1 &&
  "$0/pg_ctl" start --pgdata=data --log=log --wait --silent \
    --options="-k $dir -c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200" >/dev/null 2>&1
then
  echo "$dir"
  cat >/dev/null
  "$0/pg_ctl" stop --pgdata=data --mode=immediate --wait --silent >/dev/null 2>&1
else
  cat log >&2
fi
"#;

struct Server {
    directory: String,
    /// Closed when this process is gone.
    _held: ChildStdin,
}

static SERVER: LazyLock<Server> = LazyLock::new(start);

/// The address of a database on the server, which the first caller starts.
pub(crate) fn url(database: &str) -> String {
    format!("postgres://belljar@localhost/{database}?host={}", SERVER.directory)
}

#[expect(clippy::zombie_processes, reason = "it lives as long as this process, and ends because that is gone")]
fn start() -> Server {
    let programs = programs().expect("PostgreSQL is not on this machine: run `make setup`");
    let mut keeper = Command::new("setpriv")
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "sh", "-c", KEEPER])
        .arg(programs)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("setpriv starts a shell as the user postgres");
    let mut directory = String::new();
    BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut directory).unwrap();
    assert!(!directory.is_empty(), "PostgreSQL did not start; its words are above");
    Server { directory: directory.trim_end().to_owned(), _held: keeper.stdin.take().unwrap() }
}

/// Where the package of the highest version keeps `initdb`, which is not on the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let with_server = versions.filter_map(|entry| {
        let entry = entry.ok()?;
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let programs = entry.path().join("bin");
        programs.join("initdb").exists().then_some((version, programs))
    });
    with_server.max().map(|(_, programs)| programs)
}
