//! Projects and keys; for keys that may administer.

use std::collections::BTreeSet;

use belljar_types::Scope;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;

/// What to set of a quota; what is unset is the default, or stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct NewQuota {
    /// Sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<u32>,
    /// Sum of their CPU limits, in thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Sum of their memory limits, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Sum of their disk limits, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// How much a project may have at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaOf {
    /// Sandboxes.
    pub sandboxes: u32,
    /// Sum of their CPU limits, in thousandths of a core.
    pub cpu_millis: u64,
    /// Sum of their memory limits, in bytes.
    pub memory_bytes: u64,
    /// Sum of their disk limits, in bytes.
    pub disk_bytes: u64,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its name.
    pub id: String,
    /// How much it may have.
    pub quota: QuotaOf,
    /// When it was made, RFC 3339.
    pub created_at: String,
}

/// A key to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewKey {
    /// For whom it acts.
    pub project: String,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// What people call it.
    pub label: String,
    /// How long it is good for; for ever when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its public name.
    pub id: String,
    /// For whom it acts.
    pub project: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// What people call it.
    pub label: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// From when on it is refused.
    pub expires_at: Option<String>,
}

/// A key that was just made. Its secret is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeKey {
    /// What is kept of it.
    pub key: Key,
    /// The secret.
    pub secret: String,
}

impl std::fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKey").field("key", &self.key).field("secret", &"***").finish()
    }
}

#[derive(Deserialize)]
struct ProjectList {
    projects: Vec<Project>,
}

#[derive(Deserialize)]
struct KeyList {
    keys: Vec<Key>,
}

#[derive(Serialize)]
struct ProjectRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    quota: NewQuota,
}

impl Client {
    /// Makes a project.
    pub async fn add_project(&self, id: &str, quota: NewQuota) -> Result<Project, ClientError> {
        self.ask(Method::POST, ["v1", "projects"]).json(&ProjectRequest { id: Some(id), quota }).fetch().await
    }

    /// All projects.
    pub async fn projects(&self) -> Result<Vec<Project>, ClientError> {
        let list: ProjectList = self.ask(Method::GET, ["v1", "projects"]).fetch().await?;
        Ok(list.projects)
    }

    /// One project.
    pub async fn project(&self, id: &str) -> Result<Project, ClientError> {
        self.ask(Method::GET, ["v1", "projects", id]).fetch().await
    }

    /// Changes a project's quota.
    pub async fn set_quota(&self, id: &str, quota: NewQuota) -> Result<Project, ClientError> {
        self.ask(Method::PATCH, ["v1", "projects", id]).json(&ProjectRequest { id: None, quota }).fetch().await
    }

    /// Removes a project that has no live sandboxes.
    pub async fn remove_project(&self, id: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "projects", id]).done().await
    }

    /// Makes a key.
    pub async fn add_key(&self, request: &NewKey) -> Result<MadeKey, ClientError> {
        self.ask(Method::POST, ["v1", "keys"]).json(request).fetch().await
    }

    /// All keys, or those of one project.
    pub async fn keys(&self, project: Option<&str>) -> Result<Vec<Key>, ClientError> {
        let query: Vec<(&str, &str)> = project.map(|project| ("project", project)).into_iter().collect();
        let list: KeyList = self.ask(Method::GET, ["v1", "keys"]).query(&query).fetch().await?;
        Ok(list.keys)
    }

    /// Removes a key; it is refused from now on.
    pub async fn remove_key(&self, id: &str) -> Result<(), ClientError> {
        self.ask(Method::DELETE, ["v1", "keys", id]).done().await
    }
}
