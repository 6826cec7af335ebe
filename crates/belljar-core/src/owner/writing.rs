//! How an owner changes its sandbox: in the store first, and only then for everybody who looks.

use std::sync::Arc;

use belljar_ports::StoreError;
use belljar_types::{Sandbox, SandboxState};

use super::Owner;
use crate::telling;

impl Owner {
    /// Writes the sandbox as it is to be, then shows it so. What the engine has made of it by then is owed to the store if it takes nothing now.
    pub(crate) async fn advance(&mut self, state: SandboxState, change: impl FnOnce(&mut Sandbox)) -> Result<(), StoreError> {
        let mut next = Sandbox { state, ..self.sandbox.clone() };
        change(&mut next);
        let is_under_way = matches!(self.sandbox.state, SandboxState::Pausing | SandboxState::Resuming);
        let written = self.write(next.clone()).await;
        if is_under_way && matches!(&written, Err(error) if !matches!(error, StoreError::Fenced { .. })) {
            self.owed = Some(next);
        }
        written
    }

    /// Writes it once.
    pub(crate) async fn write(&mut self, next: Sandbox) -> Result<(), StoreError> {
        let (store, epoch, was) = (&self.shared.store, self.shared.epoch, self.sandbox.state);
        let message = telling::of_life(was, &next);
        let written = match &message {
            Some(message) => store.record_and_tell(epoch, was, self.sandbox.execution(), &next, message).await,
            None => store.record(epoch, was, self.sandbox.execution(), &next).await,
        };
        if let Err(error) = written {
            self.shared.note(&error);
            return Err(error);
        }
        if message.is_some() {
            self.shared.tellings.notify_one();
        }
        self.show(next);
        Ok(())
    }

    /// What everybody sees from now on.
    pub(crate) fn show(&mut self, next: Sandbox) {
        self.sandbox = next;
        self.appear(Arc::new(self.sandbox.clone()));
    }

    /// Shows everybody a sandbox, and tells whoever listens.
    pub(crate) fn appear(&self, now: Arc<Sandbox>) {
        let before = self.view.send_replace(Arc::clone(&now));
        self.shared.news.tell(now, Some(before));
    }
}
