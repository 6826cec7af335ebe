//! The server's signing key: 32 random bytes that only root can read, made once. Whoever has the public half, written down elsewhere, can tell
//! whether a checkpoint is this server's.

use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use belljar_linux::private_file;
use belljar_ports::AuditError;
use belljar_types::hex;
use ring::signature::{Ed25519KeyPair, KeyPair};

const SEED_BYTES: usize = 32;

pub(crate) struct SigningKey {
    pair: Ed25519KeyPair,
    public: String,
}

impl SigningKey {
    /// The key at this path; a new one if there is none.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, AuditError> {
        let seed = match read(path)? {
            Some(seed) => seed,
            None => make(path)?,
        };
        let unusable = |reason| AuditError::Key { path: path.to_owned(), reason };
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| unusable("it is not an Ed25519 seed of 32 bytes"))?;
        let public = hex(pair.public_key().as_ref());
        Ok(Self { pair, public })
    }

    pub(crate) fn sign(&self, message: &[u8]) -> String {
        hex(self.pair.sign(message).as_ref())
    }

    pub(crate) fn public(&self) -> &str {
        &self.public
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, AuditError> {
    let failed = |source| AuditError::Disk { operation: "read the signing key of", path: path.to_owned(), source };
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(AuditError::Key { path: path.to_owned(), reason: "others than its owner may read it: chmod 600, or make a new one" });
    }
    let mut seed = Vec::new();
    (&mut file).take(SEED_BYTES as u64 + 1).read_to_end(&mut seed).map_err(failed)?;
    Ok(Some(seed))
}

fn make(path: &Path) -> Result<Vec<u8>, AuditError> {
    let failed = |source| AuditError::Disk { operation: "make the signing key of", path: path.to_owned(), source };
    let mut seed = vec![0_u8; SEED_BYTES];
    getrandom::fill(&mut seed).map_err(|_| AuditError::Key { path: path.to_owned(), reason: "the kernel gave no randomness" })?;
    private_file::write_whole(path, &seed).map_err(failed)?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing-key");
        let first = SigningKey::open_or_make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = SigningKey::open_or_make(&path).unwrap();
        assert_eq!(first.public(), again.public());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(SigningKey::open_or_make(&path), Err(AuditError::Key { .. })));
    }
}
