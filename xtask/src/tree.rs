//! The files that git tracks or would track, with their text: what is ignored is nobody's business.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// One file of the repository.
pub(crate) struct SourceFile {
    /// Relative to the root, with forward slashes.
    pub(crate) path: String,
    /// Its content; bytes that are not UTF-8 are replaced, which no rule minds.
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Lines with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// The repository as one looks at it.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) files: Vec<SourceFile>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("run git ls-files in {}: {error}", root.display()))?;
        if !listed.status.success() {
            return Err(format!("git ls-files in {}: {}", root.display(), String::from_utf8_lossy(&listed.stderr).trim()).into());
        }
        let mut files = Vec::new();
        for path in listed.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let path = String::from_utf8_lossy(path).into_owned();
            let on_disk = root.join(&path);
            // Removed but not yet committed, a link, or a submodule: there is no text of ours to check.
            if !on_disk.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let bytes = std::fs::read(&on_disk).map_err(|error| format!("read {path}: {error}"))?;
            if !bytes.contains(&0) {
                files.push(SourceFile { path, text: String::from_utf8_lossy(&bytes).into_owned() });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root: root.to_owned(), files })
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file or directory with files is there.
    pub(crate) fn has(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&directory))
    }
}
