//! One sandbox of a project with a quota, a snapshot of it that was acknowledged, and a program in it that fills its disk.

use std::time::Duration;

use belljar_client::{Client, CreateSandbox, ListSandboxes, NewFile, NewForks, NewQuota, NewSnapshot, SandboxView, StartProcess};
use belljar_testkit::{ServerProcess, path};
use belljar_types::{ProcessId, SandboxId, SandboxState};
use bytes::Bytes;
use futures_util::TryStreamExt;

/// What each sandbox may write.
pub(crate) const DISK: u64 = 32 << 20;
pub(crate) const SETTINGS: &str = "
[sandboxes]
allow_shared_kernel = true
default_lease = \"2h\"
disk_reserve = \"64MiB\"
[sandboxes.default_limits]
memory = \"128MiB\"
disk = \"32MiB\"
";

/// What a sandbox may have beyond its limit while it is resumed, so that one that is full can be.
const ROOM_TO_START: u64 = 16 << 20;
const FILE: &str = "/home/user/marker";
const CONTENT: &[u8] = b"good";
/// How often the end of a program that must end is looked for.
const LOOKS: u32 = 1200;

pub(crate) async fn set_disk_quota(server: &ServerProcess, bytes: u64) {
    let quota = NewQuota { disk_bytes: Some(bytes), sandboxes: Some(100), cpu_millis: Some(1_000_000), memory_bytes: Some(1 << 40) };
    server.client().set_quota("default", quota).await.unwrap();
}

pub(crate) struct Scene<'a> {
    server: &'a ServerProcess,
    pub(crate) client: Client,
    pub(crate) sandbox: SandboxView,
}

impl<'a> Scene<'a> {
    pub(crate) async fn set(server: &'a ServerProcess, class: &str) -> Self {
        let client = server.client();
        let request = CreateSandbox { isolation: Some(class.to_owned()), ..CreateSandbox::default() };
        let sandbox = client.create_sandbox(&request, None).await.unwrap_or_else(|error| panic!("{error:?}\n{}", server.last_words()));
        client.write_file(&sandbox.id, &path(FILE), NewFile::default(), CONTENT).await.unwrap();
        client.take_snapshot(&sandbox.id, &NewSnapshot::default()).await.unwrap();
        Self { server, client, sandbox }
    }

    /// Starts to write until no more fits, a while after now.
    pub(crate) async fn begin_to_fill(&self, hundredths: u64) -> ProcessId {
        let script = format!("sleep 0.{hundredths:02}; dd if=/dev/zero of=/home/user/large bs=64k; test $? -ne 0");
        let process = StartProcess::new(["/bin/sh", "-c", &script]);
        self.client.start_process(&self.sandbox.id, &process).await.unwrap();
        process.id
    }

    /// The program inside was told that no more fits.
    pub(crate) async fn check_full(&self, filling: &ProcessId, context: &str) {
        let mut looks = 0;
        let exit = loop {
            let process = self.client.process(&self.sandbox.id, filling).await;
            match process.unwrap_or_else(|error| panic!("{context}: {error:?}\n{}", self.server.last_words())).exit {
                Some(exit) => break exit,
                None if looks > LOOKS => panic!("{context}: what fills the disk goes on for ever"),
                None => looks += 1,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(exit.exit_code, Some(0), "{context}: {exit:?}");
        let written = self.client.stat(&self.sandbox.id, &path("/home/user/large"), None).await.unwrap().size;
        assert!(written > DISK / 2 && written <= DISK + ROOM_TO_START, "{context}: {written} bytes were written");
    }

    /// There is room again, when the file is gone and so is whoever else holds it.
    pub(crate) async fn check_got_over(&self, context: &str) {
        for fork in self.living().await.into_iter().filter(|found| found.id != self.sandbox.id) {
            self.client.kill_sandbox(&fork.id).await.unwrap();
        }
        for snapshot in self.client.snapshots(&Default::default()).await.unwrap().snapshots {
            self.client.remove_snapshot(&snapshot.id).await.unwrap();
        }
        let remove = StartProcess::new(["/bin/sh", "-c", "rm /home/user/large; sync"]);
        self.client.start_process(&self.sandbox.id, &remove).await.unwrap();
        let mut room = false;
        for _ in 0..LOOKS {
            room = self.client.write_file(&self.sandbox.id, &path("/home/user/more"), NewFile::default(), vec![7; 4096]).await.is_ok();
            if room {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(room, "{context}: nothing can be written although there is room again");
    }

    pub(crate) async fn check_alive(&self, context: &str) {
        let seen = self.client.sandbox(&self.sandbox.id).await.unwrap();
        assert_eq!(seen.state, SandboxState::Running, "{context}");
        assert_eq!(self.read(&self.sandbox.id).await, CONTENT, "{context}");
    }

    /// So many snapshots and sandboxes are there.
    pub(crate) async fn check_counts(&self, snapshots: usize, sandboxes: usize, context: &str) {
        let kept = self.client.snapshots(&Default::default()).await.unwrap().snapshots.len();
        assert_eq!(
            (kept, self.living().await.len()),
            (snapshots, sandboxes),
            "{context}: snapshots and sandboxes\n{}",
            self.server.last_words()
        );
    }

    /// Every snapshot makes a sandbox with what it held.
    pub(crate) async fn check_all_snapshots(&self, context: &str) {
        for snapshot in self.client.snapshots(&Default::default()).await.unwrap().snapshots {
            let forks = self.client.fork_snapshot(&snapshot.id, &NewForks { count: 1, ..NewForks::default() }).await.unwrap();
            for fork in forks {
                let made = fork.sandbox.unwrap_or_else(|| panic!("{context}: {:?}\n{}", fork.error, self.server.last_words()));
                assert_eq!(self.read(&made.id).await, CONTENT, "{context}");
                self.client.kill_sandbox(&made.id).await.unwrap();
            }
        }
    }

    async fn read(&self, id: &SandboxId) -> Vec<u8> {
        let file =
            self.client.read_file(id, &path(FILE), None).await.unwrap_or_else(|error| panic!("{error:?}\n{}", self.server.last_words()));
        file.pieces().try_collect::<Vec<Bytes>>().await.unwrap().concat()
    }

    async fn living(&self) -> Vec<SandboxView> {
        let states: Vec<SandboxState> = SandboxState::ALL.into_iter().filter(|state| !state.has_ended()).collect();
        self.client.sandboxes(&ListSandboxes { states, ..ListSandboxes::default() }).await.unwrap().sandboxes
    }

    /// Ends everything that a round made.
    pub(crate) async fn clear(self) {
        for sandbox in self.living().await {
            self.client.kill_sandbox(&sandbox.id).await.unwrap();
        }
        for snapshot in self.client.snapshots(&Default::default()).await.unwrap().snapshots {
            self.client.remove_snapshot(&snapshot.id).await.unwrap();
        }
    }
}
