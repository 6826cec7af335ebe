//! Those who let sandboxes stand still, and those who copy volumes, while the server is being killed.

use belljar_client::{ClientError, NewClone, NewVolume};
use belljar_types::{PauseKind, SandboxState};
use bytes::Bytes;
use futures_util::TryStreamExt;

use crate::ledger::Ledger;
use crate::workers::Worker;

const FILE: &str = "/home/user/state";
const IN_VOLUME: &str = "/state";

/// What was done before the server died is done.
pub(crate) fn unless(code: &str, done: Result<(), ClientError>) -> Result<(), ClientError> {
    match done {
        Err(error) if error.code() == Some(code) => Ok(()),
        other => other,
    }
}

impl Worker {
    /// Pauses and resumes: with memory the same process is there afterwards, and the files are in any case.
    pub(crate) async fn doze(mut self) -> Ledger {
        let id = self.create(&self.name.clone()).await;
        let begin = "setsid sleep 1000000 >/dev/null 2>&1 & echo $! > /home/user/keeper";
        assert_eq!(self.client.sh(&id, begin).await.code, 0);
        for round in 0.. {
            if !self.goes_on() {
                break;
            }
            let content = Bytes::from(format!("as it was in round {round}\n"));
            self.client.write(&id, FILE, &content).await;
            let kind = match self.dice.below(4) {
                0 => PauseKind::Filesystem,
                1 => PauseKind::Standby,
                _ => PauseKind::Memory,
            };
            let paused = self.client.ask("pause", || self.client.client.pause_sandbox(&id, kind)).await;
            assert_eq!(paused.state, SandboxState::Paused);
            let back = self.client.ask("resume", || self.client.client.resume_sandbox(&id, None)).await;
            assert_eq!(back.state, SandboxState::Running);
            assert!(self.client.read(&id, FILE).await == content, "{id} went on with its files");
            if kind == PauseKind::Filesystem {
                assert_eq!(self.client.sh(&id, begin).await.code, 0);
            } else {
                assert_eq!(self.client.sh(&id, "kill -0 $(cat /home/user/keeper)").await.code, 0, "{id} went on with its memory");
            }
            self.ledger.pauses += 1;
        }
        self.ledger
    }

    /// Copies a volume: a copy that is there is whole.
    pub(crate) async fn copy(mut self) -> Ledger {
        let client = self.client.client.clone();
        let source = self.name.clone();
        let new = NewVolume { name: source.clone(), bucket: None, size_bytes: Some(16 << 20) };
        self.client.ask("make a volume", || async { unless("exists", client.create_volume(&new).await.map(drop)) }).await;
        for round in 0.. {
            if !self.goes_on() {
                break;
            }
            let content = Bytes::from(format!("as it was in round {round}\n").repeat(1000));
            self.client.ask("write to a volume", || client.write_volume_file(&source, IN_VOLUME, None, content.clone())).await;
            let name = format!("{source}-{round}");
            let copy = NewClone { name: name.clone(), size_bytes: None, read_only: false };
            self.client.ask("clone", || async { unless("exists", client.clone_volume(&source, &copy).await.map(drop)) }).await;
            let read = || async {
                let pieces: Vec<Bytes> = client.read_volume_file(&name, IN_VOLUME).await?.pieces().try_collect().await?;
                Ok(pieces.concat())
            };
            assert!(self.client.ask("read a volume", read).await == content, "{name} holds what {source} held");
            self.client.ask("remove a volume", || async { unless("volume_not_found", client.remove_volume(&name).await) }).await;
            self.ledger.copies += 1;
        }
        self.client.ask("remove a volume", || async { unless("volume_not_found", client.remove_volume(&source).await) }).await;
        self.ledger
    }
}
