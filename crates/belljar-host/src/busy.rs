//! One thing at a time for one sandbox: two calls for the same id wait for each other, calls for different ids do not.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, PoisonError};

use belljar_types::SandboxId;

#[derive(Default)]
pub(crate) struct Busy {
    ids: Mutex<HashSet<SandboxId>>,
    freed: Condvar,
}

/// The right to act on one sandbox, until dropped.
pub(crate) struct Turn<'a> {
    busy: &'a Busy,
    id: SandboxId,
}

impl Busy {
    pub(crate) fn wait_for(&self, id: &SandboxId) -> Turn<'_> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        while !ids.insert(id.clone()) {
            ids = self.freed.wait(ids).unwrap_or_else(PoisonError::into_inner);
        }
        Turn { busy: self, id: id.clone() }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.busy.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        self.busy.freed.notify_all();
    }
}
