//! A process's output, whole and once, whatever happens to the connection: every reading begins at the byte where the last one ended.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use belljar_types::{Offsets, OutputEvent, ProcessId, SandboxId, StreamKind};
use futures_util::{Stream, StreamExt};

use crate::client::Client;
use crate::error::ClientError;
use crate::patience::Patience;

/// The server says something at least this often, if only that it is there.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

type Reading = Pin<Box<dyn Stream<Item = Result<Option<OutputEvent>, ClientError>> + Send>>;

/// Reads the output of one process.
pub struct Follower {
    client: Client,
    sandbox: SandboxId,
    process: ProcessId,
    next: Offsets,
    patience: Arc<Patience>,
    reading: Option<Reading>,
    ended: bool,
}

impl Follower {
    /// Reads from these offsets on.
    pub fn new(client: Client, sandbox: SandboxId, process: ProcessId, from: Offsets, patience: Arc<Patience>) -> Self {
        Self { client, sandbox, process, next: from, patience, reading: None, ended: false }
    }

    /// Begins with a reading that is already open, from the same offsets.
    #[must_use]
    pub fn resuming(self, reading: impl Stream<Item = Result<Option<OutputEvent>, ClientError>> + Send + 'static) -> Self {
        Self { reading: Some(Box::pin(reading)), ..self }
    }

    /// The next piece; `None` after the end of the process was given.
    pub async fn next(&mut self) -> Result<Option<OutputEvent>, ClientError> {
        while !self.ended {
            match self.read().await {
                Ok(Some(event)) => {
                    self.patience.answered();
                    if let Some(event) = self.count(event) {
                        return Ok(Some(event));
                    }
                }
                Ok(None) => self.patience.answered(),
                Err(error) => {
                    self.reading = None;
                    self.patience.bear(error).await?;
                }
            }
        }
        Ok(None)
    }

    async fn read(&mut self) -> Result<Option<OutputEvent>, ClientError> {
        let cut_short = || ClientError::CutShort { url: self.client.url().to_owned() };
        let reading = match &mut self.reading {
            Some(reading) => reading,
            None => self.reading.insert(Box::pin(self.client.output(&self.sandbox, &self.process, self.next).await?)),
        };
        match tokio::time::timeout(LONGEST_SILENCE, reading.next()).await {
            Ok(Some(event)) => event,
            Ok(None) | Err(_) => Err(cut_short()),
        }
    }

    /// Moves the offsets on, and drops what was given before.
    fn count(&mut self, event: OutputEvent) -> Option<OutputEvent> {
        match event {
            OutputEvent::Exit(_) => {
                self.ended = true;
                Some(event)
            }
            OutputEvent::Gap { stream, to, .. } => {
                let next = self.next_in(stream);
                let gap = (to > *next).then_some(OutputEvent::Gap { stream, from: *next, to });
                *next = to.max(*next);
                gap
            }
            OutputEvent::Data { stream, offset, bytes } => {
                let next = self.next_in(stream);
                let known = usize::try_from(next.saturating_sub(offset)).unwrap_or(usize::MAX);
                if known >= bytes.len() {
                    return None;
                }
                let bytes = bytes.slice(known..);
                let offset = (*next).max(offset);
                *next = offset + bytes.len() as u64;
                Some(OutputEvent::Data { stream, offset, bytes })
            }
        }
    }

    fn next_in(&mut self, stream: StreamKind) -> &mut u64 {
        match stream {
            StreamKind::Stdout => &mut self.next.stdout,
            StreamKind::Stderr => &mut self.next.stderr,
        }
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::{ExitStatus, Termination};
    use bytes::Bytes;

    use super::*;
    use crate::Connection;

    fn follower(stdout: u64) -> Follower {
        let connection = Connection { url: "http://127.0.0.1:1".to_owned(), key: None, certificate: None };
        let patience = Arc::new(Patience::new(Duration::ZERO));
        let from = Offsets { stdout, stderr: 0 };
        Follower::new(Client::new(&connection).unwrap(), SandboxId::random(), ProcessId::random(), from, patience)
    }

    fn data(offset: u64, bytes: &'static str) -> OutputEvent {
        OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes: Bytes::from_static(bytes.as_bytes()) }
    }

    fn gap(from: u64, to: u64) -> OutputEvent {
        OutputEvent::Gap { stream: StreamKind::Stdout, from, to }
    }

    #[test]
    fn what_was_given_before_is_not_given_twice() {
        let mut follower = follower(0);
        for (event, expected) in [
            (data(0, "abc"), Some(data(0, "abc"))),
            (data(0, "abc"), None),
            (data(1, "bcde"), Some(data(3, "de"))),
            (gap(0, 5), None),
            (gap(2, 9), Some(gap(5, 9))),
            (data(9, "x"), Some(data(9, "x"))),
        ] {
            assert_eq!(follower.count(event), expected);
        }
        assert_eq!(follower.next, Offsets { stdout: 10, stderr: 0 });
    }

    #[tokio::test]
    async fn after_the_end_there_is_nothing() {
        let exit = OutputEvent::Exit(ExitStatus { termination: Termination::Exited(0), cause: None });
        let mut follower = follower(3).resuming(futures_util::stream::iter([Ok(None), Ok(Some(data(3, "d"))), Ok(Some(exit.clone()))]));
        assert_eq!(follower.next().await.unwrap(), Some(data(3, "d")));
        assert_eq!(follower.next().await.unwrap(), Some(exit));
        assert_eq!(follower.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_server_that_stays_away_is_given_up() {
        assert!(matches!(follower(0).next().await, Err(ClientError::Unreachable { .. })));
    }
}
