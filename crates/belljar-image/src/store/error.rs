//! What can go wrong with the store itself, apart from what it is given.

use std::io;
use std::path::PathBuf;

use belljar_types::{LayerDigest, TemplateName};

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store's directories could not be made or swept.
    #[error("cannot open the layer store in {}", path.display())]
    Open {
        /// The pool.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A place for a new layer could not be made.
    #[error("cannot make a place for a new layer in {}", path.display())]
    Stage {
        /// The staging directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A new layer could not be hashed, written out or put into its place.
    #[error("cannot put a new layer into {}", path.display())]
    Seal {
        /// The directory of layers.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A layer or its description could not be read.
    #[error("cannot read layer {digest}")]
    Read {
        /// Which.
        digest: LayerDigest,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The layers could not be listed.
    #[error("cannot list {}", path.display())]
    List {
        /// Which directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A tree could not be copied in.
    #[error("cannot copy {} into the layer store", path.display())]
    Copy {
        /// The tree.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// What is remembered of a step or a build could not be read or written.
    #[error("cannot use {}", path.display())]
    Step {
        /// The file.
        path: PathBuf,
        /// What the kernel said, or what is wrong with it.
        #[source]
        source: io::Error,
    },
    /// Files for a build could not be received or read.
    #[error("cannot keep files for a build in {}", path.display())]
    Upload {
        /// Where.
        path: PathBuf,
        /// What the kernel said, or which limit was reached.
        #[source]
        source: io::Error,
    },
    /// A layer that a template names is not there.
    #[error("there is no layer {0} in the store")]
    Missing(LayerDigest),
    /// The content is not what its name says.
    #[error("layer {digest} was changed on disk: its content now hashes to {found}; remove the templates that use it and make them again")]
    Changed {
        /// The name.
        digest: LayerDigest,
        /// The content.
        found: LayerDigest,
    },
    /// A template still needs the layer.
    #[error("layer {digest} is used by template {template}; remove that first")]
    InUse {
        /// The layer.
        digest: LayerDigest,
        /// Who uses it.
        template: TemplateName,
    },
    /// A layer could not be removed.
    #[error("cannot remove layer {digest}")]
    Remove {
        /// Which.
        digest: LayerDigest,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A template's file could not be read, so that nobody knows which layers it needs.
    #[error("cannot read the template file {}; mend or remove it", path.display())]
    TemplateFile {
        /// The file.
        path: PathBuf,
        /// What the kernel or the parser said.
        #[source]
        source: io::Error,
    },
    /// Layers that nothing refers to could not be removed.
    #[error("cannot sweep the layers in {}", path.display())]
    Sweep {
        /// The directory of layers.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A template's file could not be read or written.
    #[error("cannot {action} template {name}")]
    Template {
        /// What was attempted.
        action: &'static str,
        /// Which.
        name: TemplateName,
        /// What the kernel or the parser said.
        #[source]
        source: io::Error,
    },
}
