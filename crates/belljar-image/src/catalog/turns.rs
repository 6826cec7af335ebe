//! One make at a time for each owner's name: two at once would do the same work twice, and whoever asked last might not be last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use belljar_types::{ProjectId, TemplateName};
use tokio::sync::OwnedMutexGuard;

type Owned = (Option<ProjectId>, TemplateName);
type Turn = tokio::sync::Mutex<()>;

/// Who is making what.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Owned, Weak<Turn>>>);

impl Turns {
    /// Waits until nobody else makes this one. First come, first served; over when what is returned is dropped.
    pub(super) async fn wait(&self, owner: Option<&ProjectId>, name: &TemplateName) -> OwnedMutexGuard<()> {
        self.turn((owner.cloned(), name.clone())).lock_owned().await
    }

    fn turn(&self, key: Owned) -> Arc<Turn> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&key).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn::default());
        turns.insert(key, Arc::downgrade(&turn));
        turn
    }
}
