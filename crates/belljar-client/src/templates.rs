//! Templates: make, list, remove, and the clean-up of what nothing refers to.

use std::collections::BTreeMap;

use futures_util::{Stream, StreamExt};
use reqwest::{Body, Method};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::Client;
use crate::error::{ClientError, ProblemBody};

/// A template as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateView {
    /// Its name.
    pub name: String,
    /// Its project; the server's, for all, when unset.
    pub owner: Option<String>,
    /// Where it came from.
    pub origin: String,
    /// SHA-256 of its layers, lowest first.
    pub layers: Vec<String>,
    /// Bytes of its layers; not known right after it was made.
    pub bytes: Option<u64>,
    /// Environment of processes.
    pub env: BTreeMap<String, String>,
    /// Who runs processes.
    pub user: Option<String>,
    /// Where they start.
    pub workdir: Option<String>,
    /// When it was made, RFC 3339.
    pub created_at: String,
}

/// What the server says while it makes a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum BuildLine {
    /// What is being done.
    Progress {
        /// In words.
        text: String,
    },
    /// It goes on.
    Heartbeat,
    /// It was made.
    Done {
        /// The template.
        template: Box<TemplateView>,
    },
    /// It was not made.
    Failed {
        /// Why.
        problem: Box<ProblemBody>,
    },
}

/// What a clean-up removed or would remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    /// Layers that nothing refers to.
    pub layers: Vec<String>,
    /// Their bytes.
    pub bytes: u64,
    /// Volumes on the host that the server's store does not know. They are left, unless orphans were asked for.
    #[serde(default)]
    pub orphaned_volumes: Vec<String>,
    /// The same of snapshots.
    #[serde(default)]
    pub orphaned_snapshots: Vec<String>,
    /// Whether nothing was removed.
    pub dry_run: bool,
}

#[derive(Deserialize)]
struct TemplateList {
    templates: Vec<TemplateView>,
}

impl Client {
    /// All templates that the project sees.
    pub async fn templates(&self) -> Result<Vec<TemplateView>, ClientError> {
        let list: TemplateList = self.ask(Method::GET, ["v1", "templates"]).fetch().await?;
        Ok(list.templates)
    }

    /// Makes a template from a recipe.
    pub async fn build_template(
        &self,
        name: &str,
        recipe: &str,
        shared: bool,
    ) -> Result<impl Stream<Item = Result<BuildLine, ClientError>> + Send, ClientError> {
        self.make_template(name, shared, MakeFrom::Json(json!({ "recipe": recipe }))).await
    }

    /// Makes a template from an image in a registry.
    pub async fn pull_template(
        &self,
        name: &str,
        image: &str,
        shared: bool,
    ) -> Result<impl Stream<Item = Result<BuildLine, ClientError>> + Send, ClientError> {
        self.make_template(name, shared, MakeFrom::Json(json!({ "image": image }))).await
    }

    /// Makes a template from an archive, which is sent as it is read.
    pub async fn import_template(
        &self,
        name: &str,
        archive: impl Into<Body>,
        shared: bool,
    ) -> Result<impl Stream<Item = Result<BuildLine, ClientError>> + Send, ClientError> {
        self.make_template(name, shared, MakeFrom::Archive(archive.into())).await
    }

    async fn make_template(
        &self,
        name: &str,
        shared: bool,
        from: MakeFrom,
    ) -> Result<impl Stream<Item = Result<BuildLine, ClientError>> + Send + use<>, ClientError> {
        let query: &[(&str, bool)] = if shared { &[("shared", true)] } else { &[] };
        let asking = match from {
            MakeFrom::Json(body) => self.ask(Method::POST, ["v1", "templates", name]).json(&body),
            MakeFrom::Archive(body) => self.ask(Method::PUT, ["v1", "templates", name, "archive"]).bytes(body),
        };
        let lines = asking.query(query).send().await?.lines::<BuildLine>();
        Ok(lines.map(|line| line.map(|line| line.unwrap_or(BuildLine::Heartbeat))))
    }

    /// Removes a template of the project, or the server's.
    pub async fn remove_template(&self, name: &str, shared: bool) -> Result<(), ClientError> {
        let query: &[(&str, bool)] = if shared { &[("shared", true)] } else { &[] };
        self.ask(Method::DELETE, ["v1", "templates", name]).query(query).done().await
    }

    /// Removes layers that nothing refers to, or only says which.
    pub async fn clean_up(&self, dry_run: bool) -> Result<Cleaned, ClientError> {
        self.ask(Method::POST, ["v1", "gc"]).json(&json!({ "dry_run": dry_run })).fetch().await
    }

    /// The same, and what the server's store does not know: volumes and snapshots of before another store was put in place.
    pub async fn clean_up_orphans(&self, dry_run: bool) -> Result<Cleaned, ClientError> {
        self.ask(Method::POST, ["v1", "gc"]).json(&json!({ "dry_run": dry_run, "orphans": true })).fetch().await
    }
}

enum MakeFrom {
    Json(serde_json::Value),
    Archive(Body),
}
