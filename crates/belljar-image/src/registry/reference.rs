//! The name of an image in a registry: `host[:port]/repository[:tag][@sha256:digest]`.
//!
//! The host is always written out. A name without one would need a registry that everybody is sent to, and that choice is the operator's.

use std::fmt;
use std::str::FromStr;

use belljar_types::Invalid;

use crate::oci::BlobDigest;

const FORM: &str = "host[:port]/repository[:tag][@sha256:digest]";

/// An image in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub(super) host: String,
    pub(super) repository: String,
    pub(super) tag: Option<String>,
    pub(super) digest: Option<BlobDigest>,
}

impl Reference {
    /// What to ask the registry for: the digest where there is one, since a tag can move.
    pub(super) fn version(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// Whether the registry is this machine itself, which needs no encryption to be reached safely.
    pub(super) fn is_loopback(&self) -> bool {
        let name = match self.host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => self.host.split(':').next().unwrap_or_default(),
        };
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Reference {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("image reference", FORM, text);
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.parse().map_err(|_| invalid())?)),
            None => (text, None),
        };
        let (host, path) = name.split_once('/').ok_or_else(invalid)?;
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (path, None),
        };
        let is_host = (host.contains(['.', ':']) || host == "localhost")
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b))
            && !host.starts_with(['-', '.', ':']);
        let is_part = |part: &str| {
            part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
                && part.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        };
        let is_tag = |tag: &String| {
            (1..=128).contains(&tag.len())
                && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
                && !tag.starts_with(['.', '-'])
        };
        if !is_host || text.len() > 512 || !repository.split('/').all(is_part) || !tag.as_ref().is_none_or(is_tag) {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), repository: repository.to_owned(), tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written_back() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for text in ["r.invalid/a/b:1.0", "localhost/a", "localhost:5000/a_b/c-d", "[::1]:5000/x:T", &format!("r.invalid/a:t@{digest}")] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), text);
        }
        let by_digest: Reference = format!("r.invalid/a:t@{digest}").parse().unwrap();
        assert_eq!(by_digest.version(), digest);
        assert_eq!("r.invalid/a".parse::<Reference>().unwrap().version(), "latest");
    }

    #[test]
    fn what_could_reach_elsewhere_is_refused() {
        for bad in [
            "debian",
            "library/debian",
            "r.invalid/../x",
            "r.invalid/a?b",
            "r.invalid/A",
            "r.invalid/a:..",
            "r.invalid/a@sha256:12",
            "u@r.invalid/a",
            "r.invalid/",
            "-x.y/a",
            "r.invalid/a:b c",
        ] {
            let error = bad.parse::<Reference>().unwrap_err();
            assert!(error.to_string().starts_with("image reference: expected host"), "{bad}: {error}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (host, expected) in
            [("localhost:1", true), ("127.3.2.1:1", true), ("[::1]:1", true), ("localhost.evil.invalid", false), ("10.0.0.1", false)]
        {
            assert_eq!(format!("{host}/a").parse::<Reference>().unwrap().is_loopback(), expected, "{host}");
        }
    }
}
