//! Templates: a name for layers and defaults, one small file each, replaced as a whole.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use belljar_types::{LayerDigest, Template, TemplateName};
use rustix::fs::{FlockOperation, flock};

use super::{LayerStore, StoreError, staging};

impl LayerStore {
    /// Writes a template over the one of its name, if there is one. All its layers must be there.
    pub fn put_template(&self, template: &Template) -> Result<(), StoreError> {
        let failed = |source| StoreError::Template { action: "write", name: template.name.clone(), source };
        let _guard = self.lock_references().map_err(failed)?;
        for digest in &template.layers {
            if self.layer(digest)?.is_none() {
                return Err(StoreError::Missing(digest.clone()));
            }
        }
        let text = serde_json::to_vec_pretty(template).map_err(|e| failed(e.into()))?;
        self.replace_file(&self.template_file(&template.name), &text).map_err(failed)
    }

    /// The template of this name, if there is one.
    pub fn template(&self, name: &TemplateName) -> Result<Option<Template>, StoreError> {
        let failed = |source| StoreError::Template { action: "read", name: name.clone(), source };
        match fs::read(self.template_file(name)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|e| failed(e.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// All templates, by name.
    pub fn templates(&self) -> Result<Vec<Template>, StoreError> {
        let directory = self.templates_directory();
        let failed = |source| StoreError::List { path: directory.clone(), source };
        let mut names: Vec<TemplateName> = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let file_name = entry.map_err(failed)?.file_name();
            let name = file_name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(|name| name.parse().ok());
            names.extend(name);
        }
        names.sort_unstable();
        let found = names.iter().map(|name| self.template(name));
        found.filter_map(Result::transpose).collect()
    }

    /// Forgets a template; its layers stay until they are removed. Says whether it was there.
    pub fn remove_template(&self, name: &TemplateName) -> Result<bool, StoreError> {
        match fs::remove_file(self.template_file(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(StoreError::Template { action: "remove", name: name.clone(), source }),
        }
    }

    /// Which template uses a layer.
    pub(super) fn user_of(&self, digest: &LayerDigest) -> Result<Option<TemplateName>, StoreError> {
        Ok(self.templates()?.into_iter().find(|template| template.layers.contains(digest)).map(|template| template.name))
    }

    /// Held while a template is written or a layer removed, so that neither overtakes the other.
    pub(super) fn lock_references(&self) -> io::Result<fs::File> {
        let directory = fs::File::open(self.templates_directory())?;
        flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    }

    /// Writes a file beside its place and renames it over: a reader sees the old one or the new one, after any crash too.
    pub(crate) fn replace_file(&self, path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
        let staged = staging::Staged::new(&self.staging_directory())?;
        let temporary = staged.path().join("file");
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
    }

    fn template_file(&self, name: &TemplateName) -> PathBuf {
        self.templates_directory().join(format!("{name}.json"))
    }
}
