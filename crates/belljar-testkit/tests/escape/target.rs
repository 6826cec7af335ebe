//! The host as a target: starts `lib/target.py`, which plants a secret wherever a sandbox must not reach, and reads what it noticed.
//! Also a fingerprint of the machine's settings, which no attempt may change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use belljar_testkit::sha256;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

/// Where the suite's programs are.
pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/escape").canonicalize().unwrap()
}

/// What the target saw while the attempts ran.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Noticed {
    /// Senders of datagrams with a source that was not theirs.
    pub(crate) forged: Vec<String>,
    /// Characters typed into its terminal.
    pub(crate) keystrokes: u32,
    /// Whether its writable file was changed.
    pub(crate) written: bool,
}

/// A running target.
pub(crate) struct Target {
    /// What attempts are told, by environment variable.
    pub(crate) facts: BTreeMap<String, String>,
    process: Child,
    said: BufReader<ChildStdout>,
    directory: PathBuf,
    before: BTreeMap<String, String>,
    layers: PathBuf,
}

impl Target {
    /// Plants everything. Listeners are put into the gateway's network namespace too.
    pub(crate) async fn plant(gateway: &Path, layers: &Path) -> Self {
        // Outside of the laboratory, readable by all: only isolation keeps a sandbox from it.
        let directory = PathBuf::from(format!(
            "/var/tmp/escape-target-{}-{}",
            std::process::id(),
            sha256(gateway.as_os_str().as_encoded_bytes())[..6].to_owned()
        ));
        let before = fingerprint(layers);
        let mut process = Command::new("/usr/bin/python3")
            .arg(programs().join("lib/target.py"))
            .arg(&directory)
            .arg(gateway)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).await.unwrap();
        let facts = serde_json::from_str(&line).unwrap_or_else(|error| panic!("the target said {line:?}: {error}"));
        Self { facts, process, said, directory, before, layers: layers.to_owned() }
    }

    /// One of the facts.
    pub(crate) fn fact(&self, name: &str) -> &str {
        self.facts[&format!("ESCAPE_{name}")].as_str()
    }

    /// Removes everything and fails the test if the host noticed anything.
    pub(crate) async fn expect_untouched(mut self) {
        drop(self.process.stdin.take());
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).await.unwrap();
        self.process.wait().await.unwrap();
        let _ = std::fs::remove_dir_all(&self.directory);
        let noticed: Noticed = serde_json::from_str(&rest).unwrap_or_else(|error| panic!("the target said {rest:?}: {error}"));
        assert!(noticed.forged.is_empty() && noticed.keystrokes == 0 && !noticed.written, "the host noticed {noticed:?}");
        assert_eq!(fingerprint(&self.layers), self.before, "the machine's settings are as they were");
    }
}

/// Settings of the whole machine that attempts go for, and the agents' programs that all sandboxes share.
fn fingerprint(layers: &Path) -> BTreeMap<String, String> {
    let settings = ["core_pattern", "hostname", "domainname", "modprobe"].map(|name| format!("/proc/sys/kernel/{name}"));
    let others = ["/proc/swaps", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/nr_hugepages", "/sys/fs/cgroup/memory/release_agent"];
    let mut print: BTreeMap<String, String> = settings
        .into_iter()
        .chain(others.map(str::to_owned))
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap_or_default()))
        .collect();
    for layer in std::fs::read_dir(layers).unwrap() {
        let agent = layer.unwrap().path().join("fs/.belljar/guest");
        if let Ok(program) = std::fs::read(&agent) {
            print.insert(agent.display().to_string(), sha256(&program));
        }
    }
    print
}
