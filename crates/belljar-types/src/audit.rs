//! What is written down about what happened: who did what to which sandbox. The words of the audit log; how they are kept is not their affair.
//!
//! Text that a guest or a client chose is bounded and escaped here, when an event is made, so that no reader of the log can be fooled or flooded
//! by it. Values of environment variables and secrets have no place in these types at all.

use std::collections::BTreeMap;

use crate::{ExitStatus, KeyId, KillCause, ProcessSpec, ProjectId, SandboxId, Termination, Timestamp, escape_untrusted};

/// The longest piece of foreign text in an event, in bytes before it is escaped.
const LONGEST_TEXT: usize = 1024;
/// The most arguments and names that are listed.
const MOST_WORDS: usize = 64;

/// Whoever did it: a key's holder, or the server by itself when there is no key.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Actor {
    /// The key that was presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// The request it came with; the access log has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// How far something has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is about to be done. Without a later word of the same kind nobody knows whether it was.
    Intent,
    /// It was done.
    Done,
    /// It was tried and not done.
    Failed,
}

/// How much was written or sent, and what.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ContentDigest {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 of all of them; unset if the server did not see every byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuditAction {
    /// Something in the life of a sandbox: `create`, `pause`, `resume`, `change`, `kill`, `end`, `snapshot`, `fork`, `rollback` …
    Lifecycle {
        /// What.
        verb: String,
        /// How far it came.
        phase: Phase,
        /// More about it: template, class, cause.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        detail: BTreeMap<String, String>,
    },
    /// A process is about to be started.
    ExecStarted {
        /// Its id.
        process: String,
        /// Program and arguments, as far as they are told.
        argv: Vec<String>,
        /// How many more arguments there are.
        #[serde(default, skip_serializing_if = "is_zero")]
        argv_omitted: u64,
        /// Where it starts, if it was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        /// Who runs it, if it was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// Names of the variables it is given. Never their values.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        env_names: Vec<String>,
        /// Whether it has a terminal.
        #[serde(default, skip_serializing_if = "is_false")]
        pty: bool,
    },
    /// The end of a process was seen.
    ExecEnded {
        /// Its id.
        process: String,
        /// The code it exited with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<u8>,
        /// Why it was ended, if it was for a limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
        /// What it wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout: Option<ContentDigest>,
        /// What it wrote to standard error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr: Option<ContentDigest>,
    },
    /// A file was touched through the API.
    File {
        /// `read`, `write`, `remove`, `rename`, `make_directory`, `set_mode`, `set_owner`, `set_attribute`.
        verb: String,
        /// How far it came.
        phase: Phase,
        /// Which.
        path: String,
        /// What it is called afterwards.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// What went in or out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ContentDigest>,
    },
    /// A port of a sandbox was connected to, or a token for it was made.
    Port {
        /// `connect` or `token`.
        verb: String,
        /// Which.
        port: u16,
    },
    /// A connection out of a sandbox was allowed or refused.
    Network {
        /// `allow` or `deny`.
        verdict: String,
        /// `tcp`, `udp`, `dns`, `http` …
        protocol: String,
        /// Where to.
        host: String,
        /// Which port there.
        port: u16,
        /// The rule that decided.
        rule: String,
        /// More about it: method, path, bytes.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        detail: BTreeMap<String, String>,
    },
    /// A secret was added to a request. Its name, never its bytes.
    SecretUse {
        /// Its name.
        name: String,
        /// Where the request went.
        host: String,
        /// The rule that bound it to that host.
        rule: String,
        /// More about it: the request, how often.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        detail: BTreeMap<String, String>,
    },
    /// A policy was set or changed.
    Policy {
        /// `set`, `remove` …
        verb: String,
        /// How far it came.
        phase: Phase,
        /// Whose: a project, a template, a sandbox.
        subject: String,
        /// SHA-256 of the document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// A project, a key, a quota or a budget was made, changed or removed.
    Access {
        /// `add_project`, `remove_project`, `set_quota`, `add_key`, `remove_key`, `set_budget` …
        verb: String,
        /// How far it came.
        phase: Phase,
        /// Which one.
        subject: String,
        /// More about it: scopes, limits.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        detail: BTreeMap<String, String>,
    },
    /// A template was made or removed.
    Template {
        /// `make` or `remove`.
        verb: String,
        /// How far it came.
        phase: Phase,
        /// Its name.
        name: String,
    },
    /// A sandbox handed out a file on purpose.
    Artifact {
        /// What it is called.
        name: String,
        /// What is in it.
        content: ContentDigest,
    },
    /// A budget was reached.
    Budget {
        /// What was counted.
        meter: String,
        /// Whose budget.
        subject: String,
        /// How much was allowed.
        limit: u64,
        /// How much was used when it was noticed.
        used: u64,
        /// What was done about it: `warn`, `pause` or `kill`.
        did: String,
    },
    /// Something about the log itself: what was cut off after a crash.
    Log {
        /// What.
        detail: String,
    },
}

