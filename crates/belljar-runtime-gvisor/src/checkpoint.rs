//! What `runsc` is told about a sandbox that runs: stand still, write your memory down, go on.
//!
//! A checkpoint of a sandbox that stands still leaves it standing still, so its files can be kept in the very same state. These commands run outside
//! the sandbox's control group, which may be full; they end by themselves whatever becomes of us, and runsc lets only one at a time
//! touch a sandbox.
//!
//! The image is written without compression: what `flate` saves in bytes it takes several times over in processor time, while the sandbox waits.

use std::fs::{DirBuilder, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::errors::EngineError;
use crate::launch::{CONTAINER, Files};
use crate::runsc::Runsc;

/// What runsc says when a file inside has no name any more but is open: it could not find it again.
const NAMELESS: &str = "deleted and invalidated dentries can't be restored";
const SHOWN: usize = 400;

impl Runsc {
    /// Stops everything inside where it stands.
    pub(crate) fn hold(&self, files: &Files) -> Result<(), EngineError> {
        self.tell(files, "pause", &[])
    }

    /// Lets it go on.
    pub(crate) fn let_go(&self, files: &Files) -> Result<(), EngineError> {
        self.tell(files, "resume", &[])
    }

    /// Writes the memory of a sandbox that stands still to a new directory.
    ///
    /// runsc makes whatever is missing of the path it is given. If we are killed, whoever comes next removes the directory, and a runsc that is
    /// late would make it anew; so it is told a path that leads there only as long as we live.
    pub(crate) fn checkpoint(&self, files: &Files, image: &Path) -> Result<(), EngineError> {
        let failed = |source| EngineError::Image { path: image.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(image).map_err(failed)?;
        let directory = File::open(image).map_err(failed)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), directory.as_raw_fd());
        self.tell(files, "checkpoint", &["--leave-running".as_ref(), "--compression=none".as_ref(), "--image-path".as_ref(), path.as_ref()])
    }

    fn tell(&self, files: &Files, verb: &'static str, arguments: &[&std::ffi::OsStr]) -> Result<(), EngineError> {
        let mut command = Command::new(&self.path);
        command.env_clear().args(self.flags(files, false)).arg(verb).args(arguments).arg(CONTAINER);
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output();
        let output = output.map_err(|source| EngineError::Start { runsc: self.path.clone(), source })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains(NAMELESS) {
            return Err(EngineError::NamelessFile { file: nameless_file(&said) });
        }
        let first = said.lines().next().unwrap_or_default();
        let said = belljar_types::escape_untrusted(&first.as_bytes()[..first.len().min(SHOWN)]);
        Err(EngineError::Told { verb, status: output.status.to_string(), said })
    }
}

/// `…gofer.dentry("home/gone").beforeSave: deleted…`: the name is the guest's.
fn nameless_file(said: &str) -> String {
    let name = said.split("dentry(\"").nth(1).and_then(|rest| rest.split("\").").next()).unwrap_or_default();
    belljar_types::escape_untrusted(&name.as_bytes()[..name.len().min(SHOWN)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_is_in_the_way_is_named() {
        let said = format!("checkpoint failed: encoding error: gofer.dentry(\"home/a\x1bb\").beforeSave: {NAMELESS}:\ngoroutine 54");
        assert_eq!(nameless_file(&said), "home/a\\u{1b}b");
        assert_eq!(nameless_file(NAMELESS), "");
    }
}
