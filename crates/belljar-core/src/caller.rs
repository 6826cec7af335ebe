//! Who asks, and what they may. A key's secret is 160 random bits; only its SHA-256 is kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use belljar_ports::{Store, StoreError};
use belljar_types::{ApiKey, KeyHash, KeyId, ProjectId, Scope, Secret, Timestamp, hex};
use sha2::{Digest, Sha256};

use crate::CoreError;

/// Whoever presented a valid key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Which key.
    pub key: KeyId,
    /// For whom it acts.
    pub project: ProjectId,
    /// What it may do.
    pub scopes: BTreeSet<Scope>,
}

impl Caller {
    /// Whether the key has a scope; `admin` includes all others.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// Refuses a key that lacks a scope.
    pub fn require(&self, scope: Scope) -> Result<(), CoreError> {
        if self.may(scope) { Ok(()) } else { Err(CoreError::Forbidden { needed: scope }) }
    }
}

/// Why nobody was recognised.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// The text is no key of this server.
    #[error("the key is not valid here: it is mistyped, was removed, or belongs to another server")]
    Unknown,
    /// It was one.
    #[error("the key has expired")]
    Expired,
    /// The store could not be asked.
    #[error("look up the key")]
    Store(#[from] StoreError),
}

/// A key just made. The secret is shown once and kept nowhere.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// What is kept.
    pub key: ApiKey,
    /// What the caller presents from now on.
    pub secret: Secret<String>,
}

/// Digits of a secret: 160 bits.
const DIGITS: usize = 40;
/// Known keys are remembered up to here; a flood of wrong ones costs a look-up each, not memory.
const MAX_REMEMBERED: usize = 10_000;

/// The text of a key that nobody has yet.
pub fn fresh_secret() -> Secret<String> {
    let mut bytes = [0u8; DIGITS / 2];
    getrandom::fill(&mut bytes).expect("the kernel has randomness after boot");
    Secret::new(format!("bj_{}", hex(&bytes)))
}

/// The hash of a key's digits, or `None` if the text does not have the form of a key. The prefix says which SDK it is written for and is
/// no part of the secret.
pub(crate) fn hash(presented: &str) -> Option<KeyHash> {
    let digits = presented.strip_prefix("bj_").or_else(|| presented.strip_prefix("e2b_"))?;
    let well_formed = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    well_formed.then(|| KeyHash(Sha256::digest(digits.as_bytes()).into()))
}

/// Recognises keys. Those in use are remembered, so that a request costs no look-up; removing one forgets it.
#[derive(Default)]
pub(crate) struct Keys {
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    keys: HashMap<KeyHash, ApiKey>,
    /// Counts removals: a key that was looked up before one is not remembered after it.
    removals: u64,
}

impl Keys {
    pub(crate) async fn recognise(&self, store: &dyn Store, presented: &str) -> Result<Caller, Denied> {
        let hash = hash(presented).ok_or(Denied::Unknown)?;
        let (remembered, removals) = {
            let memory = self.lock();
            (memory.keys.get(&hash).cloned(), memory.removals)
        };
        let key = match remembered {
            Some(key) => key,
            None => {
                let key = store.key_by_hash(&hash).await?.ok_or(Denied::Unknown)?;
                self.remember(hash, &key, removals);
                key
            }
        };
        if key.expires_at.is_some_and(|at| at <= Timestamp::now()) {
            return Err(Denied::Expired);
        }
        Ok(Caller { key: key.id, project: key.project, scopes: key.scopes })
    }

    /// To be called after a key was removed from the store.
    pub(crate) fn forget_all(&self) {
        let mut memory = self.lock();
        memory.keys.clear();
        memory.removals += 1;
    }

    fn remember(&self, hash: KeyHash, key: &ApiKey, removals: u64) {
        let mut memory = self.lock();
        if memory.removals != removals {
            return;
        }
        if memory.keys.len() >= MAX_REMEMBERED {
            memory.keys.clear();
        }
        memory.keys.insert(hash, key.clone());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_digits_whatever_its_prefix() {
        let secret = fresh_secret();
        let digits = secret.reveal().strip_prefix("bj_").unwrap();
        assert_eq!(hash(secret.reveal()), hash(&format!("e2b_{digits}")));
        assert!(hash(secret.reveal()).is_some());
        for wrong in ["", "bj_", digits, "bj_123", &format!("bj_{}", digits.to_uppercase().replace(char::is_numeric, "G"))] {
            assert_eq!(hash(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn admin_includes_every_scope_and_others_only_themselves() {
        let caller =
            |scopes: &[Scope]| Caller { key: KeyId::random(), project: "p".parse().unwrap(), scopes: scopes.iter().copied().collect() };
        assert!(Scope::ALL.iter().all(|scope| caller(&[Scope::Admin]).may(*scope)));
        assert!(caller(&[Scope::Read]).require(Scope::Use).is_err());
    }
}
