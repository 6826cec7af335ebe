//! Secrets on disk, sealed with AES-256-GCM under a key from a file of its own. What is sealed names its project and itself, so that no file can
//! stand in for another. Values leave this module as [`Secret`] and are opened when a request needs them, not before.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use belljar_linux::private_file;
use belljar_ports::{Before, SecretInfo, Secrets, SecretsError};
use belljar_types::{Invalid, ProjectId, Secret, Timestamp, hex};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::secrets::SecretKeeper;

const KEY: usize = 32;
const LONGEST: usize = 8 << 10;
const LONGEST_NAME: usize = 128;
/// What a secret's owner may say about it.
const MOST_METADATA: usize = 32;
const LARGEST_METADATA: usize = 8 << 10;

/// All secrets of a server.
pub struct Vault {
    directory: PathBuf,
    key: LessSafeKey,
    /// Held by whoever changes something: what is read before is what is replaced.
    changing: Mutex<()>,
}

/// What is sealed.
#[derive(serde::Serialize, serde::Deserialize)]
struct Kept {
    value: String,
    info: SecretInfo,
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
        Ok(Self { directory: directory.to_owned(), key: LessSafeKey::new(key), changing: Mutex::default() })
    }

    fn write(&self, project: &ProjectId, name: &str, kept: &Kept) -> io::Result<()> {
        let place = self.directory.join(project.as_str());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let mut sealed = serde_json::to_vec(kept).map_err(io::Error::other)?;
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), about(project, name), &mut sealed)
            .map_err(|_| io::Error::other("the secret cannot be sealed"))?;
        private_file::write_whole(&place.join(name), &[&nonce[..], &sealed].concat())
    }

    /// `None` if there is none, or one that does not open.
    fn read(&self, project: &ProjectId, name: &str) -> Option<Kept> {
        check_name(name).ok()?;
        let mut bytes = std::fs::read(self.directory.join(project.as_str()).join(name)).ok()?;
        let nonce: [u8; NONCE_LEN] = *bytes.first_chunk()?;
        let opened = self.key.open_within(Nonce::assume_unique_for_key(nonce), about(project, name), &mut bytes, NONCE_LEN..).ok()?;
        serde_json::from_slice(opened).ok()
    }

    fn change(&self) -> std::sync::MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_all(&self, project: &ProjectId) -> Result<Vec<Kept>, SecretsError> {
        let entries = match std::fs::read_dir(self.directory.join(project.as_str())) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(disk("read", project, source)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| self.read(project, &name)).collect())
    }
}

fn about(project: &ProjectId, name: &str) -> Aad<String> {
    Aad::from(format!("belljar secret 2: {project}/{name}"))
}

impl Secrets for Vault {
    fn put(
        &self,
        project: &ProjectId,
        name: &str,
        value: &Secret<String>,
        metadata: Option<BTreeMap<String, String>>,
        before: Before,
    ) -> Result<SecretInfo, SecretsError> {
        check_name(name)?;
        check_value(value.reveal())?;
        metadata.as_ref().map_or(Ok(()), check_metadata)?;
        let _alone = self.change();
        let now = Timestamp::now();
        let info = match (self.read(project, name), before) {
            (Some(_), Before::Nothing) => return Err(SecretsError::Exists { name: name.to_owned() }),
            (None, Before::Older) => return Err(SecretsError::Missing { name: name.to_owned() }),
            (Some(Kept { info, .. }), _) => {
                SecretInfo { version: info.version + 1, metadata: metadata.unwrap_or(info.metadata), updated_at: now, ..info }
            }
            (None, _) => {
                let metadata = metadata.unwrap_or_default();
                SecretInfo { id: fresh_id(), name: name.to_owned(), version: 1, metadata, created_at: now, updated_at: now }
            }
        };
        let kept = Kept { value: value.reveal().clone(), info };
        self.write(project, name, &kept).map_err(|source| disk("write", project, source))?;
        Ok(kept.info)
    }

    fn all(&self, project: &ProjectId) -> Result<Vec<SecretInfo>, SecretsError> {
        let mut found: Vec<SecretInfo> = self.read_all(project)?.into_iter().map(|kept| kept.info).collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn values(&self, project: &ProjectId) -> Result<Vec<Secret<String>>, SecretsError> {
        Ok(self.read_all(project)?.into_iter().map(|kept| Secret::new(kept.value)).collect())
    }

    fn remove(&self, project: &ProjectId, name: &str) -> Result<(), SecretsError> {
        check_name(name)?;
        let _alone = self.change();
        match std::fs::remove_file(self.directory.join(project.as_str()).join(name)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SecretsError::Missing { name: name.to_owned() }),
            Err(source) => Err(disk("remove", project, source)),
        }
    }

