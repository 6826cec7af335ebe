//! What the server has acknowledged, to be compared with what is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use belljar_client::ListSandboxes;
use belljar_types::{SandboxId, SandboxState};
use bytes::Bytes;

use crate::insist::Insisting;

/// What workers were told.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Sandboxes that were made and not killed, by the key they were made with.
    pub(crate) living: BTreeMap<String, (SandboxId, String)>,
    /// Sandboxes that were killed.
    pub(crate) killed: BTreeSet<SandboxId>,
    /// Files as they were last written, in sandboxes that live.
    pub(crate) files: BTreeMap<(SandboxId, String), Bytes>,
    /// How many processes were started in each sandbox that lives and notes its starts.
    pub(crate) starts: BTreeMap<SandboxId, BTreeSet<String>>,
    /// Snapshots that were taken and not removed, with what a file in them holds.
    pub(crate) snapshots: BTreeMap<String, Bytes>,
    /// Forks that were looked into.
    pub(crate) forks: u64,
    /// Pauses that were gone on from.
    pub(crate) pauses: u64,
    /// Copies of volumes that were looked into.
    pub(crate) copies: u64,
    /// Sweeps that left the layers of a snapshot alone.
    pub(crate) sweeps: u64,
    /// Files that programs in a sandbox had kept, by the id they were told, with what they held.
    pub(crate) artifacts: BTreeMap<SandboxId, BTreeMap<String, Bytes>>,
    /// Bytes of output that were compared.
    pub(crate) compared: u64,
    /// Processes that ran to their end.
    pub(crate) processes: u64,
}

/// The file in which each process notes its start, by one appending write.
pub(crate) const STARTS: &str = "/home/user/starts";

impl Ledger {
    pub(crate) fn add(&mut self, other: Self) {
        self.living.extend(other.living);
        self.killed.extend(other.killed);
        self.files.extend(other.files);
        self.starts.extend(other.starts);
        self.snapshots.extend(other.snapshots);
        self.forks += other.forks;
        self.pauses += other.pauses;
        self.copies += other.copies;
        self.sweeps += other.sweeps;
        self.artifacts.extend(other.artifacts);
        self.compared += other.compared;
        self.processes += other.processes;
    }

    /// A suite in which nothing happened proves nothing.
    pub(crate) fn assert_something_happened(&self) {
        assert!(self.living.len() >= 5 && !self.killed.is_empty() && !self.files.is_empty(), "{self}");
        assert!(self.processes > 0 && self.compared > 0, "{self}");
    }

    /// Every acknowledged thing is there, and nothing else is.
    pub(crate) async fn compare(&self, client: &Insisting) {
        for (key, (id, class)) in &self.living {
            let again = client.create(class, key).await;
            assert_eq!(again.id, *id, "the same key is the same sandbox");
            assert_eq!(client.sh(id, "echo alive").await.stdout, b"alive\n", "{id} was acknowledged and never killed");
        }
        for id in &self.killed {
            let gone = client.show(id).await;
            assert_eq!((gone.state, gone.end.unwrap().cause.as_str()), (SandboxState::Stopped, "requested"), "{id} was killed");
        }
        for ((id, file), content) in &self.files {
            assert!(client.read(id, file).await == *content, "{file} of {id} is not as it was acknowledged");
        }
        for (id, expected) in &self.starts {
            let noted = client.read(id, STARTS).await;
            let noted: Vec<&str> = std::str::from_utf8(&noted).unwrap().lines().collect();
            let once: BTreeSet<String> = noted.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(once.len(), noted.len(), "a process of {id} was started twice");
            assert_eq!(&once, expected, "the processes of {id}");
        }
        self.compare_snapshots(client).await;
        self.compare_artifacts(client).await;
        let expected: BTreeSet<SandboxId> = self.living.values().map(|(id, _)| id.clone()).collect();
        assert_eq!(living(client).await, expected, "nothing lives that nobody was told of");
    }

    /// Ends everything.
    pub(crate) async fn end_all(&self, client: &Insisting) {
        for (id, _) in self.living.values() {
            client.kill(id).await;
        }
        for snapshot in self.snapshots.keys() {
            client.remove_snapshot(snapshot).await;
        }
        assert!(living(client).await.is_empty());
    }
}

/// All that has not ended, as the server lists it.
async fn living(client: &Insisting) -> BTreeSet<SandboxId> {
    let states: Vec<SandboxState> = SandboxState::ALL.into_iter().filter(|state| !state.has_ended()).collect();
    let (mut found, mut cursor) = (BTreeSet::new(), None);
    loop {
        let which = ListSandboxes { states: states.clone(), cursor, limit: Some(100), ..ListSandboxes::default() };
        let page = client.ask("list", || client.client.sandboxes(&which)).await;
        found.extend(page.sandboxes.into_iter().map(|sandbox| sandbox.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let started: usize = self.starts.values().map(BTreeSet::len).sum();
        write!(
            f,
            "{} sandboxes live, {} were killed, {} files written, {} processes run ({started} counted), {} snapshots kept, {} forks, {} pauses, {} copies of volumes, {} sweeps, {} files kept from inside, {} bytes of output compared",
            self.living.len(),
            self.killed.len(),
            self.files.len(),
            self.processes,
            self.snapshots.len(),
            self.forks,
            self.pauses,
            self.copies,
            self.sweeps,
            self.artifacts.values().map(BTreeMap::len).sum::<usize>(),
            self.compared
        )
    }
}
