//! Commands, code and sessions of the toolbox.

use std::collections::BTreeMap;

/// `POST /process/execute`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Execute {
    pub(crate) command: String,
    pub(crate) cwd: Option<String>,
    #[serde(alias = "env")]
    pub(crate) envs: Option<BTreeMap<String, String>>,
    /// Seconds; none, and 0, are for ever.
    pub(crate) timeout: Option<u64>,
}

/// `POST /process/code-run`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct CodeRun {
    pub(crate) code: String,
    pub(crate) language: Option<String>,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) envs: Option<BTreeMap<String, String>>,
    pub(crate) timeout: Option<u64>,
}

/// What a command or code came to.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Executed {
    pub(crate) exit_code: i32,
    pub(crate) result: String,
}

/// `POST /process/session`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub(crate) session_id: String,
}

/// A session and what was run in it.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionDto {
    pub(crate) session_id: String,
    pub(crate) commands: Vec<CommandDto>,
}

/// A command of a session.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandDto {
    pub(crate) id: String,
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
}

/// `POST /process/session/{id}/exec`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SessionExecute {
    pub(crate) command: String,
    pub(crate) run_async: Option<bool>,
    /// What older clients call it.
    pub(crate) r#async: Option<bool>,
    pub(crate) suppress_input_echo: Option<bool>,
}

/// What came of it; only its id if it is not waited for.
#[derive(Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionExecuted {
    pub(crate) cmd_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
}

/// What a command said.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Logs {
    pub(crate) output: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `POST …/input`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Input {
    pub(crate) data: String,
}
