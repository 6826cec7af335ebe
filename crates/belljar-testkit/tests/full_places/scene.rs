//! One sandbox with something to lose, a snapshot of it that was acknowledged, and the means to look at both.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use belljar_client::{Client, CreateSandbox, NewFile, NewForks, NewSnapshot, SandboxView, SnapshotView, StartProcess};
use belljar_testkit::s3::{self, S3Server};
use belljar_testkit::{ServerProcess, SmallDisk, path, pattern};
use belljar_types::{ProcessId, SandboxId, SandboxState};
use bytes::Bytes;
use futures_util::TryStreamExt;

const KEEPER: &str = "keeper";
pub(crate) const FILE: &str = "/home/user/file";
/// What is written over the layers: enough that a place can run full in the middle of it.
const LARGE: usize = 12 << 20;

pub(crate) struct Scene<'a> {
    pub(crate) server: &'a ServerProcess,
    pub(crate) outside: &'a SmallDisk,
    pub(crate) client: Client,
    pub(crate) sandbox: SandboxView,
    pub(crate) kept: SnapshotView,
}

impl<'a> Scene<'a> {
    pub(crate) async fn set(server: &'a ServerProcess, outside: &'a SmallDisk, class: &str) -> Self {
        let client = server.client();
        let request = CreateSandbox {
            template: Some("small".to_owned()),
            isolation: Some(class.to_owned()),
            lease_seconds: Some(7200),
            ..CreateSandbox::default()
        };
        let sandbox = client.create_sandbox(&request, None).await.unwrap_or_else(|error| panic!("{error:?}\n{}", server.last_words()));
        client.write_file(&sandbox.id, &path(FILE), NewFile::default(), pattern(LARGE)).await.unwrap();
        let keeper = StartProcess { id: keeper(), ..StartProcess::new(["/bin/sleep", "100000"]) };
        client.start_process(&sandbox.id, &keeper).await.unwrap();
        let kept = client.take_snapshot(&sandbox.id, &NewSnapshot::default()).await;
        let kept = kept.unwrap_or_else(|error| panic!("{error:?}\n{}", server.last_words()));
        Self { server, outside, client, sandbox, kept }
    }

    /// What the snapshot must give back.
    pub(crate) async fn mark(&self) -> Bytes {
        self.read(&self.sandbox.id).await
    }

    async fn read(&self, id: &SandboxId) -> Bytes {
        let file =
            self.client.read_file(id, &path(FILE), None).await.unwrap_or_else(|error| panic!("{error:?}\n{}", self.server.last_words()));
        Bytes::from(file.pieces().try_collect::<Vec<Bytes>>().await.unwrap().concat())
    }

    /// The sandbox goes on as if nothing had happened.
    pub(crate) async fn check_alive(&self, context: &str) {
        let seen = self.client.sandbox(&self.sandbox.id).await.unwrap();
        assert_eq!(seen.state, SandboxState::Running, "{context}: {seen:?}");
        assert!(self.read(&self.sandbox.id).await == pattern(LARGE), "{context}: its file is another");
        assert!(self.has_keeper(&self.sandbox.id).await, "{context}: its process is gone");
    }

    /// A snapshot makes a sandbox with what it held.
    pub(crate) async fn check_fork(&self, snapshot: &str, mark: &Bytes, context: &str) {
        let forks = self.client.fork_snapshot(snapshot, &NewForks { count: 1, ..NewForks::default() }).await;
        for fork in forks.unwrap_or_else(|error| panic!("{context}: {error:?}\n{}", self.server.last_words())) {
            let made = fork.sandbox.unwrap_or_else(|| panic!("{context}: {:?}\n{}", fork.error, self.server.last_words()));
            assert!(self.read(&made.id).await == *mark, "{context}: a fork of {snapshot} has another file");
            assert!(self.sandbox.isolation != "gvisor" || self.has_keeper(&made.id).await, "{context}: a fork lost its memory");
            self.client.kill_sandbox(&made.id).await.unwrap();
        }
    }

    async fn has_keeper(&self, id: &SandboxId) -> bool {
        self.client.processes(id).await.unwrap().iter().any(|process| process.id == keeper() && process.exit.is_none())
    }

    /// Ends everything that a round made.
    pub(crate) async fn clear(self) {
        self.client.kill_sandbox(&self.sandbox.id).await.unwrap();
        for snapshot in self.client.snapshots(&Default::default()).await.unwrap().snapshots {
            self.client.remove_snapshot(&snapshot.id).await.unwrap();
        }
        for volume in self.client.volumes(None).await.unwrap().volumes {
            self.client.remove_volume(&volume.name).await.unwrap();
        }
        let blobs = self.outside.path().join("blobs");
        for entry in std::fs::read_dir(&blobs).into_iter().flatten() {
            std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
    }
}

fn keeper() -> ProcessId {
    KEEPER.parse().unwrap()
}

/// Blobs in a bucket, with a key file of its own.
pub(crate) fn settings_for_bucket(bucket: &S3Server, home: &Path) -> String {
    let key = home.join("key");
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key).unwrap();
    let text = format!("access_key_id = \"{}\"\nsecret_access_key = \"{}\"\n", s3::ACCESS_KEY, s3::SECRET_KEY);
    std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
    format!(
        "[blobs]\nkind = \"s3\"\nendpoint = \"{}\"\nregion = \"{}\"\nbucket = \"{}\"\nkey_file = \"{}\"\n",
        bucket.endpoint(),
        s3::REGION,
        s3::BUCKET,
        key.display()
    )
}
