//! Directories that a layer needs but does not describe.
//!
//! Some builders write `tmp/file` into a layer without an entry for `tmp`. Unpacked alone, the layer must have such a directory; laid over
//! others, it would give everybody's `/tmp` plain attributes. The layer marks it, and what lower layers say is repeated on top.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use belljar_types::LayerDigest;
use rustix::fs::{AtFlags, Dir, FileType};

use super::attributes;
use crate::archive::tree::{Tree, open_directory};
use crate::canonical::is_implied;
use crate::merged::MergedView;
use crate::plant::Owned;
use crate::{ImageError, LayerStore};

impl LayerStore {
    /// The implied directories of these layers (lowest first) that a lower layer describes, with the attributes it gives them.
    pub(super) fn restored_directories(&self, layers: &[LayerDigest], view: &MergedView) -> Result<BTreeMap<Vec<u8>, Owned>, ImageError> {
        let failed = |source| ImageError::Finalise { source };
        let mut restored = BTreeMap::new();
        for digest in layers {
            // Most layers imply nothing, and need not be walked.
            if self.layer(digest)?.is_none_or(|info| info.implied_directories == 0) {
                continue;
            }
            let tree = Tree::open(&self.layer_directory(digest)).map_err(failed)?;
            let mut implied = Vec::new();
            collect(tree.root(), &mut Vec::new(), &mut implied).map_err(failed)?;
            for path in implied {
                if let Some(stat) = view.described_below(&path).map_err(failed)? {
                    restored.insert(path, attributes(&stat));
                }
            }
        }
        Ok(restored)
    }
}

fn collect(directory: BorrowedFd<'_>, path: &mut Vec<u8>, found: &mut Vec<Vec<u8>>) -> io::Result<()> {
    if is_implied(directory)? {
        found.push(path.clone());
    }
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            collect(open_directory(directory, name)?.as_fd(), path, found)?;
            path.truncate(length);
        }
    }
    Ok(())
}
