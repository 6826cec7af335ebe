//! Starts agents and talks to them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect, Credentials, GuestClient};
use belljar_guest_protocol::BootConfig;
use belljar_ports::{Guest, GuestError, OutputStream};
use belljar_types::{
    ExecutionId, ExitStatus, GuestPath, OutputEvent, PrivilegePolicy, ProcessSpec, SandboxId, Secret, StreamKind, Termination, UserName,
};
use futures_util::StreamExt;
use tokio::net::TcpStream;

/// An agent that ends with its test.
pub(crate) struct TestAgent {
    pub(crate) client: GuestClient,
    pub(crate) credentials: Credentials,
    pub(crate) address: SocketAddr,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) child: Child,
}

pub(crate) struct ToAddress(pub(crate) SocketAddr);

#[async_trait]
impl Connect for ToAddress {
    async fn connect(&self) -> io::Result<Box<dyn AsyncStream>> {
        let stream = TcpStream::connect(self.0).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

pub(crate) fn config() -> BootConfig {
    BootConfig {
        sandbox: SandboxId::random(),
        execution: ExecutionId::random(),
        token: Secret::new([42; 32]),
        gateway: Ipv4Addr::LOCALHOST,
        env: BTreeMap::from([("FROM_SANDBOX".into(), "yes".into())]),
        default_user: None,
        workdir: None,
        privilege: PrivilegePolicy::RootAllowed,
        hostname: None,
    }
}

impl TestAgent {
    pub(crate) async fn start() -> Self {
        Self::start_with(config()).await
    }

    pub(crate) async fn start_with(config: BootConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let boot = directory.path().join("boot");
        std::fs::write(&boot, config.encode()).unwrap();
        // A port that was free a moment ago; the agent says so if it is not any more.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_belljar-guest"))
            .arg("--boot")
            .arg(&boot)
            .args(["--listen", &address.to_string()])
            .arg("--sudo-socket")
            .arg(directory.path().join("sudo.sock"))
            .arg("--keep-socket")
            .arg(directory.path().join("keep.sock"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let credentials = Credentials { sandbox: config.sandbox, execution: config.execution, token: config.token };
        let client = GuestClient::new(Arc::new(ToAddress(address)), credentials.clone());
        let agent = Self { client, credentials, address, directory, child };
        for _ in 0..500 {
            if agent.client.hello().await.is_ok() {
                assert!(!boot.exists(), "the agent removes its secret");
                return agent;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the agent did not answer");
    }

    /// A path in this test's own directory.
    pub(crate) fn path(&self, name: &str) -> GuestPath {
        GuestPath::new(self.host_path(name).into_os_string().into_encoded_bytes()).unwrap()
    }

    pub(crate) fn host_path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a shell command to its end.
    pub(crate) async fn shell(&self, script: &str) -> Finished {
        self.run(&shell(script)).await
    }

    pub(crate) async fn run(&self, spec: &ProcessSpec) -> Finished {
        let (_, output) = self.client.start_attached(spec).await.unwrap();
        finish(output).await.unwrap()
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn shell(script: &str) -> ProcessSpec {
    ProcessSpec::new(["sh", "-c", script])
}

pub(crate) fn user(name: &str) -> UserName {
    name.parse().unwrap()
}

/// All that a process said.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) gaps: Vec<(StreamKind, u64, u64)>,
    pub(crate) exit: Option<ExitStatus>,
}

impl Finished {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        match self.exit?.termination {
            Termination::Exited(code) => Some(code),
            Termination::Signaled(_) => None,
        }
    }
}

pub(crate) async fn finish(mut output: OutputStream) -> Result<Finished, GuestError> {
    let mut finished = Finished::default();
    while let Some(event) = output.next().await {
        match event? {
            OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. } => finished.stdout.extend_from_slice(&bytes),
            OutputEvent::Data { stream: StreamKind::Stderr, bytes, .. } => finished.stderr.extend_from_slice(&bytes),
            OutputEvent::Gap { stream, from, to } => finished.gaps.push((stream, from, to)),
            OutputEvent::Exit(exit) => finished.exit = Some(exit),
        }
    }
    Ok(finished)
}
