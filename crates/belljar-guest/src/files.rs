//! Files, with the rights of whoever acts.
//!
//! The kernel decides what they may do: each operation runs on a thread that has taken the user's identity for its duration. Paths are
//! not checked here for tricks, because a trick gains nothing that the user does not have.

mod describe;
mod identity;
mod inflow;
mod pattern;
mod search;
mod tree;
mod walk;
mod watch;
mod writing;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use belljar_guest_protocol::Failure;
use belljar_types::{GuestPath, UserName, escape_untrusted};

pub(crate) use describe::Describer;
pub(crate) use inflow::Inflow;
pub(crate) use search::SearchTask;
pub(crate) use tree::{Reading, make_directories, open_for_reading, remove};
pub(crate) use walk::ListTask;
pub(crate) use watch::{Places, Watcher};
pub(crate) use writing::{Writing, open_for_writing};

use crate::agent::Agent;
use crate::users::{User, Users};

/// Who acts, on a thread that has their identity.
pub(crate) struct Actor {
    pub(crate) user: User,
    pub(crate) users: Arc<Users>,
}

impl Actor {
    /// The path as the kernel takes it.
    pub(crate) fn path(&self, path: &GuestPath) -> Vec<u8> {
        absolute(path.as_bytes(), &self.user)
    }

    pub(crate) fn describer(&self) -> Describer<'_> {
        Describer::new(&self.users)
    }
}

/// Runs `work` with the identity of `user`, or of the default user.
pub(crate) async fn act<T: Send + 'static>(
    agent: &Agent,
    user: Option<UserName>,
    work: impl FnOnce(&Actor) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    crate::blocking::run(acting(agent, user, work)).await
}

/// The same for a thread of the caller's own choice, which has its own identity again afterwards.
pub(crate) fn acting<T>(
    agent: &Agent,
    user: Option<UserName>,
    work: impl FnOnce(&Actor) -> Result<T, Failure> + Send + 'static,
) -> impl FnOnce() -> Result<T, Failure> + Send + 'static {
    let policy = agent.users.clone();
    move || {
        let users = Users::read();
        let user = policy.resolve(&users, user.as_ref())?;
        let actor = Actor { user, users };
        let _identity = identity::Borrowed::take(&actor.user)?;
        work(&actor)
    }
}

/// A path as bytes, from a request.
pub(crate) fn guest_path(bytes: &[u8]) -> Result<GuestPath, Failure> {
    Ok(GuestPath::new(bytes)?)
}

/// A path from the root; relative ones begin in the user's home.
pub(crate) fn absolute(path: &[u8], user: &User) -> Vec<u8> {
    if path.first() == Some(&b'/') { path.to_vec() } else { join(&user.home, path) }
}

/// One path after another.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.last() == Some(&b'/') { b"" } else { b"/" };
    [directory, slash, name].concat()
}

pub(crate) fn as_os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// What the kernel said about a path.
pub(crate) fn refused(path: &[u8], error: &std::io::Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or(0);
    let reason = if errno == 0 { error.to_string() } else { rustix::io::Errno::from_raw_os_error(errno).to_string() };
    Failure::refused(errno, format!("{}: {reason}", escape_untrusted(path)))
}
