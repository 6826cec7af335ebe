//! Why code was not run.

use std::time::Duration;

use belljar_core::CoreError;
use belljar_types::Invalid;

/// What the program inside refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such context.
    NoContext,
    /// No kernel for the language is installed in the template.
    NoLanguage,
    /// The directory is not there.
    NoDirectory,
    /// There are as many contexts as there may be.
    TooMany,
    /// The request is wrong.
    Invalid,
    /// A kernel did not start.
    Failed,
}

impl Refusal {
    pub(crate) fn from_code(code: &str) -> Self {
        match code {
            "no_context" => Self::NoContext,
            "no_language" => Self::NoLanguage,
            "no_directory" => Self::NoDirectory,
            "too_many" => Self::TooMany,
            "invalid" => Self::Invalid,
            _ => Self::Failed,
        }
    }
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterpreterError {
    /// The request is wrong; nothing was changed.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The sandbox or its agent said no.
    #[error("reach the sandbox's kernels")]
    Sandbox(#[source] CoreError),
    /// The template has no kernels.
    #[error("template {template} has no code interpreter: use the template code-interpreter-v1, or one made from it")]
    NotInstalled {
        /// What the sandbox was made from.
        template: String,
    },
    /// The program that keeps the kernels did not start.
    #[error("the program that keeps the kernels did not start: {last_words}")]
    NotStarted {
        /// What it said, safe to print.
        last_words: String,
    },
    /// The program inside refused.
    #[error("{message}")]
    Refused {
        /// What kind of refusal.
        refusal: Refusal,
        /// In words, safe to print.
        message: String,
    },
    /// The program inside broke the protocol.
    #[error("the sandbox's kernels broke the protocol: {detail}")]
    Misbehaved {
        /// What it did, safe to print.
        detail: String,
    },
    /// It gave no answer in time.
    #[error("the sandbox's kernels gave no answer within {} s", after.as_secs())]
    Silent {
        /// How long was waited.
        after: Duration,
    },
}
