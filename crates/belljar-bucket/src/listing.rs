//! What is in a directory, as it was when it was opened: the bucket's keys, the directories that are there only here, and files that were made and
//! not sent yet.

use std::collections::BTreeMap;

use fuser::Errno;
use object_store::path::Path;

use crate::nodes::Kind;
use crate::store::Store;

/// More than this is refused and not cut off: a program that lists a directory believes what it is told.
const ENTRIES_MAX: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Store {
    pub(crate) async fn list(&self, directory: &Path) -> Result<Vec<Entry>, Errno> {
        let prefix = (!directory.is_root()).then_some(directory);
        let found = self.bucket.list_with_delimiter(prefix).await.map_err(|error| crate::error::errno("list", directory, &error))?;
        if found.objects.len() + found.common_prefixes.len() > ENTRIES_MAX {
            tracing::warn!(key = %directory.as_ref().escape_debug(), most = ENTRIES_MAX, "a directory of a bucket has too many entries");
            return Err(Errno::EOVERFLOW);
        }
        let mut names = BTreeMap::new();
        let objects = found.objects.into_iter().map(|object| (object.location, Kind::File));
        let here = self.only_here(directory);
        // Directories last: where a bucket has both a key and keys below it, the ones below could not be reached otherwise.
        for (path, kind) in objects.chain(here).chain(found.common_prefixes.into_iter().map(|path| (path, Kind::Directory))) {
            // An empty name is the mark that some tools leave for the directory itself.
            if let Some(name) = path.filename().filter(|name| !name.is_empty() && path != *directory) {
                names.insert(name.to_owned(), kind);
            }
        }
        Ok(names.into_iter().map(|(name, kind)| Entry { name, kind }).collect())
    }
}
