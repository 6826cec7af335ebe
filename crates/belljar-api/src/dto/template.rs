//! Templates on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A template.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Template)]
pub(crate) struct TemplateView {
    /// Its name.
    #[schema(example = "base")]
    pub(crate) name: String,
    /// Its project; `null` if it is the server's and all may use it.
    #[schema(required = true)]
    pub(crate) owner: Option<String>,
    /// Where it came from.
    #[schema(example = "recipe base")]
    pub(crate) origin: String,
    /// SHA-256 of its layers, lowest first.
    pub(crate) layers: Vec<String>,
    /// Bytes of its layers; not known right after it was made.
    #[schema(required = true)]
    pub(crate) bytes: Option<u64>,
    /// Environment of processes.
    pub(crate) env: BTreeMap<String, String>,
    /// Who runs processes.
    #[schema(required = true)]
    pub(crate) user: Option<String>,
    /// Where they start.
    #[schema(required = true)]
    pub(crate) workdir: Option<String>,
    /// What is started in every sandbox before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<StartView>,
    /// When it was made.
    #[schema(example = "2026-11-15T06:00:00.000Z")]
    pub(crate) created_at: String,
}

/// What a template starts in every sandbox.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Start)]
pub(crate) struct StartView {
    /// A shell's command that goes on in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "python3 -m http.server 8000")]
    pub(crate) command: Option<String>,
    /// The sandbox runs when a program listens on this port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 8000)]
    pub(crate) ready_port: Option<u16>,
    /// The sandbox runs when this command succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready_command: Option<String>,
    /// How many seconds that may take.
    pub(crate) within_seconds: u64,
    /// Whether sandboxes begin with the memory of the first that was ready, where their class can.
    pub(crate) warm: bool,
}

/// The templates a project sees.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateList {
    /// By name.
    pub(crate) templates: Vec<TemplateView>,
}

/// A template to make: a recipe, or an image.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"recipe": "from = \"base\"\n"}))]
pub(crate) struct MakeTemplateRequest {
    /// A recipe, as TOML.
    pub(crate) recipe: Option<String>,
    /// An image in a registry.
    pub(crate) image: Option<String>,
}

/// Whose template.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TemplateQuery {
    /// The server's, for all projects; needs the scope `admin`.
    #[serde(default)]
    #[param(example = false)]
    pub(crate) shared: bool,
}

/// One line of a build, as NDJSON.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(example = json!({"type": "progress", "text": "unpacking"}))]
#[schema(as = BuildLine)]
pub(crate) enum BuildLineView {
    /// What is being done.
    Progress {
        /// In words.
        text: String,
    },
    /// Nothing was said for 15 seconds; it goes on.
    Heartbeat,
    /// It was made. The last line.
    Done {
        /// The template.
        template: Box<TemplateView>,
    },
    /// It was not made; what was there before is still there. The last line.
    Failed {
        /// Why.
        #[schema(value_type = crate::errors::ProblemSchema)]
        problem: serde_json::Value,
    },
}

/// A clean-up.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GcRequest {
    /// Only say what would be removed.
    #[serde(default)]
    #[schema(example = true)]
    pub(crate) dry_run: bool,
    /// Remove orphans too: volumes and snapshots on the host that the store does not know, because another store was put in place.
    #[serde(default)]
    #[schema(example = false)]
    pub(crate) orphans: bool,
}

/// What was, or would be, removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GcResult {
    /// Layers that nothing refers to.
    pub(crate) layers: Vec<String>,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Volumes on the host that the store does not know. They are left, unless `orphans` was asked for.
    pub(crate) orphaned_volumes: Vec<String>,
    /// The same of snapshots.
    pub(crate) orphaned_snapshots: Vec<String>,
    /// Whether nothing was removed.
    pub(crate) dry_run: bool,
}
