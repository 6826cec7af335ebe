//! A real `belljar serve` on the laboratory's data directory, which can be killed at any moment and started again at the same address.
//!
//! The laboratory itself must not be open in this process: a data directory has one owner at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belljar_client::{Client, ClientError, Connection};
use belljar_types::Secret;

use crate::Scope;

/// How long a server may take from its start to its first answer before something is wrong.
const STARTING: Duration = Duration::from_secs(90);
const LOG_TAIL: u64 = 8000;

/// A server in a process of its own.
pub struct ServerProcess {
    /// Whose things a census counts.
    pub scope: Scope,
    /// Where it listens.
    pub url: String,
    directory: tempfile::TempDir,
    program: PathBuf,
    child: Child,
}

/// Where the data directory is, as the program `lab` tells.
#[derive(serde::Deserialize)]
struct Told {
    instance: String,
    data_dir: PathBuf,
}

impl ServerProcess {
    /// Starts one on an empty store; `settings` is more of its configuration, as TOML.
    pub async fn start(settings: &str) -> Self {
        Self::start_as("", settings).await
    }

    /// The same with more of `[server]`.
    pub async fn start_as(server: &str, settings: &str) -> Self {
        Self::start_on(&["scope"], server, settings).await
    }

    /// The same on a small pool beside the laboratory's, which [`ServerProcess::close_small`] removes.
    pub async fn start_small(pool_bytes: u64, settings: &str) -> Self {
        Self::start_on(&["small", &pool_bytes.to_string()], "", settings).await
    }

    /// Asks a server on a small pool to stop, and leaves the machine as it was found.
    pub fn close_small(mut self) {
        assert!(self.stop().success(), "a server that is asked to stop does so in good order\n{}", self.last_words());
        let closed = Command::new(programs().join("lab")).arg("close-small").status().expect("the laboratory can be asked");
        assert!(closed.success(), "the small laboratory is closed");
    }

    async fn start_on(scope: &[&str], server: &str, settings: &str) -> Self {
        let programs = programs();
        let program = std::env::var_os("BELLJAR_BIN").map_or_else(|| programs.join("belljar"), PathBuf::from);
        assert!(program.exists(), "there is no {}: build it with `cargo build -p belljar`, or set BELLJAR_BIN", program.display());
        let Told { instance, data_dir } = ask_lab(&programs.join("lab"), scope);
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let url = format!("http://127.0.0.1:{}", free_port().expect("a port is free"));
        let configuration = format!(
            "data_dir = \"{}\"\n[server]\nlisten = \"{}\"\n{server}\n[store]\nurl = \"sqlite:{}\"\n{settings}\n",
            data_dir.display(),
            url.trim_start_matches("http://"),
            directory.path().join("belljar.db").display(),
        );
        std::fs::write(directory.path().join("belljar.toml"), configuration).expect("the configuration can be written");
        let child = spawn(&program, directory.path()).expect("the server can be started");
        let mut server = Self { scope: Scope { instance, data_dir }, url, directory, program, child };
        server.ready().await;
        server
    }

    /// A client with the administrator's key.
    pub fn client(&self) -> Client {
        let path = self.scope.data_dir.join("first-key");
        let key = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
        let connection = Connection { url: self.url.clone(), key: Some(Secret::new(key.trim().to_owned())), certificate: None };
        Client::new(&connection).expect("the address is well-formed")
    }

    /// Kills it with no warning and no mercy.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("and is gone");
    }

    /// Starts it again after a kill; says how long that took until its first answer.
    pub async fn restart(&mut self) -> Duration {
        let begun = Instant::now();
        self.child = spawn(&self.program, self.directory.path()).expect("the server can be started");
        self.ready().await;
        begun.elapsed()
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().expect("a signal can be sent");
        self.child.wait().expect("it ends")
    }

    /// Where its store, its configuration (`belljar.toml`) and its log (`log`) are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The program that it is.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The end of what it has logged.
    pub fn last_words(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(self.directory.path().join("log"))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().unwrap_or_else(|error| format!("its log cannot be read: {error}"))
    }

    /// Waits for its first answer. It listens before it is ready, so that this is one request and no polling.
    async fn ready(&mut self) {
        let begun = Instant::now();
        loop {
            // The first key is made at the first start only; until then nobody can ask.
            if self.scope.data_dir.join("first-key").exists() {
                match tokio::time::timeout(STARTING, self.client().server()).await {
                    Ok(Ok(_)) => return,
                    Ok(Err(ClientError::Unreachable { .. } | ClientError::CutShort { .. })) => {}
                    Ok(Err(refused)) => panic!("{refused:?}\n{}", self.last_words()),
                    Err(_) => panic!("no answer for {STARTING:?}\n{}", self.last_words()),
                }
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the server ended with {status}\n{}", self.last_words());
            }
            assert!(begun.elapsed() < STARTING, "no answer for {STARTING:?}\n{}", self.last_words());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where cargo puts programs: beside this one, or one above if this is a test.
fn programs() -> PathBuf {
    let this = std::env::current_exe().expect("this program is a file");
    let beside = this.parent().expect("it is in a directory");
    if beside.ends_with("deps") { beside.parent().expect("deps is in a directory").to_owned() } else { beside.to_owned() }
}

fn ask_lab(lab: &Path, scope: &[&str]) -> Told {
    let output = Command::new(lab).args(scope).stderr(Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("run {}: {error}", lab.display()));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{} said no scope: {error}", lab.display()))
}

/// A port below those that the kernel gives to clients: while the server is dead, one of its own clients could be given it otherwise.
fn free_port() -> io::Result<u16> {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap_or(0);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..first + 1000).find(free).ok_or_else(|| io::ErrorKind::AddrInUse.into())
}

fn spawn(program: &Path, directory: &Path) -> io::Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(directory.join("log"))?;
    let agent =
        std::env::var_os("BELLJAR_GUEST").map_or_else(|| crate::lab::repository().join("target/guest/belljar-guest"), PathBuf::from);
    Command::new(program)
        .args(["serve", "--config"])
        .arg(directory.join("belljar.toml"))
        .arg("--guest")
        .arg(agent)
        .env_remove("BELLJAR_DATA_DIR")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}
