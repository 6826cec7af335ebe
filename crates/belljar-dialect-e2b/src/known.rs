//! Whose a sandbox is, asked by those who come without a key: programs' ports are public, health checks and signed file links carry no token.
//!
//! What was seen once is remembered; what was not is looked for in the store, so that nothing is forgotten by a restart for good.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_core::{Caller, CoreError, DEFAULT_PROJECT, Service};
use belljar_types::{KeyId, ProjectId, SandboxId, Scope};

/// More than this many are not remembered, only looked up.
const MOST: usize = 100_000;

/// Sandboxes and their projects.
pub(crate) struct Known {
    service: Arc<Service>,
    projects: Mutex<HashMap<SandboxId, ProjectId>>,
}

impl Known {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self { service, projects: Mutex::default() }
    }

    pub(crate) fn note(&self, id: &SandboxId, project: &ProjectId) {
        let mut projects = self.lock();
        if projects.len() < MOST {
            projects.insert(id.clone(), project.clone());
        }
    }

    pub(crate) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    /// All that are remembered.
    pub(crate) fn all(&self) -> Vec<(SandboxId, ProjectId)> {
        self.lock().iter().map(|(id, project)| (id.clone(), project.clone())).collect()
    }

    /// Whose a live sandbox is.
    pub(crate) async fn project_of(&self, id: &SandboxId) -> Result<Option<ProjectId>, CoreError> {
        let remembered = self.lock().get(id).cloned();
        if remembered.is_some() {
            return Ok(remembered);
        }
        let everyone = acting_for(DEFAULT_PROJECT.parse()?, Scope::Admin);
        for project in self.service.projects(&everyone).await? {
            let sandbox = self.service.sandbox(&acting_for(project.id.clone(), Scope::Read), id).await;
            if sandbox.is_ok_and(|sandbox| !sandbox.state.has_ended()) {
                self.note(id, &project.id);
                return Ok(Some(project.id));
            }
        }
        Ok(None)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, ProjectId>> {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that has shown no key but something else that is worth as much for one sandbox.
pub(crate) fn acting_for(project: ProjectId, scope: Scope) -> Caller {
    // No key was shown; the audit log is to say so.
    let key: KeyId = "sandboxaccesstoken".parse().expect("a valid id");
    Caller { key, project, scopes: BTreeSet::from([scope]) }
}
