//! Code that keeps its state between runs.

use std::collections::BTreeMap;

use belljar_types::SandboxId;
use futures_util::{Stream, StreamExt};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::{ClientError, ProblemBody};

/// Code to run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunCode {
    /// The code.
    pub code: String,
    /// Run it in this language's own context; Python's when neither this nor `context` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Run it in this context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Variables for this run only.
    pub env: BTreeMap<String, String>,
    /// Interrupt it after this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
}

/// What code gives as it comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum CodeLine {
    /// The code was taken.
    Began {
        /// It is the context's n-th.
        count: u64,
    },
    /// It wrote to standard output.
    Stdout {
        /// What.
        text: String,
    },
    /// It wrote to standard error.
    Stderr {
        /// What.
        text: String,
    },
    /// It gave something to show.
    Result {
        /// Whether it is the value of the last expression.
        main: bool,
        /// By MIME type.
        formats: BTreeMap<String, serde_json::Value>,
    },
    /// It failed.
    Error {
        /// The kind of error.
        name: String,
        /// The message.
        value: String,
        /// Where.
        traceback: Vec<String>,
    },
    /// The kernel died, and with it what the context remembered.
    Lost {
        /// In words.
        message: String,
    },
    /// All has been said.
    End,
    /// It goes on.
    Heartbeat,
    /// It cannot be followed any more.
    Failed {
        /// Why.
        problem: Box<ProblemBody>,
    },
}

impl Client {
    /// Runs code and gives what it gives, as it comes. It is interrupted when the stream is dropped.
    pub async fn run_code(
        &self,
        sandbox: &SandboxId,
        code: &RunCode,
    ) -> Result<impl Stream<Item = Result<CodeLine, ClientError>> + Send + use<>, ClientError> {
        let asking = self.ask(Method::POST, ["v1", "sandboxes", sandbox.as_str(), "code"]).json(code);
        let lines = asking.accept("application/x-ndjson").send().await?.lines::<CodeLine>();
        Ok(lines.map(|line| line.map(|line| line.unwrap_or(CodeLine::Heartbeat))))
    }
}
