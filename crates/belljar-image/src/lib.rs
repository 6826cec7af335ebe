//! Root filesystems for sandboxes: content-addressed layers, and the ways to make them.
//!
//! Everything ends in a [`LayerStore`]: a Debian recipe, a tarball of a root filesystem, an OCI image from a directory, a
//! `docker save` file or a registry. Archives are hostile until unpacked: see [`Refusal`] for what is refused. All of it blocks but
//! [`Catalog`], which is what core asks, and none of it knows an engine.

mod agent;
mod archive;
mod canonical;
mod catalog;
mod digest;
mod error;
mod finalise;
mod merged;
mod oci;
mod plant;
mod progress;
mod recipe;
mod recognise;
mod registry;
mod store;
mod tarball;
mod template;

pub use archive::{ArchiveError, ArchiveForm, ArchiveLimits, Refusal};
pub use catalog::{Catalog, CatalogOptions};
pub use error::ImageError;
pub use oci::OciError;
pub use progress::{PlainProgress, Progress, ProgressSink, Silent};
pub use recipe::{Recipe, RecipeError, RecipeFile, build_recipe, ensure_recipe, recipe_text};
pub use registry::{PullOptions, Reference, RegistryCredentials, RegistryError};
pub use store::{LayerInfo, LayerStore, StoreError, pack_tree, unpack_tree};

/// Directories that every engine mounts over or the agent writes to, with their modes.
pub(crate) const MOUNT_POINTS: [(&str, u32); 6] =
    [("proc", 0o555), ("sys", 0o555), ("dev", 0o755), ("tmp", 0o1777), ("run", 0o755), (".belljar", 0o755)];
