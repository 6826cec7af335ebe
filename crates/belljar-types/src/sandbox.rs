//! What an engine is asked to make, and what it says it made.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use crate::{ExecutionId, IsolationClass, LayerDigest, Limits, SandboxId, TemplateDefaults, VolumeMount};

/// What may cross the sandbox's network boundary. Policy rules come on top; this is what the slot itself allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing in or out but the agent's own connection from the host.
    #[default]
    None,
    /// Outgoing connections to public addresses through the host; nothing private, nothing of the host, no neighbour.
    Open,
    /// Outgoing connections as its policy allows, each through the host's proxy; nothing is forwarded.
    Filtered,
}

/// Who may become root inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivilegePolicy {
    /// `sudo` needs no password and processes may be started as root.
    #[default]
    RootAllowed,
    /// `sudo` is refused and so is every start as root.
    UserOnly,
}

/// Everything an engine needs to make a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SandboxSpec {
    /// The sandbox's name for life.
    pub id: SandboxId,
    /// The name of this run of it.
    pub execution: ExecutionId,
    /// Layers of its root, lowest first; at least one.
    pub layers: Vec<LayerDigest>,
    /// Defaults for processes, from the template.
    pub defaults: TemplateDefaults,
    /// What it may use.
    pub limits: Limits,
    /// What its slot lets through.
    pub network: Network,
    /// Who may become root.
    pub privilege: PrivilegePolicy,
    /// Environment for every process, over the template's.
    pub env: BTreeMap<String, String>,
    /// Host name inside; the id when unset.
    pub hostname: Option<String>,
    /// The policy that holds for it, as JSON, after everything above it has narrowed it; none when nobody rules anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Storage that outlives it, each at a directory of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumeMount>,
}

impl SandboxSpec {
    /// A sandbox on these layers with defaults for the rest and fresh ids.
    pub fn on(layers: Vec<LayerDigest>) -> Self {
        Self {
            id: SandboxId::random(),
            execution: ExecutionId::random(),
            layers,
            defaults: TemplateDefaults::default(),
            limits: Limits::default(),
            network: Network::default(),
            privilege: PrivilegePolicy::default(),
            env: BTreeMap::new(),
            hostname: None,
            policy: None,
            volumes: Vec::new(),
        }
    }
}

/// A sandbox that runs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Execution {
    /// Whose run this is.
    pub sandbox: SandboxId,
    /// Which run.
    pub id: ExecutionId,
    /// What isolates it.
    pub class: IsolationClass,
    /// When it started.
    pub started_at: SystemTime,
}

/// Why a sandbox is no longer running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Somebody asked for it.
    Killed,
    /// The kernel killed the whole sandbox for using more memory than allowed.
    OutOfMemory,
    /// It ended by itself: the agent or the engine exited.
    Exited,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "it was killed on request",
            Self::OutOfMemory => "it needed more memory than it is allowed",
            Self::Exited => "its agent or its engine stopped, and nobody had asked for that",
        })
    }
}