/// An event that is to be written down.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AuditEvent {
    /// In whose log.
    pub project: ProjectId,
    /// Which sandbox it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// Who did it.
    #[serde(flatten)]
    pub actor: Actor,
    /// What it was.
    #[serde(flatten)]
    pub action: AuditAction,
}

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AuditRecord {
    /// Counted from 1, without holes.
    #[serde(rename = "seq")]
    pub sequence: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: Timestamp,
    /// SHA-256 of the record before, in hexadecimal.
    #[serde(rename = "prev")]
    pub previous: String,
    /// What happened.
    #[serde(flatten)]
    pub event: AuditEvent,
}

impl AuditAction {
    /// The word its kind is written as.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Lifecycle { .. } => "lifecycle",
            Self::ExecStarted { .. } => "exec_started",
            Self::ExecEnded { .. } => "exec_ended",
            Self::File { .. } => "file",
            Self::Port { .. } => "port",
            Self::Network { .. } => "network",
            Self::SecretUse { .. } => "secret_use",
            Self::Policy { .. } => "policy",
            Self::Access { .. } => "access",
            Self::Template { .. } => "template",
            Self::Artifact { .. } => "artifact",
            Self::Budget { .. } => "budget",
            Self::Log { .. } => "log",
        }
    }

    /// All words of kinds.
    pub const KINDS: [&str; 13] = [
        "lifecycle",
        "exec_started",
        "exec_ended",
        "file",
        "port",
        "network",
        "secret_use",
        "policy",
        "access",
        "template",
        "artifact",
        "budget",
        "log",
    ];

    /// Something in the life of a sandbox.
    pub fn lifecycle<'a>(verb: &str, phase: Phase, detail: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let detail = detail.into_iter().map(|(name, value)| (name.to_owned(), audit_text(value.as_bytes()))).collect();
        Self::Lifecycle { verb: verb.to_owned(), phase, detail }
    }

    /// A process that is about to be started.
    pub fn exec_started(spec: &ProcessSpec) -> Self {
        Self::ExecStarted {
            process: spec.id.to_string(),
            argv: spec.argv.iter().take(MOST_WORDS).map(|word| audit_text(word)).collect(),
            argv_omitted: spec.argv.len().saturating_sub(MOST_WORDS) as u64,
            cwd: spec.cwd.as_ref().map(|cwd| audit_text(cwd.as_bytes())),
            user: spec.user.as_ref().map(ToString::to_string),
            env_names: spec.env.keys().take(MOST_WORDS).map(|name| audit_text(name.as_bytes())).collect(),
            pty: spec.pty.is_some(),
        }
    }

    /// A process whose end was seen.
    pub fn exec_ended(process: &str, exit: &ExitStatus, stdout: Option<ContentDigest>, stderr: Option<ContentDigest>) -> Self {
        let (exit_code, signal) = match exit.termination {
            Termination::Exited(code) => (Some(code), None),
            Termination::Signaled(signal) => (None, Some(signal)),
        };
        let cause = exit.cause.map(|cause| match cause {
            KillCause::Deadline => "deadline",
            KillCause::Overflow => "overflow",
            KillCause::OutOfMemory => "out-of-memory",
        });
        Self::ExecEnded { process: process.to_owned(), exit_code, signal, cause: cause.map(str::to_owned), stdout, stderr }
    }
}

/// Foreign text as it may stand in an event: not longer than is useful, and harmless to whoever reads it.
pub fn audit_text(text: &[u8]) -> String {
    match text.get(..LONGEST_TEXT) {
        Some(head) if text.len() > LONGEST_TEXT => format!("{}… ({} bytes)", escape_untrusted(head), text.len()),
        _ => escape_untrusted(text),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_told_and_values_never() {
        let mut spec = ProcessSpec::new(["sh", "-c", "x\x1b[2Jy"]);
        spec.env.insert("TOKEN".to_owned(), "hunter2".to_owned());
        spec.argv.extend((0..100).map(|_| b"z".to_vec()));
        spec.argv[1] = vec![b'a'; 5000];
        let text = serde_json::to_string(&AuditAction::exec_started(&spec)).unwrap();
        assert!(text.contains(r#""env_names":["TOKEN"]"#) && text.contains(r#""argv_omitted":39"#), "{text}");
        assert!(!text.contains("hunter2") && !text.contains('\x1b') && text.contains("(5000 bytes)"), "{text}");
        assert!(text.len() < 4000);
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let event = AuditEvent {
            project: "p".parse().unwrap(),
            sandbox: Some(SandboxId::random()),
            actor: Actor { key: Some(KeyId::random()), request: Some("r-1".to_owned()) },
            action: AuditAction::lifecycle("create", Phase::Intent, [("template", "base".to_owned())]),
        };
        let record = AuditRecord { sequence: 7, at: Timestamp(5), previous: "00".to_owned(), event };
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.starts_with(r#"{"seq":7,"at":5,"prev":"00","project":"p","#), "{text}");
        assert_eq!(serde_json::from_str::<AuditRecord>(&text).unwrap(), record);
    }

    #[test]
    fn every_kind_is_listed() {
        let text = serde_json::to_value(AuditAction::Log { detail: String::new() }).unwrap();
        assert_eq!(text["kind"], "log");
        assert!(AuditAction::KINDS.contains(&AuditAction::lifecycle("x", Phase::Done, []).kind()));
    }
}
