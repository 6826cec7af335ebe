//! The running builder, kept in namespaces of its own so that it can be ended at any moment.
//!
//! `mmdebstrap` mounts things into the new system, and forgets them when it is killed. On failure it sends a signal to its whole process
//! group, which must not be ours. So it runs in its own group, process namespace and mount namespace: when the first process of it is
//! killed, all others and all mounts are gone, and its directory is an ordinary one to remove.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command};

use belljar_types::escape_untrusted;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::RecipeError;
use crate::progress::Stoppable;
use crate::store::random_name;
use crate::{ArchiveError, Progress, ProgressSink};

const LAST_WORDS: usize = 2000;

/// A command that runs the builder, to be given its arguments.
pub(super) fn command() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--", "mmdebstrap"]).process_group(0);
    command
}

/// Where the builder works. Not in the pool, on which devices do nothing. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Workshop(PathBuf);

impl Workshop {
    pub(super) fn new() -> io::Result<Self> {
        let base = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
        let path = base.join(format!("belljar-build-{}", random_name()?));
        // Apt downloads as a user of its own, who must get in.
        fs::DirBuilder::new().mode(0o755).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What cannot be removed is where temporary files are, and goes when they do.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running builder. Dropping it ends it.
pub(super) struct Builder {
    child: Child,
    step: String,
    last_words: String,
}

impl Builder {
    pub(super) fn start(command: &mut Command, sources: &[String]) -> Result<Self, RecipeError> {
        let mut child = command.spawn().map_err(RecipeError::Builder)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A builder that died at once is reported by its exit, with its own words.
            let _ = stdin.write_all((sources.join("\n") + "\n").as_bytes());
        }
        Ok(Self { child, step: "starting".to_owned(), last_words: String::new() })
    }

    /// Hands the builder's output to `take` while its messages become progress. All its processes have ended when this returns.
    pub(super) fn follow(
        &mut self,
        progress: &dyn ProgressSink,
        take: impl FnOnce(&mut dyn Read) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let (Some(mut output), Some(messages)) = (self.child.stdout.take(), self.child.stderr.take()) else { return Ok(()) };
        // By a handle and not by its number, which may be somebody else's by then.
        let handle = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).map_err(|errno| ArchiveError::Read(errno.into()))?;
        progress.when_stopped(Box::new(move || {
            // It may have ended by itself, which is as good.
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }));
        std::thread::scope(|scope| {
            let listener = scope.spawn(|| listen(messages, progress));
            let mut counted = Reported { inner: Stoppable::new(&mut output, progress), done: 0, progress };
            let taken = take(&mut counted);
            // Without this the builder would wait for a reader, and the listener for the builder.
            drop(output);
            if let Ok((step, last_words)) = listener.join() {
                (self.step, self.last_words) = (step, last_words);
            }
            taken
        })
    }

    pub(super) fn finish(mut self) -> Result<(), RecipeError> {
        let status = self.child.wait().map_err(RecipeError::Builder)?;
        if status.success() {
            return Ok(());
        }
        Err(RecipeError::Build { step: std::mem::take(&mut self.step), last_words: std::mem::take(&mut self.last_words) })
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Turns `I: doing something...` into steps and keeps the end of everything for an error.
fn listen(messages: ChildStderr, progress: &dyn ProgressSink) -> (String, String) {
    let (mut step, mut last_words) = ("starting".to_owned(), String::new());
    let mut lines = BufReader::new(messages);
    let mut line = Vec::new();
    while lines.by_ref().take(64 << 10).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if let Some(told) = text.strip_prefix("I: ") {
            step = escape_untrusted(told.trim_end_matches('.').as_bytes());
            progress.report(Progress::Step(&step));
        } else {
            last_words.push_str(&text);
            last_words.push('\n');
            let excess = last_words.len().saturating_sub(LAST_WORDS);
            last_words.drain(..last_words.ceil_char_boundary(excess));
        }
        line.clear();
    }
    (step, last_words)
}

struct Reported<'a, R> {
    inner: R,
    done: u64,
    progress: &'a dyn ProgressSink,
}

impl<R: Read> Read for Reported<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done += read as u64;
        self.progress.report(Progress::Bytes { done: self.done, total: None });
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_a_package_says_cannot_act_on_a_terminal() {
        let script = "printf 'I: \\033]0;owned\\007step...\\nE: \\033[2Jsaid\\n' >&2";
        let mut child = Command::new("sh").args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        let steps = Mutex::new(Vec::new());
        let sink = |progress: Progress<'_>| {
            if let Progress::Step(step) = progress {
                steps.lock().unwrap().push(step.to_owned());
            }
        };
        let (step, last_words) = listen(child.stderr.take().unwrap(), &sink);
        child.wait().unwrap();
        assert_eq!(*steps.lock().unwrap(), ["\\u{1b}]0;owned\\u{7}step"]);
        let error = RecipeError::Build { step, last_words }.to_string();
        assert!(error.ends_with("E: \\u{1b}[2Jsaid\\n") && !error.contains(char::is_control), "{error}");
    }
}
