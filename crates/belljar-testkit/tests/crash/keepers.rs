//! Those who keep state while the server is being killed: what was acknowledged is there, what was not is there wholly or not at all.

use std::collections::BTreeSet;

use belljar_client::{ListSandboxes, ListSnapshots, NewForks, NewSnapshot, SandboxView, SnapshotView};
use belljar_types::{SandboxId, SandboxState};
use bytes::Bytes;

use crate::insist::Insisting;
use crate::ledger::Ledger;
use crate::workers::Worker;

const FILE: &str = "/home/user/state";
const FORKS: u32 = 2;

impl Insisting {
    /// Takes a snapshot of this name, unless the server took it before it died.
    pub(crate) async fn snapshot(&self, id: &SandboxId, name: &str) -> SnapshotView {
        let which = ListSnapshots { name: Some(name.to_owned()), ..ListSnapshots::default() };
        let request = NewSnapshot { name: Some(name.to_owned()), kind: Some("filesystem".to_owned()), ..NewSnapshot::default() };
        let take = || async {
            match self.client.snapshots(&which).await?.snapshots.pop() {
                Some(taken) => Ok(taken),
                None => self.client.take_snapshot(id, &request).await,
            }
        };
        self.ask("take a snapshot", take).await
    }

    /// Makes forks that know by this mark whose they are, unless the server made them before it died; it made all of them or none.
    pub(crate) async fn forks(&self, snapshot: &str, mark: &str) -> Vec<SandboxView> {
        let metadata = [("fork".to_owned(), mark.to_owned())];
        let states: Vec<SandboxState> = SandboxState::ALL.into_iter().filter(|state| !state.has_ended()).collect();
        let which = ListSandboxes { states, metadata: metadata.to_vec(), ..ListSandboxes::default() };
        let request =
            NewForks { count: FORKS, all_or_nothing: true, metadata: Some(metadata.into_iter().collect()), ..NewForks::default() };
        let make = || async {
            let there = self.client.sandboxes(&which).await?.sandboxes;
            assert!(there.is_empty() || there.len() == FORKS as usize, "half a fork is there: {there:?}");
            if !there.is_empty() {
                return Ok(there);
            }
            let made = self.client.fork_snapshot(snapshot, &request).await?;
            Ok(made.into_iter().filter_map(|fork| fork.sandbox).collect())
        };
        let made: Vec<SandboxView> = self.ask("fork", make).await;
        assert_eq!(made.len(), FORKS as usize);
        made
    }

    pub(crate) async fn remove_snapshot(&self, snapshot: &str) {
        let remove = || async {
            match self.client.remove_snapshot(snapshot).await {
                Err(error) if error.code() == Some("snapshot_not_found") => Ok(()),
                other => other,
            }
        };
        self.ask("remove a snapshot", remove).await;
    }
}

impl Worker {
    /// Keeps a file's content under a name, makes forks of it, and goes back to it.
    pub(crate) async fn keep(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        for round in 0.. {
            if !self.goes_on() {
                break;
            }
            let name = format!("{}-{round}", self.name);
            let content = Bytes::from(format!("as it was in round {round}\n"));
            self.client.write(&id, FILE, &content).await;
            let taken = self.client.snapshot(&id, &name).await;
            self.client.write(&id, FILE, &Bytes::from_static(b"later\n")).await;
            for fork in self.client.forks(&taken.id, &name).await {
                assert!(self.client.read(&fork.id, FILE).await == content, "{} is a copy of {}", fork.id, taken.id);
                self.client.kill(&fork.id).await;
                self.ledger.killed.insert(fork.id);
                self.ledger.forks += 1;
            }
            let back = self.client.ask("roll back", || self.client.client.roll_back(&id, &taken.id)).await;
            assert_eq!(back.state, SandboxState::Running);
            assert!(self.client.read(&id, FILE).await == content, "{id} is back where it was");
            if self.dice.below(2) == 0 || self.ledger.snapshots.len() > 2 {
                self.client.remove_snapshot(&taken.id).await;
            } else {
                self.ledger.snapshots.insert(taken.id, content);
            }
        }
        self.ledger
    }
}

impl Ledger {
    /// Every acknowledged snapshot is there with what it held, and no other.
    pub(crate) async fn compare_snapshots(&self, client: &Insisting) {
        let all = ListSnapshots::default();
        let page = client.ask("list snapshots", || client.client.snapshots(&all)).await;
        let there: BTreeSet<&String> = page.snapshots.iter().map(|snapshot| &snapshot.id).collect();
        assert_eq!(there, self.snapshots.keys().collect(), "snapshots that were acknowledged, and no half ones");
        for (snapshot, content) in &self.snapshots {
            for fork in client.forks(snapshot, &format!("compare-{snapshot}")).await {
                assert!(client.read(&fork.id, FILE).await == *content, "{snapshot} holds what was acknowledged");
                client.kill(&fork.id).await;
            }
        }
    }
}
