//! Which files in the shown tree the command must not read, or must not change. The rule, in two lines:
//!
//! * **Secrets are hidden**, whether the tree is writable or not: files made to hold keys and tokens, and sockets.
//! * **What runs by itself is read-only**, in a writable tree: files that shells, editors, git and agents obey without being asked.
//!
//! Both are enforced by mounts over files that exist. A directory on the way to a read-only file is pinned, a mount of itself: otherwise the
//! command would move it away and put another in its place. Names that do not exist cannot be taken by a mount without leaving a file
//! behind; what the command makes under them is set aside at the end, see [`crate::sweep`].

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags};

use crate::errors::GuardError;

/// How deep below the tree's root is looked: `a/b/c/.env` is found.
const DEPTH: usize = 4;
/// So that a start stays a start in a tree of millions; what lies beyond is told with `--verbose`.
const MOST_ENTRIES: usize = 50_000;
/// Not looked into: made by tools, large, and rebuilt at will.
const PASSED_OVER: [&str; 8] = ["node_modules", "target", "__pycache__", ".venv", "venv", ".tox", ".cache", "vendor"];

const SECRETS: [&str; 27] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".password-store",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".terraformrc",
    ".dockercfg",
    ".s3cfg",
    ".boto",
    ".htpasswd",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".age-key.txt",
];
/// `.env` and its kin, but not the examples that are meant to be read.
const EXAMPLES: [&str; 6] = [".example", ".sample", ".template", ".dist", ".defaults", ".schema"];

const RUN_BY_THEMSELVES: [&str; 34] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".inputrc",
    ".login",
    ".cshrc",
    ".tcshrc",
    ".envrc",
    ".vimrc",
    ".nvimrc",
    ".exrc",
    ".tmux.conf",
    ".gitconfig",
    ".gitmodules",
    ".husky",
    ".vscode",
    ".idea",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".mcp.json",
    ".devcontainer",
    ".ripgreprc",
    ".pythonrc",
];
/// Of a `.git` directory: what git obeys, or runs.
const OF_GIT: [&str; 4] = ["hooks", "config", "config.worktree", "commondir"];

/// What is done about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    /// Cannot be moved, so that what is below it stays where it is.
    Pinned,
    /// Cannot be changed.
    ReadOnly,
    /// Cannot be read.
    Hidden,
}

/// What was found in a tree.
#[derive(Debug, Default)]
pub(crate) struct Protected {
    /// Paths below the tree's root, parents before children.
    pub(crate) paths: Vec<(PathBuf, Protection)>,
    /// Names in the root, and of `.git` there, that do not exist.
    pub(crate) missing: Vec<PathBuf>,
    /// Whether the tree has more entries than are looked at.
    pub(crate) cut_short: bool,
}

fn by_name(name: &OsStr) -> Option<Protection> {
    let is_environment =
        |name: &[u8]| name == b".env" || name.starts_with(b".env.") && !EXAMPLES.iter().any(|example| name.ends_with(example.as_bytes()));
    if SECRETS.iter().any(|secret| name == *secret) || is_environment(name.as_bytes()) {
        Some(Protection::Hidden)
    } else {
        RUN_BY_THEMSELVES.iter().any(|known| name == *known).then_some(Protection::ReadOnly)
    }
}

/// Looks through the tree at `root`. Whatever is `allowed`, or below it, is left alone.
pub(crate) fn scan(root: &Path, writable: bool, allowed: &[PathBuf]) -> Result<Protected, GuardError> {
    let failed = |source: io::Error| GuardError::Scan { path: root.to_owned(), source };
    let open = rustix::fs::open(root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let mut search = Search { writable, allowed, found: Protected::default(), entries: 0 };
    let open = open.map_err(|errno| failed(errno.into()))?;
    search.directory(&open, Path::new(""), 1).map_err(failed)?;
    let mut found = search.found;
    follow_links(root, &mut found.paths);
    if writable {
        search_missing(root, allowed, &mut found);
        pin_ancestors(&mut found.paths);
    } else {
        found.paths.retain(|(_, protection)| *protection == Protection::Hidden);
    }
    found.paths.sort();
    found.paths.dedup_by(|later, first| later.0 == first.0 && later.1 == first.1);
    Ok(found)
}

struct Search<'a> {
    writable: bool,
    allowed: &'a [PathBuf],
    found: Protected,
    entries: usize,
}

