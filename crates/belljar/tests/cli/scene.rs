//! What every test begins with: a server, the program pointed at it, and sandboxes that are ended with their test.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use belljar_testkit::{ServerProcess, block_on};
use serde_json::Value;

const SETTINGS: &str = "[sandboxes]\nallow_shared_kernel = true\n[log]\nfilter = \"warn\"\n";

struct Shared {
    users: usize,
    server: Option<ServerProcess>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { users: 0, server: None });
static GATE: RwLock<()> = RwLock::new(());

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Gate {
    Open { _with_others: RwLockReadGuard<'static, ()> },
    Closed { _alone: RwLockWriteGuard<'static, ()> },
}

/// A server, for as long as a test lasts.
pub(crate) struct Scene {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) data_dir: std::path::PathBuf,
    gate: Gate,
}

impl Scene {
    /// The server, with others.
    pub(crate) fn open() -> Self {
        Self::behind(Gate::Open { _with_others: GATE.read().unwrap_or_else(PoisonError::into_inner) })
    }

    /// The server, alone: it may be restarted.
    pub(crate) fn alone() -> Self {
        Self::behind(Gate::Closed { _alone: GATE.write().unwrap_or_else(PoisonError::into_inner) })
    }

    fn behind(gate: Gate) -> Self {
        let mut shared = shared();
        shared.users += 1;
        let server = shared.server.get_or_insert_with(|| block_on(ServerProcess::start(SETTINGS)));
        let data_dir = server.scope.data_dir.clone();
        let key = std::fs::read_to_string(data_dir.join("first-key")).unwrap().trim().to_owned();
        Self { url: server.url.clone(), key, data_dir, gate }
    }

    /// Kills the server without warning and starts it again.
    pub(crate) fn restart_server(&self) {
        assert!(matches!(self.gate, Gate::Closed { .. }), "somebody else is using the server");
        let mut shared = shared();
        let server = shared.server.as_mut().unwrap();
        server.kill();
        block_on(server.restart());
    }

    /// The program, pointed at the server.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
        command.args(arguments).env("BELLJAR_URL", &self.url).env("BELLJAR_API_KEY", &self.key).env("NO_COLOR", "1");
        command.env_remove("BELLJAR_DATA_DIR").stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Done {
        Done::of(self.command(arguments).output().unwrap())
    }

    /// Runs it with this on its standard input.
    pub(crate) fn run_with<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>, input: Vec<u8>) -> Done {
        let mut child = self.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Whether all of it is taken is for the program to decide.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let done = Done::of(child.wait_with_output().unwrap());
        writing.join().unwrap();
        done
    }

    /// A sandbox of the container class, ended when it is dropped.
    pub(crate) fn sandbox(&self) -> Sandbox<'_> {
        let made = self.run(["create", "--isolation", "container", "--lease", "20m"]).ok();
        Sandbox { scene: self, id: made.stdout_text().trim().to_owned() }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let mut shared = shared();
        shared.users -= 1;
        if shared.users == 0 {
            // Nobody is left who could end what a failed test left behind.
            let _ = self.command(["kill", "--all"]).output();
            shared.server = None;
        }
    }
}

/// A sandbox of a test's own.
pub(crate) struct Sandbox<'a> {
    scene: &'a Scene,
    pub(crate) id: String,
}

impl Sandbox<'_> {
    /// Runs a shell command in it.
    pub(crate) fn sh(&self, script: &str) -> Done {
        self.scene.run(["exec", &self.id, "--", "sh", "-c", script])
    }

    /// Starts a shell command in it and gives what it prints as it comes.
    pub(crate) fn start(&self, options: &[&str], script: &str) -> Started {
        let arguments = [&["exec"], options, &[&self.id, "--", "sh", "-c", script]].concat();
        let mut child = self.scene.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = Some(BufReader::new(child.stdout.take().unwrap()));
        Started { child, output }
    }

    /// A path in it, as `cp` wants it.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}:{path}", self.id)
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let _ = self.scene.command(["kill", &self.id]).output();
    }
}

/// A program that runs.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) output: Option<BufReader<ChildStdout>>,
}

impl Started {
    /// The next line it prints; empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn stop_reading(&mut self) {
        self.output = None;
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(crate) fn code(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn of(output: Output) -> Self {
        Self { code: output.status.code().unwrap(), stdout: output.stdout, stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
    }

    /// Fails the test unless it ended well.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    pub(crate) fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Its output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.stdout)))
    }

    /// Its output as a JSON document a line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout_text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The keys of a JSON object, sorted.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
