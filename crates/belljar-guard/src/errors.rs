//! Why the guard did not run a command. Each says what to do.

use std::io;
use std::path::PathBuf;

use crate::line::Step;

/// A guard that could not do its work; the command did not run, or was ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The current directory is gone or cannot be read.
    #[error("find the current directory; change to one that exists")]
    CurrentDirectory(#[source] io::Error),
    /// A directory that must not be shown.
    #[error("{} is not shown to the command: {why}", path.display())]
    NotShown {
        /// Which.
        path: PathBuf,
        /// Why, and what to do instead.
        why: &'static str,
    },
    /// A path that was asked for cannot be opened.
    #[error("open {}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something to be lifted or passed on that makes no sense.
    #[error("{option} {value}: {expected}")]
    Invalid {
        /// The option.
        option: &'static str,
        /// What came.
        value: String,
        /// What is expected.
        expected: &'static str,
    },
    /// A standard stream through which the command could walk out.
    #[error(
        "standard stream {number} is a directory, through which the command could leave the sandbox; give it a file, a pipe or a terminal"
    )]
    StreamIsDirectory {
        /// 0, 1 or 2.
        number: u8,
    },
    /// Files of root cannot be shown to somebody who is not root.
    #[error(
        "{} lies on a filesystem whose owners cannot be mapped, so root's files there cannot be written by a command that is not root; \
         run the guard as an ordinary user, or without --rw",
        path.display()
    )]
    MapOwners {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel forbids it.
    #[error("make the namespaces of the sandbox: {advice}")]
    Namespaces {
        /// What to do.
        advice: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The ids of the sandbox could not be set.
    #[error("set the user and group ids of the sandbox")]
    MapIds(#[source] io::Error),
    /// A step inside failed.
    #[error("{step}{}{}{}", if path.as_os_str().is_empty() { "" } else { " " }, path.display(), if advice.is_empty() { String::new() } else { format!(": {advice}") })]
    Inside {
        /// Which.
        step: Step,
        /// On what.
        path: PathBuf,
        /// What to do, where we know.
        advice: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The tree cannot be searched for files to protect.
    #[error("look for files to protect in {}", path.display())]
    Scan {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A limit that needs a control group, which this user may not make.
    #[error("--{limit} needs a control group, which only root may make here; run the guard as root, or leave the limit out")]
    NeedsControlGroup {
        /// Which.
        limit: &'static str,
    },
    /// The control group could not be made.
    #[error("make a control group for the limits")]
    ControlGroup(#[source] belljar_linux::cgroup::CgroupError),
    /// Templates are readable by root only.
    #[error("templates in {} are readable by root only; run the guard as root, or without --template to use this machine's own programs", data.display())]
    TemplateNeedsRoot {
        /// The data directory.
        data: PathBuf,
    },
    /// Nobody has the pool mounted.
    #[error(
        "the pool at {} is not mounted, so its templates cannot be seen; start the server (belljar serve), or give its data directory with --data-dir",
        pool.display()
    )]
    PoolNotMounted {
        /// Where it would be.
        pool: PathBuf,
    },
    /// The template cannot be read.
    #[error("read the template {name} at {}; belljar template ls shows which there are", path.display())]
    Template {
        /// Its name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its layers cannot be put together.
    #[error("put the layers of the template {name} together")]
    Layers {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The guard itself cannot go on.
    #[error("watch over the command")]
    Watch(#[source] io::Error),
}