impl Search<'_> {
    fn directory(&mut self, directory: &OwnedFd, path: &Path, depth: usize) -> io::Result<()> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                self.found.cut_short = true;
                return Ok(());
            }
            let below = path.join(name);
            if self.allowed.contains(&below) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    FileType::from_raw_mode(rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
                }
                known => known,
            };
            self.entry(directory, name, below, kind, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, directory: &OwnedFd, name: &OsStr, path: PathBuf, kind: FileType, depth: usize) -> io::Result<()> {
        if kind == FileType::Socket {
            self.found.paths.push((path, Protection::Hidden));
        } else if let Some(protection) = by_name(name) {
            self.found.paths.push((path, protection));
        } else if name == ".git" && kind == FileType::Directory {
            if self.writable {
                self.git(directory, &path)?;
            }
        } else if name == ".git" {
            self.found.paths.push((path, Protection::ReadOnly));
        } else if kind == FileType::Directory && depth < DEPTH && !PASSED_OVER.iter().any(|skipped| name == *skipped) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(directory, name, flags, Mode::empty()) {
                Ok(open) => self.directory(&open, &path, depth + 1)?,
                // What the caller cannot read, the command cannot either.
                Err(rustix::io::Errno::ACCESS | rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn git(&mut self, directory: &OwnedFd, path: &Path) -> io::Result<()> {
        let open =
            rustix::fs::openat(directory, ".git", OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        // As `git init` itself makes it; without it the command could make it and put hooks there.
        if !self.allowed.contains(&path.join("hooks")) {
            let _ = rustix::fs::mkdirat(open.as_fd(), "hooks", Mode::from_raw_mode(0o755));
        }
        for name in OF_GIT {
            let below = path.join(name);
            let there = rustix::fs::statat(&open, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok();
            if there && !self.allowed.contains(&below) {
                self.found.paths.push((below, Protection::ReadOnly));
            }
        }
        Ok(())
    }
}

/// A protected name that is a link protects what it leads to, if that lies in the tree. Elsewhere it leads nowhere inside.
fn follow_links(root: &Path, paths: &mut Vec<(PathBuf, Protection)>) {
    let leads_to = |(path, protection): &(PathBuf, Protection)| {
        let place = root.join(path);
        if !place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return None;
        }
        let target = place.canonicalize().ok()?.strip_prefix(root).ok()?.to_owned();
        Some((target, *protection)).filter(|(target, _)| !target.as_os_str().is_empty())
    };
    let targets: Vec<_> = paths.iter().filter_map(leads_to).collect();
    paths.extend(targets);
}

/// Names that a command could take.
fn search_missing(root: &Path, allowed: &[PathBuf], found: &mut Protected) {
    let names = SECRETS.iter().chain(&RUN_BY_THEMSELVES).map(PathBuf::from).chain([PathBuf::from(".env"), PathBuf::from(".git")]);
    let of_git = OF_GIT.iter().map(|name| Path::new(".git").join(name)).filter(|_| root.join(".git").is_dir());
    let is_allowed = |path: &Path| allowed.iter().any(|allowed| path.starts_with(allowed));
    found.missing = names.chain(of_git).filter(|path| !is_allowed(path) && root.join(path).symlink_metadata().is_err()).collect();
}

fn pin_ancestors(paths: &mut Vec<(PathBuf, Protection)>) {
    let parents = |(path, protection): &(PathBuf, Protection)| match protection {
        Protection::ReadOnly => path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned).collect(),
        _ => Vec::new(),
    };
    let pinned: Vec<_> = paths.iter().flat_map(parents).map(|path| (path, Protection::Pinned)).collect();
    paths.extend(pinned);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[&str], writable: bool, allowed: &[&str]) -> Vec<String> {
        let tree = tempfile::tempdir().unwrap();
        for file in files {
            let path = tree.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let allowed: Vec<_> = allowed.iter().map(PathBuf::from).collect();
        let found = scan(tree.path(), writable, &allowed).unwrap();
        found.paths.iter().map(|(path, protection)| format!("{protection:?} {}", path.display())).collect()
    }

    #[test]
    fn secrets_are_hidden_always_and_start_up_files_kept_in_writable_trees() {
        let files = [".env", ".env.local", ".env.example", "a/b/.npmrc", ".bashrc", "README", "node_modules/x/.env"];
        let hidden = ["Hidden .env", "Hidden .env.local", "Hidden a/b/.npmrc"];
        assert_eq!(found(&files, false, &[]), hidden);
        assert_eq!(found(&files, true, &[]), ["ReadOnly .bashrc", "Hidden .env", "Hidden .env.local", "Hidden a/b/.npmrc"]);
        assert_eq!(found(&files, true, &[".env", "a/b/.npmrc"]), ["ReadOnly .bashrc", "Hidden .env.local"]);
    }

    #[test]
    fn what_leads_to_a_kept_file_is_pinned() {
        assert_eq!(
            found(&["sub/.git/config", ".git/HEAD"], true, &[]),
            ["Pinned .git", "ReadOnly .git/hooks", "Pinned sub", "Pinned sub/.git", "ReadOnly sub/.git/config", "ReadOnly sub/.git/hooks"]
        );
        assert_eq!(found(&[".git/config"], true, &[".git"]), Vec::<String>::new());
        assert_eq!(found(&[".git/config"], false, &[]), Vec::<String>::new());
    }
}
