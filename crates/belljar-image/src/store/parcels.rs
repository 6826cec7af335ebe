//! Layers that travel: packed as they lie on disk, and taken in only if they are what their name says.

use std::io::{self, Read, Write};
use std::path::Path;

use belljar_types::LayerDigest;

use super::{LayerInfo, LayerStore, StoreError};
use crate::ImageError;
use crate::archive::pack::pack;
use crate::archive::tree::Tree;
use crate::archive::{ArchiveError, ArchiveForm, ArchiveLimits, unpack_plain};

impl LayerStore {
    /// Packs a layer.
    pub fn send_layer(&self, digest: &LayerDigest, out: impl Write) -> Result<(), StoreError> {
        if self.layer(digest)?.is_none() {
            return Err(StoreError::Missing(digest.clone()));
        }
        pack_tree(&self.layer_directory(digest), out).map_err(|source| StoreError::Read { digest: digest.clone(), source })
    }

    /// Takes in a layer that was packed elsewhere, if it is the one of this name; otherwise nothing remains. Nobody else may use what it
    /// says it is before `input` has ended well.
    pub fn receive_layer(&self, digest: &LayerDigest, input: impl Read, limits: ArchiveLimits) -> Result<LayerInfo, ImageError> {
        self.make_layer(&format!("taken in with a snapshot, as {digest}"), |tree, _| {
            unpack_plain(input, ArchiveForm::Overlay, limits, tree)?;
            Ok(())
        })
        .and_then(|made| {
            if made.digest == *digest {
                return Ok(made);
            }
            // It is a layer all the same, whole and by its right name, and harms nobody; the next sweep removes it.
            Err(StoreError::Changed { digest: digest.clone(), found: made.digest }.into())
        })
    }
}

/// Packs a tree in overlay form.
pub fn pack_tree(directory: &Path, out: impl Write) -> io::Result<()> {
    pack(Tree::open(directory)?.root(), out)
}

/// Unpacks what [`pack_tree`] made, or a stranger, into an empty directory, and never leaves it.
pub fn unpack_tree(directory: &Path, input: impl Read, limits: ArchiveLimits) -> Result<(), ArchiveError> {
    let tree = Tree::open(directory).map_err(|source| ArchiveError::Unpack { entry: b".".to_vec(), source })?;
    unpack_plain(input, ArchiveForm::Overlay, limits, tree)
}
