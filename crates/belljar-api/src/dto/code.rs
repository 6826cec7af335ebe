//! Code in contexts on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Code to run. Give `language` or `context`; Python when neither is given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"code": "1 + 1"}))]
pub(crate) struct CodeRequest {
    /// The code.
    pub(crate) code: String,
    /// Run it in the language's own context, which every sandbox has.
    #[schema(example = "python")]
    pub(crate) language: Option<String>,
    /// Run it in this context.
    pub(crate) context: Option<String>,
    /// Variables for this run only.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Interrupt it after this many seconds.
    #[schema(example = 60.0)]
    pub(crate) timeout_seconds: Option<f64>,
}

/// Something that code gave to show, by MIME type: text and pictures as strings (pictures in base64), data as JSON.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CodeResult)]
pub(crate) struct CodeResultView {
    /// Whether it is the value of the last expression, and not merely shown on the way.
    pub(crate) main: bool,
    /// The formats.
    #[schema(example = json!({"text/plain": "2"}))]
    pub(crate) formats: BTreeMap<String, serde_json::Value>,
}

/// How code failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CodeError)]
pub(crate) struct CodeErrorView {
    /// The kind of error, as the language calls it; `DeadlineExceeded` if it was interrupted for its time.
    #[schema(example = "NameError")]
    pub(crate) name: String,
    /// The message.
    pub(crate) value: String,
    /// Where, in the language's own form.
    pub(crate) traceback: Vec<String>,
}

/// What running code gave.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct CodeOutcome {
    /// It was the context's n-th.
    #[schema(required = true)]
    pub(crate) count: Option<u64>,
    /// What it wrote to standard output.
    pub(crate) stdout: String,
    /// What it wrote to standard error.
    pub(crate) stderr: String,
    /// What it gave to show, in order.
    pub(crate) results: Vec<CodeResultView>,
    /// How it failed.
    #[schema(required = true)]
    pub(crate) error: Option<CodeErrorView>,
    /// The kernel died, and with it what the context remembered; in words.
    #[schema(required = true)]
    pub(crate) lost: Option<String>,
    /// Something was left out, because all together was too much for one answer. Ask for a stream.
    pub(crate) truncated: bool,
}

/// What code gives as it comes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(as = CodeLine)]
pub(crate) enum CodeLineView {
    /// The code was taken.
    Began {
        /// It is the context's n-th.
        count: u64,
    },
    /// It wrote to standard output.
    Stdout {
        /// What.
        text: String,
        /// When, by the sandbox's clock.
        at: String,
    },
    /// It wrote to standard error.
    Stderr {
        /// What.
        text: String,
        /// When, by the sandbox's clock.
        at: String,
    },
    /// It gave something to show.
    Result(CodeResultView),
    /// It failed.
    Error(CodeErrorView),
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
        #[schema(value_type = crate::errors::ProblemSchema)]
        problem: serde_json::Value,
    },
}

/// A context to make.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"language": "python"}))]
pub(crate) struct NewContextRequest {
    /// Its language; Python when left out.
    #[schema(example = "python")]
    pub(crate) language: Option<String>,
    /// The directory it begins in; the home directory when left out.
    #[schema(example = "/home/user")]
    pub(crate) cwd: Option<String>,
}

/// A context.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CodeContext)]
pub(crate) struct ContextView {
    /// Its name.
    pub(crate) id: String,
    /// Its language.
    #[schema(example = "python")]
    pub(crate) language: String,
    /// The directory it began in.
    #[schema(example = "/home/user")]
    pub(crate) cwd: String,
}

/// The contexts of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextList {
    /// Oldest first.
    pub(crate) contexts: Vec<ContextView>,
}
