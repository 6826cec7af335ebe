//! Running one of the trial programs on a machine that is booted for it.

use std::path::Path;
use std::process::{Command, Output};

/// An emulated machine, still without its program.
pub(crate) fn machine() -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/emulated-machine");
    Command::new(script)
}

/// A trial's words: a heading, a line for each promise, and the sum, with nothing failed.
pub(crate) fn assert_all_kept(output: &Output, heading: Option<&str>) {
    let (words, complaints) = texts(output);
    assert!(output.status.success(), "{} {complaints}\n{words}", output.status);
    if let Some(heading) = heading {
        assert!(words.lines().next().is_some_and(|first| first.starts_with(heading)), "{words}");
    }
    let kept = words.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(kept > 0, "no promise was tried");
    assert_eq!(words.lines().last(), Some(format!("{kept} passed, 0 failed").as_str()));
}

pub(crate) fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}
