//! Why a request did not come to a good end: the server said no, or there was no server to say anything.

use std::fmt;

/// What the server says when it says no (RFC 9457, with Belljar's own fields).
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct ProblemBody {
    /// The HTTP status.
    pub status: u16,
    /// Stable; programs decide by it.
    pub code: String,
    /// What happened and what to do, for people.
    pub detail: String,
    /// The field of the request that was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Seconds after which to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Which request this was; the server's log has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl fmt::Display for ProblemBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for ProblemBody {}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server's address makes no sense.
    #[error("the server address {url} is not a URL such as http://127.0.0.1:7070")]
    Address {
        /// As it was given.
        url: String,
    },
    /// A request for a program's port would have reached something else.
    #[error("the path {target} leads out of the port; send it without ..")]
    LeadsOut {
        /// As it was given, safe to print.
        target: String,
    },
    /// The key cannot be sent.
    #[error("the API key is not text that can be sent")]
    Key,
    /// The client could not be set up.
    #[error("set up the HTTP client")]
    SetUp(#[source] reqwest::Error),
    /// A certificate of the operator's could not be used.
    #[error("the certificate is not PEM text that can be used")]
    Certificate(#[source] reqwest::Error),
    /// No server, or it went away.
    #[error("no answer from the server at {url}")]
    Unreachable {
        /// Where it was looked for.
        url: String,
        /// What the socket said.
        #[source]
        source: reqwest::Error,
    },
    /// The server went away in the middle of an answer.
    #[error("the server at {url} went away in the middle of its answer")]
    CutShort {
        /// Which server.
        url: String,
    },
    /// The server said no.
    #[error("the server refused")]
    Refused(#[source] Box<ProblemBody>),
    /// Something answers there, but it is not Belljar, or of another version.
    #[error("{url} gave an answer that makes no sense: {detail}")]
    Answer {
        /// Which server.
        url: String,
        /// What was wrong with it, safe to print.
        detail: String,
    },
}

impl ClientError {
    /// The server's own words, if it was the server that said no.
    pub fn problem(&self) -> Option<&ProblemBody> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// The stable code of the server's refusal.
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| problem.code.as_str())
    }

    /// Whether the request certainly had no effect and may be sent again whatever it asks for: nobody was there to take it, or it came too fast.
    pub fn had_no_effect(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => source.is_connect(),
            Self::Refused(problem) => problem.code == "rate_limited",
            _ => false,
        }
    }

    /// Whether the server was away or about to stop, so that the same request may well be answered in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::CutShort { .. } => true,
            Self::Refused(problem) => matches!(problem.code.as_str(), "stopping" | "guest_lost" | "rate_limited" | "starting"),
            _ => false,
        }
    }
}
