//! One sandbox of a server, a snapshot of it that was acknowledged, and what is asked for when its engine dies.

use std::time::Duration;

use belljar_client::{
    Client, ClientError, CreateSandbox, ListSandboxes, NewFile, NewForks, NewSnapshot, SandboxView, SnapshotView, StartProcess,
};
use belljar_testkit::{ServerProcess, path};
use belljar_types::{IsolationClass, PauseKind, ProcessId, SandboxId, SandboxState};

pub(crate) const FILE: &str = "/home/user/marker";
pub(crate) const CONTENT: &[u8] = b"good";
const KEEPER: &str = "keeper";
pub(crate) const FORKS: u32 = 2;
/// How often a fork is looked for before there is none.
const LOOKS: u32 = 20_000;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Pause,
    StandBy,
    Snapshot,
    Fork,
    ForkTogether,
}

pub(crate) const VERBS: [Verb; 5] = [Verb::Pause, Verb::StandBy, Verb::Snapshot, Verb::Fork, Verb::ForkTogether];

impl Verb {
    pub(crate) fn forks(self) -> bool {
        matches!(self, Self::Fork | Self::ForkTogether)
    }
}

/// What was said to be there.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug)]
pub(crate) enum Made {
    Paused(SandboxView),
    Snapshot(SnapshotView),
    Forks(Vec<SandboxView>),
}

pub(crate) struct Scene<'a> {
    pub(crate) server: &'a ServerProcess,
    pub(crate) client: Client,
    pub(crate) class: IsolationClass,
    pub(crate) sandbox: SandboxView,
    pub(crate) kept: SnapshotView,
}

impl<'a> Scene<'a> {
    pub(crate) async fn set(server: &'a ServerProcess, class: IsolationClass) -> Self {
        let client = server.client();
        let request = CreateSandbox { isolation: Some(class.to_string()), ..CreateSandbox::default() };
        let sandbox = client.create_sandbox(&request, None).await.unwrap_or_else(|error| panic!("{error:?}\n{}", server.last_words()));
        client.write_file(&sandbox.id, &path(FILE), NewFile::default(), CONTENT).await.unwrap();
        let keeper = StartProcess { id: keeper(), ..StartProcess::new(["/bin/sleep", "100000"]) };
        client.start_process(&sandbox.id, &keeper).await.unwrap();
        let kept = client.take_snapshot(&sandbox.id, &NewSnapshot::default()).await;
        let kept = kept.unwrap_or_else(|error| panic!("{error:?}\n{}", server.last_words()));
        Self { server, client, class, sandbox, kept }
    }

    pub(crate) async fn perform(&self, verb: Verb) -> Result<Made, ClientError> {
        match verb {
            Verb::Pause => self.client.pause_sandbox(&self.sandbox.id, PauseKind::Memory).await.map(Made::Paused),
            Verb::StandBy => self.client.pause_sandbox(&self.sandbox.id, PauseKind::Standby).await.map(Made::Paused),
            Verb::Snapshot => self.client.take_snapshot(&self.sandbox.id, &NewSnapshot::default()).await.map(Made::Snapshot),
            Verb::Fork | Verb::ForkTogether => {
                let request = NewForks { count: FORKS, all_or_nothing: verb == Verb::ForkTogether, ..NewForks::default() };
                let forks = self.client.fork_sandbox(&self.sandbox.id, &request).await?;
                Ok(Made::Forks(forks.into_iter().filter_map(|fork| fork.sandbox).collect()))
            }
        }
    }

    /// A sandbox that is only coming to be, as the disk shows it.
    pub(crate) async fn newborn(&self) -> Option<SandboxId> {
        for _ in 0..LOOKS {
            let homes = std::fs::read_dir(self.server.scope.data_dir.join("sandboxes")).unwrap();
            let names = homes.flatten().filter_map(|home| home.file_name().to_str()?.parse::<SandboxId>().ok());
            if let Some(id) = names.into_iter().find(|id| *id != self.sandbox.id) {
                return Some(id);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        None
    }

    /// All sandboxes that have not ended.
    pub(crate) async fn living(client: &Client) -> Vec<SandboxView> {
        let states: Vec<SandboxState> = SandboxState::ALL.into_iter().filter(|state| !state.has_ended()).collect();
        client.sandboxes(&ListSandboxes { states, ..ListSandboxes::default() }).await.unwrap().sandboxes
    }
}

/// Ends everything that a round made.
pub(crate) async fn clear(client: &Client) {
    for sandbox in Scene::living(client).await {
        match client.kill_sandbox(&sandbox.id).await {
            Err(error) if error.code() != Some("sandbox_ended") => panic!("{error:?}"),
            _ => {}
        }
    }
    for snapshot in client.snapshots(&Default::default()).await.unwrap().snapshots {
        client.remove_snapshot(&snapshot.id).await.unwrap();
    }
}

pub(crate) fn keeper() -> ProcessId {
    KEEPER.parse().unwrap()
}
