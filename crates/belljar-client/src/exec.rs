//! One command, one answer: whole, bounded, and fit to be read. For output as it comes there is [`crate::StartProcess`].

use std::collections::BTreeMap;

use belljar_types::{ProcessId, SandboxId};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;
use crate::processes::Exit;

/// A line for the shell, to be run to its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Exec {
    /// The line, run as `/bin/sh -c`.
    pub command: String,
    /// Environment over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Who runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Text for its standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Kill it after this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// Bytes of each stream that are given back; of more, the first and the last half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u32>,
}

/// Bytes that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// The first byte that is missing.
    pub from: u64,
    /// The first byte after those.
    pub to: u64,
}

/// A command that ended, and what it wrote, as text without terminal escapes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecResult {
    /// The process that ran it.
    pub process: ProcessId,
    /// How it ended.
    #[serde(flatten)]
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// What was left out of standard output.
    pub stdout_omitted: Option<Omitted>,
    /// What was left out of standard error.
    pub stderr_omitted: Option<Omitted>,
}

/// Asks for text that can be shown: UTF-8, no escapes, and masked as the policy says.
#[derive(Serialize)]
struct FitToBeRead<'a> {
    #[serde(flatten)]
    exec: &'a Exec,
    output: Escapes,
}

#[derive(Serialize)]
struct Escapes {
    escapes: &'static str,
}

impl Client {
    /// Runs a command to its end. It is killed when this is dropped.
    pub async fn exec(&self, sandbox: &SandboxId, exec: &Exec) -> Result<ExecResult, ClientError> {
        let body = FitToBeRead { exec, output: Escapes { escapes: "strip" } };
        self.ask(Method::POST, ["v1", "sandboxes", sandbox.as_str(), "exec"]).json(&body).fetch().await
    }
}
