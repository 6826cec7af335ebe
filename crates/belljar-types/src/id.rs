//! Typed ids. A sandbox id is not an execution id is not a process id; mixing two does not compile.
//!
//! A [`SandboxId`] stays with a sandbox for life; an [`ExecutionId`] names one run of it (a resume or a restart makes a new one), so that
//! whoever acts for an old run is found out.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

const RANDOM_ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// 20 characters of 5 bits: 100 bits that nobody guesses, fit for a host name.
fn random_text(first: char) -> String {
    let mut bytes = [0u8; 19];
    getrandom::fill(&mut bytes).expect("the kernel has randomness after boot");
    text_of(first, &bytes)
}

fn text_of(first: char, bytes: &[u8]) -> String {
    let mut text = String::with_capacity(20);
    text.push(first);
    text.extend(bytes.iter().map(|b| char::from(RANDOM_ALPHABET[usize::from(b & 31)])));
    text
}

fn check(kind: &str, text: &str, min: usize, max: usize, allowed: fn(u8) -> bool, alphabet: &str) -> Result<(), Invalid> {
    let begins_well = |part: &str| part.starts_with(|first: char| first.is_ascii_alphanumeric());
    let ok = (min..=max).contains(&text.len())
        && text.bytes().all(allowed)
        && text.splitn(2, ':').all(begins_well)
        && text.matches(':').count() < 2;
    if ok { Ok(()) } else { Err(Invalid::new(kind, format!("{min} to {max} characters of {alphabet}, the first a letter or digit"), text)) }
}