    fn forget(&self, project: &ProjectId) -> Result<(), SecretsError> {
        let _alone = self.change();
        match std::fs::remove_dir_all(self.directory.join(project.as_str())) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(disk("remove", project, source)),
            _ => Ok(()),
        }
    }
}

impl SecretKeeper for Vault {
    fn reveal(&self, project: &ProjectId, name: &str) -> Option<Secret<String>> {
        self.read(project, name).map(|kept| Secret::new(kept.value))
    }
}

fn disk(operation: &'static str, project: &ProjectId, source: io::Error) -> SecretsError {
    SecretsError::Disk { operation, project: project.clone(), source }
}

fn fresh_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness there would be no key either.
    let _ = getrandom::fill(&mut bytes);
    format!("sec_{}", hex(&bytes))
}

fn check_name(name: &str) -> Result<(), Invalid> {
    let plain = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if plain && !name.starts_with("sec_") {
        return Ok(());
    }
    Err(Invalid::new("name", format!("1 to {LONGEST_NAME} letters, digits, - and _, not beginning with sec_"), name))
}

/// What was given is never told.
fn check_value(value: &str) -> Result<(), Invalid> {
    if (1..=LONGEST).contains(&value.len()) && value.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Ok(());
    }
    let expected = format!("1 to {LONGEST} visible ASCII characters, because it is sent in a header");
    Err(Invalid::new("value", expected, format!("{} bytes", value.len())))
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), Invalid> {
    let bytes: usize = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    let each = metadata.iter().all(|(key, value)| (1..=128).contains(&key.len()) && value.len() <= 1024);
    if metadata.len() <= MOST_METADATA && bytes <= LARGEST_METADATA && each {
        return Ok(());
    }
    let expected = format!("at most {MOST_METADATA} entries of 128 and 1024 bytes, {LARGEST_METADATA} in all");
    Err(Invalid::new("metadata", expected, format!("{} entries, {bytes} bytes", metadata.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(vault: &Vault, project: &ProjectId, name: &str, value: &str) -> Result<SecretInfo, SecretsError> {
        vault.put(project, name, &Secret::new(value.to_owned()), None, Before::Either)
    }

    #[test]
    fn a_secret_is_sealed_on_disk_and_cannot_stand_in_for_another() {
        let place = tempfile::tempdir().unwrap();
        let (directory, key) = (place.path().join("secrets"), place.path().join("key"));
        let (mine, other): (ProjectId, ProjectId) = ("mine".parse().unwrap(), "other".parse().unwrap());
        let vault = Vault::open(&directory, &key).unwrap();
        put(&vault, &mine, "model-key", "s3cret-value").unwrap();
        assert_eq!(vault.reveal(&mine, "model-key").unwrap().reveal(), "s3cret-value");
        assert_eq!(vault.all(&mine).unwrap().len(), 1);
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
        for name in ["", "../x", "a/b", "a.b", "sec_x"] {
            assert!(put(&vault, &mine, name, "x").is_err(), "{name}");
        }
        let told = put(&vault, &mine, "x", "hidden\r\nb").unwrap_err().to_string();
        assert!(!told.contains("hidden"), "{told}");
    }

    #[test]
    fn a_new_value_keeps_the_rest_and_what_is_forgotten_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let vault = Vault::open(&place.path().join("secrets"), &place.path().join("key")).unwrap();
        let mine: ProjectId = "mine".parse().unwrap();
        let value = |text: &str| Secret::new(text.to_owned());
        let words = BTreeMap::from([("env".to_owned(), "test".to_owned())]);
        let first = vault.put(&mine, "a", &value("one"), Some(words.clone()), Before::Nothing).unwrap();
        assert!(matches!(vault.put(&mine, "a", &value("x"), None, Before::Nothing), Err(SecretsError::Exists { .. })));
        assert!(matches!(vault.put(&mine, "b", &value("x"), None, Before::Older), Err(SecretsError::Missing { .. })));
        let second = vault.put(&mine, "a", &value("two"), None, Before::Older).unwrap();
        assert_eq!((second.id, second.version, second.metadata), (first.id, 2, words));
        assert_eq!(vault.reveal(&mine, "a").unwrap().reveal(), "two");
        vault.remove(&mine, "a").unwrap();
        assert!(matches!(vault.remove(&mine, "a"), Err(SecretsError::Missing { .. })));
        put(&vault, &mine, "c", "x").unwrap();
        vault.forget(&mine).unwrap();
        vault.forget(&mine).unwrap();
        assert!(vault.all(&mine).unwrap().is_empty() && vault.reveal(&mine, "c").is_none());
    }
}
