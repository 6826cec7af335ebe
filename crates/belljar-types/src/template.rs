//! What a sandbox is made from: content-addressed layers and defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{Invalid, StartUp, TemplateName, UserName};

/// The SHA-256 of a layer's canonical content, as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LayerDigest(String);

impl LayerDigest {
    /// The digits, fit for a directory name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LayerDigest {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            Ok(Self(hex.to_owned()))
        } else {
            Err(Invalid::new("layer digest", "64 lower-case hexadecimal digits", text))
        }
    }
}

impl TryFrom<String> for LayerDigest {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<LayerDigest> for String {
    fn from(digest: LayerDigest) -> String {
        digest.0
    }
}

impl fmt::Display for LayerDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LayerDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What processes get when the caller says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct TemplateDefaults {
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Who runs processes; `user` when unset.
    pub user: Option<UserName>,
    /// Where they start; the user's home when unset.
    pub workdir: Option<String>,
    /// What is started in every sandbox before anybody may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartUp>,
}

/// A named root filesystem with its defaults.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Template {
    /// Its name on this host.
    pub name: TemplateName,
    /// Its layers, lowest first.
    pub layers: Vec<LayerDigest>,
    /// Defaults for processes.
    pub defaults: TemplateDefaults,
    /// Where it came from, for people: `recipe base`, `oci example:1 sha256:…`.
    pub origin: String,
    /// Seconds since 1970 when it was made.
    pub created_at: u64,
}
