//! Whose end was told already. Many may read one process's output to its end, and it ends once. Bounded: what is forgotten, or was told by a
//! server before this one, may be told twice, which harms nobody; what is lost would.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use belljar_types::ProcessId;

/// More ends than this are not remembered at a time.
const REMEMBERED: usize = 512;

#[derive(Default)]
pub(crate) struct Told(Mutex<VecDeque<ProcessId>>);

impl Told {
    /// Whether nobody has told of this one yet; from now on somebody has.
    pub(super) fn first_time(&self, id: &ProcessId) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(id) {
            return false;
        }
        if told.len() >= REMEMBERED {
            told.pop_front();
        }
        told.push_back(id.clone());
        true
    }
}
