//! After the command: protected names that it made are set aside, so that nothing obeys them by itself.
//!
//! They cannot be refused beforehand. A mount needs a file to lie on, Landlock knows no names, and a filter that looks at paths can be
//! raced by a second thread. By the time of the sweep every process of the sandbox is gone, so nothing races it.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

const SUFFIX: &str = ".belljar-held";
const MOST_ATTEMPTS: u32 = 1000;

/// What happened to a name that was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It has this name now.
    Moved(PathBuf, PathBuf),
    /// It is still there, for this reason.
    Left(PathBuf, String),
}

/// Renames what is now at the names that were missing before.
pub(crate) fn sweep(root: &Path, missing: &[PathBuf]) -> Vec<Held> {
    let taken = missing.iter().filter(|path| root.join(path).symlink_metadata().is_ok());
    taken.map(|path| set_aside(root, path)).collect()
}

fn set_aside(root: &Path, path: &Path) -> Held {
    for number in 0..MOST_ATTEMPTS {
        let mut name = path.as_os_str().to_owned();
        name.push(SUFFIX);
        if number > 0 {
            name.push(format!("-{number}"));
        }
        match renameat_with(CWD, root.join(path), CWD, root.join(&name), RenameFlags::NOREPLACE) {
            Ok(()) => return Held::Moved(path.to_owned(), name.into()),
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Held::Left(path.to_owned(), std::io::Error::from(errno).to_string()),
        }
    }
    Held::Left(path.to_owned(), "too many of that name were set aside before".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_renamed_and_nothing_is_overwritten() {
        let tree = tempfile::tempdir().unwrap();
        let missing = [PathBuf::from(".envrc"), PathBuf::from(".vscode")];
        assert_eq!(sweep(tree.path(), &missing), []);
        for expected in [".envrc.belljar-held", ".envrc.belljar-held-1"] {
            std::fs::write(tree.path().join(".envrc"), "evil").unwrap();
            assert_eq!(sweep(tree.path(), &missing), [Held::Moved(".envrc".into(), expected.into())]);
            assert!(tree.path().join(expected).exists() && !tree.path().join(".envrc").exists());
        }
    }
}
