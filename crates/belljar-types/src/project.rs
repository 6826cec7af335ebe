//! Who may: projects that cannot see each other, and the keys that act for them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::{Invalid, KeyId, ProjectId, Timestamp};

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// See sandboxes, templates and usage of its project.
    Read,
    /// Make, use and end sandboxes of its project.
    Use,
    /// Make and remove templates of its project.
    Templates,
    /// Everything, in every project: projects, keys, shared templates, clean-up, the server itself.
    Admin,
}

impl Scope {
    /// All of them, weakest first.
    pub const ALL: [Self; 4] = [Self::Read, Self::Use, Self::Templates, Self::Admin];

    /// The word used in requests, answers and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Use => "use",
            Self::Templates => "templates",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| Invalid::new("scope", "read, use, templates or admin", text))
    }
}

/// How much a project may have at one time. Sandboxes that have not ended count, whatever they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quota {
    /// Sandboxes.
    pub sandboxes: u32,
    /// Sum of their CPU limits, in thousandths of a core.
    pub cpu_millis: u64,
    /// Sum of their memory limits, in bytes.
    pub memory_bytes: u64,
    /// Sum of their disk limits, in bytes.
    pub disk_bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { sandboxes: 200, cpu_millis: 400_000, memory_bytes: 200 << 30, disk_bytes: 1 << 40 }
    }
}

/// A group of keys and sandboxes that sees nothing of the others.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Project {
    /// Its name.
    pub id: ProjectId,
    /// How much it may have.
    pub quota: Quota,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The SHA-256 of a key's secret: all that is kept of it. The secret is 160 random bits, so nothing slower is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(***)")
    }
}

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ApiKey {
    /// Its public name.
    pub id: KeyId,
    /// For whom it acts.
    pub project: ProjectId,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
    /// What people call it.
    pub label: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused; never when unset.
    pub expires_at: Option<Timestamp>,
}
