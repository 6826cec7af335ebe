//! Sandboxes that are being made, so that nobody says one is gone while it is still on its way.
//!
//! A making goes on when nobody waits for it any more, and for a while there is no record of it yet. Whoever removes a sandbox tells its
//! making that it is not wanted, and waits until that has cleaned up after itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_types::SandboxId;
use tokio::sync::watch;

/// All that this process is making right now.
#[derive(Default)]
pub(crate) struct Makings(Mutex<HashMap<SandboxId, Arc<watch::Sender<bool>>>>);

/// One of them; over when this is dropped.
pub(crate) struct Making {
    id: SandboxId,
    all: Arc<Makings>,
    unwanted: watch::Receiver<bool>,
}

impl Makings {
    /// Begins one, unless there is one of that name.
    pub(crate) fn begin(self: &Arc<Self>, id: &SandboxId) -> Option<Making> {
        let mut known = self.known();
        if known.contains_key(id) {
            return None;
        }
        let (tell, unwanted) = watch::channel(false);
        known.insert(id.clone(), Arc::new(tell));
        Some(Making { id: id.clone(), all: Arc::clone(self), unwanted })
    }

    pub(crate) fn is_making(&self, id: &SandboxId) -> bool {
        self.known().contains_key(id)
    }

    /// Says that it is not wanted any more, and waits until it is over.
    pub(crate) async fn call_off(&self, id: &SandboxId) {
        let making = self.known().get(id).cloned();
        if let Some(making) = making {
            making.send_replace(true);
            making.closed().await;
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SandboxId, Arc<watch::Sender<bool>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Making {
    pub(crate) fn is_called_off(&self) -> bool {
        *self.unwanted.borrow()
    }

    /// Returns as soon as nobody wants it any more.
    pub(crate) async fn called_off(&self) {
        let mut unwanted = self.unwanted.clone();
        if unwanted.wait_for(|unwanted| *unwanted).await.is_err() {
            // Its entry cannot go before it does.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.all.known().remove(&self.id);
    }
}
