//! A server whose outside is an internet of our own, and sandboxes with policies.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use belljar_client::{Change, Client, CreateSandbox, StartProcess};
use belljar_testkit::ServerProcess;
use belljar_types::{OutputEvent, SandboxId, StreamKind, Termination};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use crate::internet::{self, Internet, NAMES};
use crate::prelude::PRELUDE;

/// Below which programs of sandboxes are reached.
pub(crate) const DOMAIN: &str = "boxes.example";
pub(crate) const CLASSES: [&str; 2] = ["container", "gvisor"];

/// One at a time: the laboratory has one data directory.
static TURN: Mutex<()> = Mutex::const_new(());

pub(crate) struct Scene {
    pub(crate) server: ServerProcess,
    pub(crate) internet: Internet,
    pub(crate) client: Client,
    _place: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// What a process left.
pub(crate) struct Told {
    pub(crate) stdout: String,
    pub(crate) code: i32,
    pub(crate) stderr: String,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// One name may be reached, with two methods.
pub(crate) fn site() -> Value {
    json!({"version": 1, "name": "site only", "network": {"allow": [{"id": "site", "hosts": ["allowed.test"], "ports": [80, 443], "methods": ["GET", "HEAD"]}]}})
}

/// Another one may.
pub(crate) fn elsewhere() -> Value {
    json!({"version": 1, "network": {"allow": [{"id": "api", "hosts": ["api.test"], "ports": [80]}]}})
}

impl Scene {
    pub(crate) async fn open() -> Self {
        Self::open_with("").await
    }

    /// With more of its configuration, after `[network]`.
    pub(crate) async fn open_with(more: &str) -> Self {
        let turn = TURN.lock().await;
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let internet = Internet::open(&format!("served-{}", NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
        let place = tempfile::tempdir().unwrap();
        let roots = place.path().join("roots.pem");
        std::fs::write(&roots, &internet::authority().pem).unwrap();
        let settings = format!(
            "[sandboxes]\nallow_shared_kernel = true\ndisk_reserve = \"64MiB\"\n[network]\nnameservers = [\"{NAMES}:53\"]\nnamespace = \"{}\"\ncertificates = \"{}\"\n{more}\n[log]\nfilter = \"info,belljar_egress=trace,belljar=trace\"\n",
            internet.uplink.display(),
            roots.display(),
        );
        let server = ServerProcess::start_as(&format!("domain = \"{DOMAIN}\""), &settings).await;
        let client = server.client();
        Self { server, internet, client, _place: place, _turn: turn }
    }

    pub(crate) async fn create(&self, class: &str, policy: Option<Value>) -> SandboxId {
        let request = CreateSandbox { isolation: Some(class.to_owned()), policy, ..CreateSandbox::default() };
        let made = self.client.create_sandbox(&request, None).await;
        made.unwrap_or_else(|error| panic!("{class}: {error}: {error:?}\n{}", self.server.last_words())).id
    }

    pub(crate) async fn kill(&self, id: &SandboxId) {
        self.client.kill_sandbox(id).await.unwrap();
    }

    pub(crate) async fn change(&self, id: &SandboxId, policy: Value) {
        let change = Change { policy: Some(policy), ..Change::default() };
        self.client.change_sandbox(id, &change).await.unwrap_or_else(|error| panic!("{error}: {error:?}\n{}", self.server.last_words()));
    }

    /// Starts a script; see [`Scene::finish`].
    pub(crate) async fn start(&self, id: &SandboxId, script: &str) -> StartProcess {
        let process = StartProcess::new(["/usr/bin/python3", "-c", &format!("{PRELUDE}\n{script}")]);
        self.client.start_process(id, &process).await.unwrap();
        process
    }

    pub(crate) async fn finish(&self, id: &SandboxId, process: &StartProcess) -> Told {
        let mut output = self.client.output(id, &process.id, belljar_types::Offsets::default()).await.unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Some(event) = output.next().await {
            match event.unwrap() {
                Some(OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. }) => stdout.extend_from_slice(&bytes),
                Some(OutputEvent::Data { bytes, .. }) => stderr.extend_from_slice(&bytes),
                Some(OutputEvent::Exit(exit)) => {
                    let Termination::Exited(code) = exit.termination else { panic!("{exit:?}") };
                    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                    return Told { stdout: text(stdout), stderr: text(stderr), code };
                }
                Some(OutputEvent::Gap { .. }) | None => {}
            }
        }
        panic!("the output ended without an exit");
    }

    pub(crate) async fn python(&self, id: &SandboxId, script: &str) -> Told {
        let process = self.start(id, script).await;
        self.finish(id, &process).await
    }

    pub(crate) async fn shell(&self, id: &SandboxId, script: &str) -> Told {
        let script = serde_json::to_string(script).unwrap();
        self.python(id, &format!("import subprocess; sys.exit(min(subprocess.run(['bash', '-c', {script}]).returncode, 1))")).await
    }

    /// Whether a script says that it got through.
    pub(crate) async fn gets_through(&self, id: &SandboxId, script: &str) -> bool {
        let told = self.python(id, script).await;
        match told.code {
            0 => true,
            3 => false,
            _ => panic!("the script is wrong: {told}\n{}", self.server.last_words()),
        }
    }

    /// Runs the program's own command line against the server.
    pub(crate) fn cli(&self, words: &[&str], input: &str) -> Output {
        let key = std::fs::read_to_string(self.server.scope.data_dir.join("first-key")).unwrap();
        let mut child = Command::new(self.server.program())
            .args(words)
            .env("BELLJAR_URL", &self.server.url)
            .env("BELLJAR_API_KEY", key.trim())
            .env("BELLJAR_CONFIG", self.server.directory().join("belljar.toml"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}: {}\n{}", String::from_utf8_lossy(&output.stderr), self.server.last_words());
        output
    }

    /// Nothing of ours is left when a test ends well.
    pub(crate) fn close(mut self) {
        assert!(self.server.stop().success(), "{}", self.server.last_words());
    }
}
