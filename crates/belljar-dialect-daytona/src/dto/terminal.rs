//! Terminals of the toolbox.

use std::collections::BTreeMap;

/// `POST /process/pty`, and the query of `/process/pty/create-connect`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct NewTerminal {
    pub(crate) id: String,
    pub(crate) cwd: Option<String>,
    pub(crate) envs: Option<BTreeMap<String, String>>,
    pub(crate) cols: Option<u16>,
    pub(crate) rows: Option<u16>,
}

/// `POST /process/pty/{id}/resize`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Size {
    pub(crate) cols: u16,
    pub(crate) rows: u16,
}

/// A terminal as clients know it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TerminalDto {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) envs: BTreeMap<String, String>,
    pub(crate) cols: u16,
    pub(crate) rows: u16,
    pub(crate) created_at: String,
    pub(crate) active: bool,
    pub(crate) lazy_start: bool,
}
