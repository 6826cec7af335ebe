//! What becomes of sandboxes, told to whoever listens. While anybody does, one task looks at all that live, in memory, and tells what has changed since;
//! whoever listens is told of their own project only, and asks for the rest as before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_core::{DEFAULT_PROJECT, Service};
use belljar_http::acting_for;
use belljar_types::{Sandbox, SandboxId, SandboxState, Scope};
use tokio::sync::broadcast::{self, Receiver, Sender};

const EVERY: Duration = Duration::from_millis(500);
/// Whoever hears more slowly than this misses some, and finds out by asking.
const WAITING: usize = 1024;

/// A sandbox whose state is another now, and the one before; none of a new one.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) before: Option<Arc<Sandbox>>,
}

/// Who listens.
pub(crate) struct Changes {
    service: Arc<Service>,
    sender: Sender<Change>,
    /// Whether somebody looks.
    looking: Mutex<bool>,
}

impl Changes {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self { service, sender: Sender::new(WAITING), looking: Mutex::new(false) }
    }

    /// All changes from now on.
    pub(crate) fn listen(self: &Arc<Self>) -> Receiver<Change> {
        let receiver = self.sender.subscribe();
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        if !*looking {
            *looking = true;
            tokio::spawn(Arc::clone(self).look());
        }
        receiver
    }

    async fn look(self: Arc<Self>) {
        let mut seen = None;
        while self.is_wanted() {
            let now = self.live();
            if let Some(before) = seen.replace(now.clone()) {
                for change in changed(&before, &now) {
                    // Nobody may listen any more.
                    let _ = self.sender.send(change);
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Whether anybody listens. If nobody does, whoever comes next starts the looking again.
    fn is_wanted(&self) -> bool {
        let mut looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        *looking = self.sender.receiver_count() > 0;
        *looking
    }

    fn live(&self) -> Seen {
        let Ok(project) = DEFAULT_PROJECT.parse() else { return Seen::new() };
        let live = self.service.live(&acting_for(project, Scope::Admin)).unwrap_or_default();
        live.into_iter().map(|sandbox| (sandbox.id.clone(), sandbox)).collect()
    }
}

type Seen = HashMap<SandboxId, Arc<Sandbox>>;

fn changed(before: &Seen, now: &Seen) -> Vec<Change> {
    let new = now.values().filter_map(|sandbox| {
        let before = before.get(&sandbox.id);
        let is_same = before.is_some_and(|before| before.state == sandbox.state);
        (!is_same).then(|| Change { sandbox: Arc::clone(sandbox), before: before.cloned() })
    });
    let gone = before.values().filter(|sandbox| !now.contains_key(&sandbox.id) && !sandbox.state.has_ended());
    let gone = gone.map(|sandbox| {
        let ended = Sandbox { state: SandboxState::Stopped, ..(**sandbox).clone() };
        Change { sandbox: Arc::new(ended), before: Some(Arc::clone(sandbox)) }
    });
    new.chain(gone).collect()
}

/// Hears the next change; nothing when there will be none.
pub(crate) async fn next(receiver: &mut Receiver<Change>) -> Option<Change> {
    loop {
        match receiver.recv().await {
            Ok(change) => return Some(change),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}
