//! Secrets on disk, sealed with AES-256-GCM under a key from a file of its own. What is sealed names its project and itself, so that no file can
//! stand in for another. Values leave this module as [`Secret`] and are opened when a request needs them, not before.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use belljar_linux::private_file;
use belljar_types::{ProjectId, Secret};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::secrets::SecretKeeper;

const KEY: usize = 32;
const LONGEST: usize = 8 << 10;

/// All secrets of a server.
pub struct Vault {
    directory: PathBuf,
    key: LessSafeKey,
}

impl Vault {
    /// Opens it; makes the key and the directory, root's only, if they are not there.
    pub fn open(directory: &Path, key_file: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut bytes = [0; KEY];
        match File::open(key_file) {
            Ok(mut file) => file.read_exact(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                getrandom::fill(&mut bytes).map_err(io::Error::other)?;
                private_file::write_whole(key_file, &bytes)?;
            }
            Err(error) => return Err(error),
        }
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| io::Error::other("the key cannot be used"))?;
        Ok(Self { directory: directory.to_owned(), key: LessSafeKey::new(key) })
    }

    /// Keeps a secret, in place of one of the same name.
    pub fn put(&self, project: &ProjectId, name: &str, value: &Secret<String>) -> io::Result<()> {
        let path = self.path(project, name)?;
        let text = value.reveal();
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a secret is 1 to 8192 visible ASCII characters: it is sent in a header",
            ));
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.directory.join(project.as_str()))?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = text.as_bytes().to_vec();
        let about = Aad::from(format!("{project}/{name}"));
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), about, &mut sealed)
            .map_err(|_| io::Error::other("the secret cannot be sealed"))?;
        private_file::write_whole(&path, &[&nonce[..], &sealed].concat())
    }

    /// The names of a project's secrets, sorted.
    pub fn names(&self, project: &ProjectId) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.directory.join(project.as_str())) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_name(name)).collect();
        names.sort();
        Ok(names)
    }

    /// Forgets a secret. `false` if there was none.
    pub fn remove(&self, project: &ProjectId, name: &str) -> io::Result<bool> {
        match std::fs::remove_file(self.path(project, name)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn path(&self, project: &ProjectId, name: &str) -> io::Result<PathBuf> {
        if !is_name(name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of a secret is 1 to 64 letters, digits, - and _"));
        }
        Ok(self.directory.join(project.as_str()).join(name))
    }
}

impl SecretKeeper for Vault {
    fn reveal(&self, project: &ProjectId, name: &str) -> Option<Secret<String>> {
        let mut bytes = std::fs::read(self.path(project, name).ok()?).ok()?;
        let nonce: [u8; NONCE_LEN] = *bytes.first_chunk()?;
        let about = Aad::from(format!("{project}/{name}"));
        let plain = self.key.open_within(Nonce::assume_unique_for_key(nonce), about, &mut bytes, NONCE_LEN..).ok()?;
        String::from_utf8(plain.to_vec()).ok().map(Secret::new)
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sealed_on_disk_and_cannot_stand_in_for_another() {
        let place = tempfile::tempdir().unwrap();
        let (directory, key) = (place.path().join("secrets"), place.path().join("key"));
        let (mine, other): (ProjectId, ProjectId) = ("mine".parse().unwrap(), "other".parse().unwrap());
        let vault = Vault::open(&directory, &key).unwrap();
        vault.put(&mine, "model-key", &Secret::new("s3cret-value".to_owned())).unwrap();
        assert_eq!(vault.reveal(&mine, "model-key").unwrap().reveal(), "s3cret-value");
        assert_eq!(vault.names(&mine).unwrap(), ["model-key"]);
        let on_disk = std::fs::read(directory.join("mine/model-key")).unwrap();
        assert!(!on_disk.windows(6).any(|part| part == b"s3cret"));
        // Put where another is looked for, it opens nothing.
        std::fs::create_dir(directory.join("other")).unwrap();
        std::fs::write(directory.join("other/model-key"), &on_disk).unwrap();
        std::fs::write(directory.join("mine/renamed"), &on_disk).unwrap();
        assert!(vault.reveal(&other, "model-key").is_none() && vault.reveal(&mine, "renamed").is_none());
        // Another key opens nothing; the same key opens it again.
        assert!(Vault::open(&directory, &place.path().join("another-key")).unwrap().reveal(&mine, "model-key").is_none());
        assert_eq!(Vault::open(&directory, &key).unwrap().reveal(&mine, "model-key").unwrap().reveal(), "s3cret-value");
        for name in ["", "../x", "a/b", "a.b"] {
            assert!(vault.put(&mine, name, &Secret::new("x".to_owned())).is_err(), "{name}");
        }
        assert!(vault.put(&mine, "x", &Secret::new("a\r\nb".to_owned())).is_err());
        assert!(vault.remove(&mine, "model-key").unwrap() && !vault.remove(&mine, "model-key").unwrap());
    }
}
