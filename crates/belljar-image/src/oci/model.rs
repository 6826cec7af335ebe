//! The documents of an OCI image, as far as they are needed, and docker's own variants of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::OciError;
use crate::finalise::ImageWishes;

/// `sha256:` and 64 lower-case hexadecimal digits. Safe as a file name and in a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BlobDigest(String);

impl BlobDigest {
    /// Names a hash that was computed here.
    pub(crate) fn of_hex(hex: &str) -> Self {
        Self(hex.to_owned())
    }

    pub(crate) fn hex(&self) -> &str {
        &self.0
    }

    /// Where a layout keeps it.
    pub(crate) fn path(&self) -> String {
        format!("blobs/sha256/{}", self.0)
    }
}

impl FromStr for BlobDigest {
    type Err = OciError;
    fn from_str(text: &str) -> Result<Self, OciError> {
        let hex = text.strip_prefix("sha256:").filter(|hex| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
        hex.map(|hex| Self(hex.to_owned())).ok_or_else(|| OciError::DigestForm(text.chars().take(100).collect()))
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// A reference to content.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: String,
    pub(crate) size: u64,
    pub(crate) platform: Option<Platform>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// What an image runs on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Platform {
    pub(crate) os: String,
    pub(crate) architecture: String,
}

impl Platform {
    /// This machine.
    pub(crate) fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { os: "linux".into(), architecture: architecture.into() }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// An image index or an image manifest: a registry may answer with either.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum IndexOrManifest {
    Manifest(Manifest),
    Index(Index),
}

/// A list of images.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Index {
    pub(crate) manifests: Vec<Descriptor>,
}

/// One image.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// An image in the output of `docker save`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SavedImage {
    pub(crate) config: String,
    #[serde(default)]
    pub(crate) repo_tags: Option<Vec<String>>,
    pub(crate) layers: Vec<String>,
}

/// An image's configuration.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ImageConfig {
    #[serde(flatten)]
    pub(crate) platform: Platform,
    #[serde(default)]
    pub(crate) config: Option<RunConfig>,
    pub(crate) rootfs: RootFs,
}

/// How its processes run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct RunConfig {
    pub(crate) env: Option<Vec<String>>,
    pub(crate) user: Option<String>,
    pub(crate) working_dir: Option<String>,
}

/// The digests of its layers, unpacked.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RootFs {
    pub(crate) diff_ids: Vec<String>,
}

impl RunConfig {
    /// In Belljar's words. An image that names no user leaves the choice to us: processes run as `user`.
    pub(crate) fn wishes(self) -> ImageWishes {
        let is_set = |text: &String| !text.is_empty();
        let pairs = self.env.unwrap_or_default();
        let env = pairs.iter().filter_map(|pair| pair.split_once('=')).filter(|(name, _)| !name.is_empty());
        ImageWishes {
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            user: self.user.filter(is_set),
            workdir: self.working_dir.filter(is_set),
        }
    }
}
