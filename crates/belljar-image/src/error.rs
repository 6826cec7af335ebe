//! One error for whoever makes templates; each part's own errors are inside it.

use std::io;
use std::path::PathBuf;

use crate::{ArchiveError, OciError, RecipeError, RegistryError, StoreError};

/// Why a layer or template could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An archive was refused or could not be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A recipe could not be built.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// An image was refused or could not be read.
    #[error(transparent)]
    Oci(#[from] OciError),
    /// An image could not be pulled.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// An image asks for something that cannot be given.
    #[error("the image is not usable: {0}")]
    Wish(#[from] belljar_types::Invalid),
    /// Accounts and mount points could not be added to an image.
    #[error("cannot add accounts and mount points to the image")]
    Finalise {
        /// What the kernel said, or what is odd about the image.
        #[source]
        source: io::Error,
    },
    /// The agent's layer could not be made.
    #[error("cannot make the agent's layer from {}", path.display())]
    AgentLayer {
        /// The agent's binary.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}
