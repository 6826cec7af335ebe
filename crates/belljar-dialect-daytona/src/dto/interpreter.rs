//! The code interpreter of the toolbox.

use std::collections::BTreeMap;

/// `POST /process/interpreter/context`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NewContext {
    pub(crate) cwd: Option<String>,
    pub(crate) language: Option<String>,
}

/// A context as clients know it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextDto {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) created_at: String,
    pub(crate) active: bool,
    pub(crate) language: String,
}

/// The first message of `/process/interpreter/execute`.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunCode {
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) context_id: Option<String>,
    /// Seconds; 0 is for ever.
    #[serde(default)]
    pub(crate) timeout: Option<u64>,
    #[serde(default)]
    pub(crate) envs: Option<BTreeMap<String, String>>,
}
