//! Sandboxes' names, of which each is one sandbox's in its project.
//!
//! A name is in the sandbox's metadata, so the store finds it. Between looking for a name and having a sandbox of that name it is spoken for here: two
//! who ask at once must not both get it. One server owns a store at a time, so this need not be known to anybody else.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_types::ProjectId;

type Owned = (ProjectId, String);

/// Names that somebody is about to use.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashSet<Owned>>);

/// A name that is spoken for until this is dropped.
pub(crate) struct SpokenFor {
    names: Arc<Names>,
    name: Owned,
}

impl Names {
    /// Speaks for a name; nothing if somebody else does.
    pub(crate) fn speak_for(self: &Arc<Self>, project: &ProjectId, name: &str) -> Option<SpokenFor> {
        let name = (project.clone(), name.to_owned());
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.insert(name.clone()).then(|| SpokenFor { names: Arc::clone(self), name })
    }
}

impl Drop for SpokenFor {
    fn drop(&mut self) {
        self.names.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_a_name_in_a_project() {
        let (names, project, other): (Arc<Names>, ProjectId, ProjectId) = (Arc::default(), "a".parse().unwrap(), "b".parse().unwrap());
        let mine = names.speak_for(&project, "x");
        assert!(mine.is_some() && names.speak_for(&project, "x").is_none());
        assert!(names.speak_for(&project, "y").is_some() && names.speak_for(&other, "x").is_some());
        drop(mine);
        assert!(names.speak_for(&project, "x").is_some());
        assert!(names.0.lock().unwrap().is_empty());
    }
}
