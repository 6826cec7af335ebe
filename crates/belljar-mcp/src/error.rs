//! Why a tool did not do what it was asked. Told to the model, which can often do better the next time, and never in secret to the person alone.

use std::error::Error;

use belljar_client::ClientError;
use belljar_types::{Invalid, SandboxId, escape_untrusted};

/// Why the tools could not be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The other side did not begin as the protocol wants it.
    #[error("greet the agent")]
    Greeting(#[source] Box<rmcp::service::ServerInitializeError>),
    /// What answers the agent broke.
    #[error("answer the agent")]
    Answering(#[source] tokio::task::JoinError),
}

/// Why a tool did not do it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    /// The arguments are not those of the tool.
    #[error("the arguments are not as {tool} takes them")]
    Arguments {
        tool: String,
        #[source]
        source: serde_json::Error,
    },
    /// An argument makes no sense.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The server, or the way to it.
    #[error("{attempt}")]
    Asked {
        attempt: String,
        #[source]
        source: ClientError,
    },
    /// The sandbox can run code in files alone.
    #[error("{why}; here, write the code to a file and run that with run_command, which keeps no state")]
    NoInterpreter { why: String },
    /// The sandbox ended behind the agent's back.
    #[error("the sandbox {sandbox} is gone ({why}), and everything in it")]
    Gone { sandbox: SandboxId, why: String },
    /// No sandbox of this connection.
    #[error("{sandbox} is no sandbox of this connection; leave `sandbox` out, or give an id that fork_sandbox gave")]
    Strange { sandbox: String },
    /// Not one of its checkpoints.
    #[error("there is no checkpoint {name}; there are: {known}")]
    NoCheckpoint { name: String, known: String },
    /// It was given, not made.
    #[error("this connection works in a sandbox that it was given, and does not end it")]
    NotOurs,
    /// The text to replace is not there, or not once.
    #[error("{path} has the text {found} times; {advice}")]
    Replacing { path: String, found: usize, advice: &'static str },
    /// The file is not what the tool works with.
    #[error("{path} {what}")]
    Content { path: String, what: &'static str },
}

impl ToolError {
    /// Says what was attempted when the server, or the way to it, failed.
    pub(crate) fn asked(attempt: impl Into<String>) -> impl FnOnce(ClientError) -> Self {
        let attempt = attempt.into();
        move |source| Self::Asked { attempt, source }
    }

    /// The error with its causes, and when to try again, on one line.
    pub(crate) fn told(&self) -> String {
        let mut parts = vec![self.to_string()];
        let mut source = self.source();
        while let Some(cause) = source {
            // The server's refusal is told in the server's words alone.
            if !matches!(cause.downcast_ref(), Some(ClientError::Refused(_))) {
                parts.push(cause.to_string());
            }
            source = cause.source();
        }
        let words = escape_untrusted(parts.join(": ").as_bytes());
        match self.retry_after() {
            Some(seconds) => format!("{words}; try again in {seconds} s"),
            None => words,
        }
    }

    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Asked { source, .. } => source.problem()?.retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use belljar_client::ProblemBody;

    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words_and_with_when_to_try_again() {
        let problem = ProblemBody {
            status: 503,
            code: "busy".to_owned(),
            detail: "the host is full\u{1b}[2J".to_owned(),
            field: None,
            retry_after: Some(3),
            request_id: None,
        };
        let error = ToolError::asked("make a sandbox")(ClientError::Refused(Box::new(problem)));
        assert_eq!(error.told(), "make a sandbox: the host is full\\u{1b}[2J; try again in 3 s");
    }
}
