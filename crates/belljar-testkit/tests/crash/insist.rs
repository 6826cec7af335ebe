//! A client that does not give up: a server that is away comes back, and one that is busy has room later.

use std::sync::Arc;
use std::time::Duration;

use belljar_client::{Client, ClientError, CreateSandbox, Feeder, Follower, NewFile, Patience, SandboxView, SpoolRequest, StartProcess};
use belljar_testkit::path;
use belljar_types::{Offsets, OutputEvent, ProcessId, SandboxId, StreamKind, Termination};
use bytes::Bytes;
use futures_util::TryStreamExt;

/// Much longer than it takes a slow machine to finish something between two kills; a wait that reaches it is a hang.
const LIMIT: Duration = Duration::from_secs(600);

/// The client and its patience.
#[derive(Clone)]
pub(crate) struct Insisting {
    pub(crate) client: Client,
}

/// All that a process wrote, and its end.
pub(crate) struct Told {
    pub(crate) stdout: Vec<u8>,
    pub(crate) code: i32,
}

impl Insisting {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    fn patience() -> Arc<Patience> {
        Arc::new(Patience::new(LIMIT))
    }

    /// Sends a request until it is answered by more than "not now".
    pub(crate) async fn ask<T, F: Future<Output = Result<T, ClientError>>>(&self, what: &str, mut send: impl FnMut() -> F) -> T {
        let (patience, mut busy) = (Self::patience(), 0);
        loop {
            match patience.insist(&mut send).await {
                Ok(answer) => return answer,
                Err(error) if error.code() == Some("busy") && busy < 200 => {
                    busy += 1;
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                Err(error) => panic!("{what}: {error}: {error:?}"),
            }
        }
    }

    /// Makes a sandbox once, however often it has to be asked for.
    pub(crate) async fn create(&self, class: &str, key: &str) -> SandboxView {
        let request = CreateSandbox { isolation: Some(class.to_owned()), ..CreateSandbox::default() };
        let made = self.ask("create", || self.client.create_sandbox(&request, Some(key))).await;
        assert_eq!(made.state.as_str(), "running", "{made:?}");
        made
    }

    pub(crate) async fn kill(&self, id: &SandboxId) -> SandboxView {
        self.ask("kill", || self.client.kill_sandbox(id)).await
    }

    pub(crate) async fn show(&self, id: &SandboxId) -> SandboxView {
        self.ask("show", || self.client.sandbox(id)).await
    }

    /// Starts a process once; every byte it writes is kept until somebody has read it.
    pub(crate) async fn start(&self, id: &SandboxId, process: &StartProcess) {
        let process = StartProcess { spool: Some(SpoolRequest { capacity_bytes: 1 << 20, overflow: "slow" }), ..process.clone() };
        self.ask("start", || self.client.start_process(id, &process)).await;
    }

    pub(crate) fn feeder(&self, id: &SandboxId, process: &ProcessId) -> Feeder {
        Feeder::new(self.client.clone(), id.clone(), process.clone(), 0, Self::patience())
    }

    pub(crate) fn follower(&self, id: &SandboxId, process: &ProcessId) -> Follower {
        Follower::new(self.client.clone(), id.clone(), process.clone(), Offsets { stdout: 0, stderr: 0 }, Self::patience())
    }

    /// Reads a process's output to its end.
    pub(crate) async fn follow(&self, id: &SandboxId, process: &ProcessId) -> Told {
        read_to_end(self.follower(id, process)).await
    }

    /// Runs a script to its end.
    pub(crate) async fn sh(&self, id: &SandboxId, script: &str) -> Told {
        let process = StartProcess::new(["/bin/sh", "-c", script]);
        self.start(id, &process).await;
        self.follow(id, &process.id).await
    }

    pub(crate) async fn write(&self, id: &SandboxId, file: &str, content: &Bytes) {
        let (at, how) = (path(file), NewFile::default());
        let written = self.ask("write a file", || self.client.write_file(id, &at, how, content.clone())).await;
        assert_eq!(written.size, content.len() as u64);
    }

    pub(crate) async fn read(&self, id: &SandboxId, file: &str) -> Bytes {
        let at = path(file);
        let read = || async {
            let pieces: Vec<Bytes> = self.client.read_file(id, &at, None).await?.pieces().try_collect().await?;
            Ok(Bytes::from(pieces.concat()))
        };
        self.ask("read a file", read).await
    }
}

/// Reads all; that nothing is missing or twice is the reader's to compare, that nothing was skipped is checked here.
pub(crate) async fn read_to_end(mut follower: Follower) -> Told {
    let mut stdout = Vec::new();
    while let Some(event) = follower.next().await.unwrap_or_else(|error| panic!("read output: {error}: {error:?}")) {
        match event {
            OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes } => {
                assert_eq!(offset, stdout.len() as u64, "the next byte is the next one");
                stdout.extend_from_slice(&bytes);
            }
            OutputEvent::Data { bytes, .. } => panic!("standard error: {}", String::from_utf8_lossy(&bytes)),
            OutputEvent::Gap { from, to, .. } => panic!("bytes {from} to {to} fell out"),
            OutputEvent::Exit(exit) => match exit.termination {
                Termination::Exited(code) => return Told { stdout, code },
                Termination::Signaled(signal) => panic!("ended by signal {signal}"),
            },
        }
    }
    panic!("the output ended without an exit");
}