/// For names that are never part of a path or a command line: any allowed character may come first.
fn check_free(kind: &str, text: &str, min: usize, max: usize, allowed: fn(u8) -> bool, alphabet: &str) -> Result<(), Invalid> {
    let ok = (min..=max).contains(&text.len()) && text.bytes().all(allowed);
    if ok { Ok(()) } else { Err(Invalid::new(kind, format!("{min} to {max} characters of {alphabet}"), text)) }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $field:literal, $min:literal..=$max:literal, $allowed:expr, $alphabet:literal) => {
        id! { $(#[$doc])* $name, $field, $min..=$max, $allowed, $alphabet, check }
    };
    ($(#[$doc:meta])* $name:ident, $field:literal, $min:literal..=$max:literal, $allowed:expr, $alphabet:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                $check($field, text, $min, $max, $allowed, $alphabet)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(text: String) -> Result<Self, Invalid> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

fn host_label(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn label(b: u8) -> bool {
    host_label(b) || b == b'-'
}

fn name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

id! {
    /// One sandbox, from its creation to its end, through pauses and moves. Fit for a host name and a directory name.
    SandboxId, "sandbox id", 16..=32, host_label, "a-z and 0-9"
}
id! {
    /// One run of a sandbox: new at every start, resume and fork.
    ExecutionId, "execution id", 16..=32, host_label, "a-z and 0-9"
}
id! {
    /// A frozen state of a sandbox.
    SnapshotId, "snapshot id", 16..=32, host_label, "a-z and 0-9"
}
id! {
    /// A file that was taken out of a sandbox to be kept.
    ArtifactId, "artifact id", 16..=32, host_label, "a-z and 0-9"
}
id! {
    /// What people call a snapshot.
    SnapshotName, "snapshot name", 1..=64, name, "A-Z, a-z, 0-9, '-', '_' and '.'"
}
id! {
    /// Storage that outlives sandboxes. Fit for a directory name.
    VolumeId, "volume id", 16..=32, host_label, "a-z and 0-9"
}

fn volume_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

id! {
    /// What people call a volume.
    VolumeName, "volume name", 1..=63, volume_name, "A-Z, a-z, 0-9, '-' and '_'", check_free
}
id! {
    /// An address that is told what happens.
    WebhookId, "webhook id", 16..=32, host_label, "a-z and 0-9"
}
id! {
    /// One process in a sandbox, chosen by the client or given: starting the same id twice is one start.
    ProcessId, "process id", 1..=64, name, "A-Z, a-z, 0-9, '-', '_' and '.'"
}
fn tagged_name(b: u8) -> bool {
    name(b) || b == b':'
}

id! {
    /// The name of a template, with a tag behind a colon if it has one.
    TemplateName, "template name", 1..=128, tagged_name, "A-Z, a-z, 0-9, '-', '_', '.', and one ':' before a tag"
}

impl TemplateName {
    /// The name without its tag.
    pub fn untagged(&self) -> &str {
        self.0.split_once(':').map_or(self.as_str(), |(name, _)| name)
    }

    /// The tag, if it has one.
    pub fn tag(&self) -> Option<&str> {
        self.0.split_once(':').map(|(_, tag)| tag)
    }
}

id! {
    /// One making of a template from steps.
    BuildId, "build id", 36..=36, label, "a-f, 0-9 and '-'"
}

impl BuildId {
    /// A fresh id, in the form of a random UUID.
    pub fn random() -> Self {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).expect("the kernel has randomness after boot");
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let digits = crate::hex(&bytes);
        Self(format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]))
    }
}

id! {
    /// What files that a build copies are called: a digest that whoever sends them made of them.
    FilesHash, "files hash", 16..=128, name, "A-Z, a-z, 0-9, '-', '_' and '.'"
}

id! {
    /// A project: whose a sandbox is.
    ProjectId, "project", 1..=40, label, "a-z, 0-9 and '-'"
}
id! {
    /// An API key's public name.
    KeyId, "key id", 16..=32, host_label, "a-z and 0-9"
}

macro_rules! random {
    ($($name:ident => $first:literal),*) => {$(
        impl $name {
            /// A fresh id that was never used before.
            pub fn random() -> Self {
                Self(random_text($first))
            }
        }
    )*};
}
random!(SandboxId => 's', ExecutionId => 'e', SnapshotId => 'n', ArtifactId => 'a', VolumeId => 'v', ProcessId => 'p', KeyId => 'k', WebhookId => 'w');

impl ArtifactId {
    /// The id of what a digest names: the same wish, granted twice, is one artifact.
    pub fn of_digest(digest: &[u8; 32]) -> Self {
        Self(text_of('a', digest.get(..19).unwrap_or(digest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_parse_and_differ() {
        let (a, b) = (SandboxId::random(), SandboxId::random());
        assert_ne!(a, b);
        assert_eq!(a.as_str().parse::<SandboxId>().unwrap(), a);
        assert_eq!(a.as_str().len(), 20);
    }

    #[test]
    fn ids_that_could_leave_a_directory_are_refused() {
        for bad in ["", "..", "../../etc/passwd00", "-rf", "a/b", "a\0b", "A234567890123456789"] {
            assert!(bad.parse::<SandboxId>().is_err(), "{bad:?}");
        }
        for bad in ["", ".", "..", ".hidden", "-x", "a/b"] {
            assert!(bad.parse::<ProcessId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_template_may_have_one_tag() {
        for (text, untagged, tag) in [("base", "base", None), ("base:v1-2.3", "base", Some("v1-2.3"))] {
            let name: TemplateName = text.parse().unwrap();
            assert_eq!((name.untagged(), name.tag()), (untagged, tag));
        }
        for bad in ["base:", ":v1", "base:v1:v2", "base:-v", "base/v1"] {
            assert!(bad.parse::<TemplateName>().is_err(), "{bad:?}");
        }
        assert_ne!(BuildId::random(), BuildId::random());
        assert!(BuildId::random().as_str().parse::<BuildId>().is_ok());
    }

    #[test]
    fn refusals_name_the_field() {
        let error = "a b".parse::<ProcessId>().unwrap_err();
        assert!(error.to_string().starts_with("process id: expected 1 to 64 characters"), "{error}");
    }
}
