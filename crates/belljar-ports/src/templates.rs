//! [`Templates`]: root filesystems by name, and the ways to make them.
//!
//! A name belongs to one project, or to the server and so to all (`owner: None`). Whoever looks a name up finds their own first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use async_trait::async_trait;
use belljar_types::{BuildId, BuildRecord, FilesHash, Invalid, LayerDigest, ProjectId, Template, TemplateName};
use bytes::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc;

/// Where a template comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateSource {
    /// A recipe, as TOML.
    Recipe(String),
    /// An archive on the host: a root filesystem tarball, an OCI layout as tar, or what `docker save` wrote, told apart by content.
    Archive(PathBuf),
    /// An image in a registry.
    Image(String),
}

/// An archive's bytes, in pieces, in order.
pub type FileStream = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// A digest of everything that decides what a step of a build writes: whose it is, the layers below, what processes get, and the step itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepKey(pub [u8; 32]);

/// What the maker of a template says while it works; safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildLine {
    /// The words.
    pub text: String,
}

/// A template and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTemplate {
    /// Its project; the server's own when unset.
    pub owner: Option<ProjectId>,
    /// What it is.
    pub template: Template,
    /// Bytes of its layers.
    pub bytes: u64,
}

/// What a clean-up removed or would remove.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// Layers that nothing refers to.
    pub layers: Vec<LayerDigest>,
    /// Their bytes.
    pub bytes: u64,
}

/// Why a template was not made, found or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The request is wrong; nothing was changed.
    #[error("refused the request")]
    Invalid(#[from] Invalid),
    /// It could not be made. What was there before is still there.
    #[error("make template {name}: {detail}")]
    Build {
        /// Which.
        name: TemplateName,
        /// What went wrong, with causes, safe to print.
        detail: String,
    },
    /// The disk has no room.
    #[error("the host is out of disk space for templates and their layers")]
    HostFull,
    /// The files of a template could not be read or changed.
    #[error("{operation}")]
    Storage {
        /// What was being attempted.
        operation: &'static str,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The templates of a host.
#[async_trait]
pub trait Templates: Send + Sync {
    /// The template of that name which `project` sees: its own, or else the server's.
    async fn find(&self, project: &ProjectId, name: &TemplateName) -> Result<Option<Template>, TemplateError>;

    /// All that `project` sees, by name.
    async fn list(&self, project: &ProjectId) -> Result<Vec<OwnedTemplate>, TemplateError>;

    /// Makes a template, replacing the owner's one of that name when done. Says what it does as it goes; a slow listener slows nothing.
    async fn make(
        &self,
        owner: Option<&ProjectId>,
        name: &TemplateName,
        source: TemplateSource,
        lines: mpsc::Sender<BuildLine>,
    ) -> Result<Template, TemplateError>;

    /// Writes an owner's template over the one of its name. All its layers must be there.
    async fn put(&self, owner: Option<&ProjectId>, template: &Template) -> Result<(), TemplateError>;

    /// The layer that this step made before, if it is still there.
    async fn step(&self, key: &StepKey) -> Result<Option<LayerDigest>, TemplateError>;

    /// Makes a layer of what a sandbox has written ([`crate::Runtime::written`]) and remembers it by the step. What the host itself writes into every
    /// sandbox is left out.
    async fn keep_step(&self, key: &StepKey, written: &Path, origin: &str) -> Result<LayerDigest, TemplateError>;

    /// Keeps an archive of files for builds of a project, whole or not at all. It is not looked into: that is for a sandbox to do.
    async fn put_files(&self, project: &ProjectId, hash: &FilesHash, content: FileStream) -> Result<(), TemplateError>;

    /// Whether there is such an archive.
    async fn has_files(&self, project: &ProjectId, hash: &FilesHash) -> Result<bool, TemplateError>;

    /// Such an archive's bytes, if there is one.
    async fn files(&self, project: &ProjectId, hash: &FilesHash) -> Result<Option<FileStream>, TemplateError>;

    /// Writes down how a build stands.
    async fn put_build(&self, build: &BuildRecord) -> Result<(), TemplateError>;

    /// How a build stands, as it was last written down.
    async fn build(&self, id: &BuildId) -> Result<Option<BuildRecord>, TemplateError>;

    /// All builds that are remembered. Those that ended long ago are forgotten.
    async fn builds(&self) -> Result<Vec<BuildRecord>, TemplateError>;

    /// Removes an owner's template; its layers stay until a sweep. Says whether there was one.
    async fn remove(&self, owner: Option<&ProjectId>, name: &TemplateName) -> Result<bool, TemplateError>;

    /// Removes layers that no template and nothing in `keep` refers to; or only says which.
    async fn sweep(&self, keep: &BTreeSet<LayerDigest>, dry_run: bool) -> Result<Swept, TemplateError>;
}
