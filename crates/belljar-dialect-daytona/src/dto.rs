//! The shapes of Daytona's requests and answers. What a client may leave out is an `Option`; what this server does not know is let be, because newer
//! SDKs send more than older servers read.

mod files;
mod git;
mod interpreter;
mod process;
mod sandbox;
mod terminal;

pub(crate) use files::{DownloadPaths, FileInfoDto, FileQuery, FindQuery, MoveQuery, PermissionsQuery, Replace, Replaced};
pub(crate) use git::{
    Branch, Checkout, Clone, Commit, Credentials, GitFiles, GitSetting, GitUser, InRepository, NewRemote, NewRepository, Reset, Restore,
    SettingQuery, Status, StatusOfFile, Transfer,
};
pub(crate) use interpreter::{ContextDto, NewContext, RunCode};
pub(crate) use process::{CodeRun, CommandDto, Execute, Executed, Input, Logs, NewSession, SessionDto, SessionExecute, SessionExecuted};
pub(crate) use sandbox::{ListQuery, NetworkSettings, NewSandbox, NewVolumeMount, OldListQuery, SandboxDto};
pub(crate) use terminal::{NewTerminal, Size, TerminalDto};
