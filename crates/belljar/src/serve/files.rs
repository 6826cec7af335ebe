//! The small files in the data directory by which other commands find the server and its first key.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use belljar_linux::private_file;
use belljar_types::Secret;

/// The administrator's first key, readable by root only.
pub(crate) const FIRST_KEY: &str = "first-key";
const PORT_TOKEN_SECRET: &str = "port-token-secret";
const WEBHOOK_KEY: &str = "webhook-key";
const SERVER: &str = "server.json";

/// Why such a file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}")]
pub(crate) struct FileError {
    operation: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// The first key: the one on disk, or a fresh one that is now on disk.
pub(crate) fn first_key(data_dir: &Path) -> Result<Secret<String>, FileError> {
    let path = data_dir.join(FIRST_KEY);
    match std::fs::read_to_string(&path) {
        Ok(text) => return Ok(Secret::new(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(FileError { operation: "read the first key", path, source }),
    }
    let secret = belljar_core::fresh_secret();
    private_file::write_whole(&path, format!("{}\n", secret.reveal()).as_bytes()).map_err(|source| FileError {
        operation: "keep the first key in",
        path,
        source,
    })?;
    Ok(secret)
}

/// The secret that signs permissions to reach ports: the one on disk, or a fresh one that is now on disk.
pub(crate) fn port_token_secret(data_dir: &Path) -> Result<[u8; 32], FileError> {
    secret(&data_dir.join(PORT_TOKEN_SECRET))
}

/// What the secrets of webhooks are made from: the one on disk, or a fresh one that is now on disk.
pub(crate) fn webhook_key(data_dir: &Path) -> Result<[u8; 32], FileError> {
    secret(&data_dir.join(WEBHOOK_KEY))
}

fn secret(path: &Path) -> Result<[u8; 32], FileError> {
    let failed = |operation| move |source| FileError { operation, path: path.to_owned(), source };
    let mut secret = [0; 32];
    match File::open(path) {
        Ok(mut file) => file.read_exact(&mut secret).map_err(failed("read the secret"))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            getrandom::fill(&mut secret).map_err(|error| failed("draw the secret")(io::Error::other(error)))?;
            private_file::write_whole(path, &secret).map_err(failed("keep the secret in"))?;
        }
        Err(error) => return Err(failed("open the secret")(error)),
    }
    Ok(secret)
}

/// An empty directory for archives that are being uploaded. What a server that died left there is of no use to anybody.
pub(crate) fn upload_directory(data_dir: &Path) -> Result<PathBuf, FileError> {
    let path = data_dir.join("uploads");
    let made = match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::fs::DirBuilder::new().mode(0o700).create(&path),
    };
    made.map_err(|source| FileError { operation: "empty the uploads in", path: path.clone(), source })?;
    Ok(path)
}

/// Where the server listens and who it is; there while it runs.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct ServerFile {
    /// Where it listens.
    pub(crate) url: String,
    /// Its process.
    pub(crate) pid: u32,
    #[serde(skip)]
    path: PathBuf,
}

impl ServerFile {
    pub(crate) fn write(data_dir: &Path, url: &str) -> Result<Self, FileError> {
        let path = data_dir.join(SERVER);
        let file = Self { url: url.to_owned(), pid: std::process::id(), path: path.clone() };
        let failed = |source| FileError { operation: "write", path, source };
        let text = serde_json::to_vec_pretty(&file).map_err(|error| failed.clone()(error.into()))?;
        private_file::write_whole(&file.path, &text).map_err(failed)?;
        Ok(file)
    }

    /// The file a server left, if there is one that can be read.
    pub(crate) fn read(data_dir: &Path) -> Option<Self> {
        let path = data_dir.join(SERVER);
        let file: Self = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        Some(Self { path, ..file })
    }

    pub(crate) fn remove(&self) {
        // If it stays, whoever reads it finds that its process is gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_key_is_made_once_and_for_root_only() {
        let directory = tempfile::tempdir().unwrap();
        let first = first_key(directory.path()).unwrap();
        assert_eq!(first_key(directory.path()).unwrap(), first);
        let mode = std::fs::metadata(directory.path().join(FIRST_KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_secret_of_port_tokens_is_made_once_and_for_root_only() {
        let directory = tempfile::tempdir().unwrap();
        let first = port_token_secret(directory.path()).unwrap();
        assert_ne!(first, [0; 32]);
        assert_eq!(port_token_secret(directory.path()).unwrap(), first);
        let path = directory.path().join(PORT_TOKEN_SECRET);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(port_token_secret(directory.path()).is_err(), "never signs with half a secret");
    }

    #[test]
    fn a_server_is_found_by_its_file_and_no_longer_when_it_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let file = ServerFile::write(directory.path(), "http://127.0.0.1:1").unwrap();
        assert_eq!(ServerFile::read(directory.path()).unwrap().url, "http://127.0.0.1:1");
        file.remove();
        assert!(ServerFile::read(directory.path()).is_none());
    }
}
