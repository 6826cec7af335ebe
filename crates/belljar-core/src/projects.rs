//! Projects and keys: verbs for administrators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use belljar_ports::StoreError;
use belljar_types::{ApiKey, AuditAction, Invalid, KeyId, Phase, Project, ProjectId, Quota, Scope, Secret, Timestamp, audit_text};

use crate::caller::{fresh_secret, hash};
use crate::recording::event;
use crate::shared::Shared;
use crate::{Caller, CoreError, NewKey, Service};

/// The project that is there from the first start.
pub const DEFAULT_PROJECT: &str = "default";

/// A key to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKeyRequest {
    /// For whom it acts.
    pub project: ProjectId,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// What people call it.
    pub label: String,
    /// How long it is good for; for ever when unset.
    pub lifetime: Option<Duration>,
}

impl Service {
    /// At the first start: makes the default project, and an administrator's key of this secret. Says whether it was made; `false` if there is
    /// a key already. The caller keeps the secret before it calls, so that no end of the server loses it.
    pub async fn bootstrap(&self, secret: &Secret<String>) -> Result<bool, CoreError> {
        let project: ProjectId = DEFAULT_PROJECT.parse()?;
        if self.shared.store.project(&project).await?.is_none() {
            let made = Project { id: project.clone(), quota: Quota::default(), created_at: Timestamp::now() };
            match self.shared.store.add_project(&made).await {
                Ok(()) | Err(StoreError::Exists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.has_keys().await? {
            return Ok(false);
        }
        let request = NewKeyRequest { project, scopes: Scope::ALL.into_iter().collect(), label: "first key".to_owned(), lifetime: None };
        self.shared.enter_key(request, secret).await?;
        Ok(true)
    }

    /// Whether there is any key. A server without one makes its first.
    pub async fn has_keys(&self) -> Result<bool, CoreError> {
        Ok(!self.shared.store.keys(None).await?.is_empty())
    }

    /// Makes a project.
    pub async fn add_project(&self, caller: &Caller, id: ProjectId, quota: Option<Quota>) -> Result<Project, CoreError> {
        caller.require(Scope::Admin)?;
        let project = Project { id, quota: quota.unwrap_or_default(), created_at: Timestamp::now() };
        let action = access("add_project", project.id.as_str());
        let (shared, added) = (Arc::clone(&self.shared), project.clone());
        self.recorded(caller, None, action, async move { Ok(shared.store.add_project(&added).await?) }).await?;
        Ok(project)
    }

    /// All projects for an administrator; its own for anybody else.
    pub async fn projects(&self, caller: &Caller) -> Result<Vec<Project>, CoreError> {
        caller.require(Scope::Read)?;
        let mut projects = self.shared.store.projects().await?;
        projects.retain(|project| caller.may(Scope::Admin) || project.id == caller.project);
        Ok(projects)
    }

    /// One project.
    pub async fn project(&self, caller: &Caller, id: &ProjectId) -> Result<Project, CoreError> {
        caller.require(Scope::Read)?;
        let visible = caller.may(Scope::Admin) || caller.project == *id;
        let project = if visible { self.shared.store.project(id).await? } else { None };
        project.ok_or_else(|| CoreError::NoProject { id: id.clone() })
    }

    /// Changes how much a project may have.
    pub async fn set_quota(&self, caller: &Caller, id: &ProjectId, quota: Quota) -> Result<Project, CoreError> {
        caller.require(Scope::Admin)?;
        let project = self.project(caller, id).await?;
        let action = access("set_quota", id.as_str());
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        self.recorded(caller, None, action, async move { Ok(shared.store.set_quota(&id, &quota).await?) }).await?;
        Ok(Project { quota, ..project })
    }

    /// Removes a project with its keys. One that still has sandboxes stays.
    pub async fn remove_project(&self, caller: &Caller, id: &ProjectId) -> Result<(), CoreError> {
        caller.require(Scope::Admin)?;
        if id.as_str() == DEFAULT_PROJECT {
            return Err(Invalid::new("project", "a project other than the default one, which always stays", id.as_str()).into());
        }
        self.project(caller, id).await?;
        let action = access("remove_project", id.as_str());
        let (shared, keys, project) = (Arc::clone(&self.shared), Arc::clone(&self.keys), id.clone());
        let removing = async move {
            shared.cool_all(&project).await;
            shared.store.remove_project(&project).await?;
            keys.forget_all();
            // A project of the same name that comes after it has none of them.
            if shared.secrets.is_some() {
                shared.in_the_vault(move |secrets| secrets.forget(&project)).await?;
            }
            Ok(())
        };
        self.recorded(caller, None, action, removing).await
    }

    /// Makes a key. Its secret is in the answer and nowhere else.
    pub async fn add_key(&self, caller: &Caller, request: NewKeyRequest) -> Result<NewKey, CoreError> {
        caller.require(Scope::Admin)?;
        self.project(caller, &request.project).await?;
        let subject = format!("{} ({})", request.project, request.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(", "));
        let shared = Arc::clone(&self.shared);
        let made = self.recorded(caller, None, access("add_key", &subject), async move { shared.make_key(request).await }).await?;
        self.shared.audit.note(event(caller, None, access("key", made.key.id.as_str())(Phase::Done))).await;
        Ok(made)
    }

    /// All keys, or those of one project.
    pub async fn keys(&self, caller: &Caller, project: Option<&ProjectId>) -> Result<Vec<ApiKey>, CoreError> {
        caller.require(Scope::Admin)?;
        if let Some(project) = project {
            self.project(caller, project).await?;
        }
        Ok(self.shared.store.keys(project).await?)
    }

    /// Removes a key: from now on it is refused. No key removes itself, so that there is always one left that may make others.
    pub async fn remove_key(&self, caller: &Caller, id: &KeyId) -> Result<(), CoreError> {
        caller.require(Scope::Admin)?;
        if *id == caller.key {
            return Err(
                Invalid::new("key", "another key than the one that asks, or nobody might be left to make a new one", id.as_str()).into()
            );
        }
        let action = access("remove_key", id.as_str());
        let (shared, keys, key) = (Arc::clone(&self.shared), Arc::clone(&self.keys), id.clone());
        let removing = async move {
            let removed = shared.store.remove_key(&key).await?;
            keys.forget_all();
            Ok(removed)
        };
        let removed = self.recorded(caller, None, action, removing).await?;
        if removed { Ok(()) } else { Err(CoreError::NoKey { id: id.clone() }) }
    }
}

impl Shared {
    async fn make_key(&self, request: NewKeyRequest) -> Result<NewKey, CoreError> {
        let secret = fresh_secret();
        let key = self.enter_key(request, &secret).await?;
        Ok(NewKey { key, secret })
    }

    async fn enter_key(&self, request: NewKeyRequest, secret: &Secret<String>) -> Result<ApiKey, CoreError> {
        if request.scopes.is_empty() {
            return Err(Invalid::new("scopes", "at least one of read, use, templates and admin", "").into());
        }
        if request.label.len() > 128 || request.label.chars().any(char::is_control) {
            return Err(Invalid::new("label", "at most 128 bytes without control characters", &request.label).into());
        }
        // The text is a secret even when it is malformed: it is not shown.
        let hash = hash(secret.reveal()).ok_or_else(|| Invalid::new("key", "bj_ and 40 hexadecimal digits", "***"))?;
        let now = Timestamp::now();
        let key = ApiKey {
            id: KeyId::random(),
            project: request.project,
            scopes: request.scopes,
            label: request.label,
            created_at: now,
            expires_at: request.lifetime.map(|lifetime| now.plus(lifetime)),
        };
        self.store.add_key(&key, &hash).await?;
        Ok(key)
    }
}

/// A change of who may do what.
fn access(verb: &'static str, subject: &str) -> impl Fn(Phase) -> AuditAction + use<> {
    let subject = audit_text(subject.as_bytes());
    move |phase| AuditAction::Access { verb: verb.to_owned(), phase, subject: subject.clone(), detail: BTreeMap::new() }
}
