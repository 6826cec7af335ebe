//! Why a command did not do what it was asked, what to do about it, and the code it ends with.
//!
//! Shown as `belljar: what happened: why`, and a line that begins with `hint:` where there is something to do.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use belljar_client::ClientError;

use crate::screen::{self, Silent};

/// Belljar's own failure in a command that otherwise ends with the code of what it ran.
pub(crate) const OWN_FAILURE: u8 = 125;
const WRONG_USAGE: u8 = 2;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The server, or the way to it.
    #[error("{attempt}")]
    Asked {
        attempt: String,
        #[source]
        source: ClientError,
    },
    /// No key was given.
    #[error("no API key: BELLJAR_API_KEY is not set and there is no --key-file")]
    NoKey,
    /// A file of this machine.
    #[error("{operation} {path}")]
    File {
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Something of this machine that has no path.
    #[error("{operation}")]
    Here {
        operation: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// The request makes no sense, in a way that only looking could tell.
    #[error("{0}")]
    Refused(String),
    /// The same, with what to do.
    #[error("{what}")]
    Advised { what: String, hint: String },
    /// The command line makes no sense, in a way that only its words together show.
    #[error("{what}")]
    Usage { what: String, hint: &'static str },
    /// The record of what happened is not as it was written.
    #[error("the audit log is damaged: {}", faults.join("; "))]
    AuditDamaged { faults: Vec<String> },
    /// An agent could not be served.
    #[error(transparent)]
    Serving(#[from] belljar_mcp::ServeError),
    /// Nothing could be listened on.
    #[error(transparent)]
    Listening(#[from] belljar_http::ListenError),
    /// The output is no longer wanted.
    #[error(transparent)]
    Silent(#[from] Silent),
}

impl CommandError {
    /// Says what was attempted when the server, or the way to it, failed.
    pub(crate) fn asked(attempt: impl Into<String>) -> impl FnOnce(ClientError) -> Self {
        let attempt = attempt.into();
        move |source| Self::Asked { attempt, source }
    }

    /// Says which file could not be worked with.
    pub(crate) fn file(operation: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { operation, path, source }
    }

    /// What to do, where there is something.
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoKey => Some("on the machine of the server: eval \"$(belljar env)\"".to_owned()),
            Self::Advised { hint, .. } => Some(hint.clone()),
            Self::Usage { hint, .. } => Some((*hint).to_owned()),
            Self::Asked { source, .. } => hint_for(source),
            _ => None,
        }
    }

    /// Tells the person, and gives the code to end with.
    pub(crate) fn tell(&self, code: u8) -> ExitCode {
        if let Self::Silent(Silent { source }) = self
            && source.kind() == std::io::ErrorKind::BrokenPipe
        {
            // 128 and SIGPIPE: what the shell shows for every program whose reader left.
            return ExitCode::from(141);
        }
        screen::remark(&format!("belljar: {}", told(self)));
        if let Some(hint) = self.hint() {
            screen::remark(&format!("hint: {hint}"));
        }
        ExitCode::from(if matches!(self, Self::Usage { .. }) { WRONG_USAGE } else { code })
    }
}

/// An error and its causes on one line, safe for a terminal. The server's refusal is told in the server's words alone.
pub(crate) fn told(error: &dyn Error) -> String {
    let mut parts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        match cause.downcast_ref::<ClientError>() {
            Some(ClientError::Refused(_)) => {}
            Some(ClientError::Unreachable { source, .. }) => {
                // Of the layers between here and the socket, only the socket's own words help.
                parts.push(cause.to_string());
                parts.push(deepest(source).to_string());
                break;
            }
            _ => parts.push(cause.to_string()),
        }
        source = cause.source();
    }
    screen::safe(&parts.join(": "))
}

fn deepest<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    error.source().map_or(error, deepest)
}

fn hint_for(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Unreachable { url, .. } => {
            Some(format!("is the server running? start it with `belljar serve`; another address than {url}: --url or BELLJAR_URL"))
        }
        ClientError::Answer { .. } => {
            Some("check the address (BELLJAR_URL), and that client and server are of the same version".to_owned())
        }
        ClientError::Refused(problem) => {
            let hint = match problem.code.as_str() {
                "unauthorized" => "the server does not know this key; on the machine of the server: eval \"$(belljar env)\"".to_owned(),
                "forbidden" => "`belljar key add --scope …` with an admin key makes a key that may".to_owned(),
                "sandbox_not_found" => "`belljar ls` lists the sandboxes of this key's project".to_owned(),
                "template_not_found" => {
                    "`belljar template build NAME RECIPE` makes one; the base, from Belljar's own directory and with an admin key: \
                                         `belljar template build --shared base templates/base.toml`"
                        .to_owned()
                }
                "sandbox_ended" => "`belljar create` makes a new one; `belljar ls --all` lists ended ones too".to_owned(),
                "process_not_found" => "`belljar show SANDBOX` lists its processes".to_owned(),
                "quota_exceeded" => "end some with `belljar kill`, or ask whoever runs the server for `belljar project quota`".to_owned(),
                "isolation_unavailable" | "engine_unavailable" => {
                    "on the server's machine, as root: `belljar doctor --data-dir /tmp/belljar-doctor` says what is missing".to_owned()
                }
                "guest_refused" if problem.detail.contains("Permission denied") => "`--user root` acts as root in the sandbox".to_owned(),
                _ => match (problem.retry_after, problem.status) {
                    (Some(seconds), _) => format!("try again in {seconds} s"),
                    (None, 500..) => match &problem.request_id {
                        Some(id) => format!("the server's log says more about request {id}"),
                        None => return None,
                    },
                    _ => return None,
                },
            };
            Some(hint)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_client::ProblemBody;

    fn refusal(code: &str, detail: &str) -> CommandError {
        let problem =
            ProblemBody { status: 404, code: code.to_owned(), detail: detail.to_owned(), field: None, retry_after: None, request_id: None };
        CommandError::asked("show it")(ClientError::Refused(Box::new(problem)))
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        assert_eq!(told(&refusal("sandbox_not_found", "there is no sandbox x")), "show it: there is no sandbox x");
    }

    #[test]
    fn the_servers_words_cannot_move_the_cursor() {
        assert_eq!(told(&refusal("invalid", "\u{1b}[2J")), "show it: \\u{1b}[2J");
    }

    #[test]
    fn what_a_person_can_mend_comes_with_a_hint() {
        assert!(refusal("sandbox_not_found", "").hint().is_some_and(|hint| hint.contains("belljar ls")));
        assert!(refusal("template_not_found", "").hint().is_some_and(|hint| hint.contains("build --shared base templates/base.toml")));
        // A server runs on its own data directory, and the doctor needs one that none runs on.
        assert!(refusal("isolation_unavailable", "").hint().is_some_and(|hint| hint.contains("doctor --data-dir")));
        assert!(refusal("whatever", "").hint().is_none());
        assert!(CommandError::NoKey.hint().is_some_and(|hint| hint.contains("belljar env")));
    }
}
