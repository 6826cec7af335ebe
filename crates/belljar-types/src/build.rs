//! The making of a template from steps: what a step is, how far a build has come, and where and why it failed.

use crate::{BuildId, FilesHash, ProjectId, TemplateName, Timestamp, UserName};

/// One step of a build. Each begins where the one before ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BuildStep {
    /// Runs a shell's command.
    Run {
        /// The command.
        command: String,
        /// Who runs it; the present user when unset.
        #[serde(default)]
        user: Option<UserName>,
    },
    /// Copies out of an archive that was sent before.
    Copy {
        /// Which archive: a tar, plain or gzip.
        files: FilesHash,
        /// What in it: a file, a directory (its content is copied), or a pattern, of which the part before the first wildcard counts.
        source: String,
        /// Where to; below the present directory if it does not start with `/`.
        destination: String,
        /// Whose the copies are, `user` or `user:group`; the present user's when unset.
        #[serde(default)]
        owner: Option<String>,
        /// Their mode, as `chmod` takes it.
        #[serde(default)]
        mode: Option<String>,
    },
    /// Sets variables for all steps after it and for the template. `$NAME` and `${NAME}` are replaced by what is set by then.
    Env {
        /// Names and values, in order.
        set: Vec<(String, String)>,
    },
    /// Changes the directory, and makes it if it is not there.
    Workdir {
        /// Where to.
        path: String,
    },
    /// Changes the user, and adds it if there is none of that name.
    User {
        /// Who.
        name: UserName,
    },
}

impl BuildStep {
    /// The step's kind, as people write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Run { .. } => "RUN",
            Self::Copy { .. } => "COPY",
            Self::Env { .. } => "ENV",
            Self::Workdir { .. } => "WORKDIR",
            Self::User { .. } => "USER",
        }
    }
}

/// How far a build has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildState {
    /// It was asked for, and what it is to do was not said yet.
    Waiting,
    /// It is under way.
    Building,
    /// The template is there.
    Ready,
    /// There is no template of it; what was there before is still there.
    Failed,
}

/// Where in a build something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildPlace {
    /// In what it is built on.
    Base,
    /// In a step, counted from 1.
    Step(usize),
    /// After the last step: in what the template starts, or in writing it down.
    Finish,
}

/// Why a build failed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BuildFailure {
    /// Where.
    pub place: BuildPlace,
    /// Why, safe to print.
    pub message: String,
    /// The user that the sandbox does not have, if that was it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_user: Option<String>,
}

/// How much a line of a build's log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// What is being done, and what commands say.
    Info,
    /// What commands say on standard error.
    Warn,
    /// Why it failed.
    Error,
}

/// One line of a build's log, safe to print.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BuildLog {
    /// When.
    pub at: Timestamp,
    /// How much it matters.
    pub level: LogLevel,
    /// Where.
    pub place: BuildPlace,
    /// The words.
    pub text: String,
}

/// A build, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BuildRecord {
    /// Which.
    pub id: BuildId,
    /// Whose.
    pub project: ProjectId,
    /// Whether the template is to be the server's, for all projects.
    pub shared: bool,
    /// What the template is to be called.
    pub names: Vec<TemplateName>,
    /// How far it has come.
    pub state: BuildState,
    /// Why it failed, if it did.
    pub failure: Option<BuildFailure>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What it said, from the beginning; long logs are cut.
    pub log: Vec<BuildLog>,
}
