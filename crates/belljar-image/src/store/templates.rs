//! Templates: a name for layers and defaults, one small file each, replaced as a whole. The server's lie beside each other, a
//! project's in a directory of its own; no project's name ends in `.json`, so neither can be taken for the other.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

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
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.owned_directory()).map_err(failed)?;
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

    /// All templates of the owner, by name.
    pub fn templates(&self) -> Result<Vec<Template>, StoreError> {
        let found = self.template_names()?;
        found.iter().map(|name| self.template(name)).filter_map(Result::transpose).collect()
    }

    /// The names of the owner's templates, in order.
    pub(crate) fn template_names(&self) -> Result<Vec<TemplateName>, StoreError> {
        let directory = self.owned_directory();
        let mut names: Vec<TemplateName> = Vec::new();
        for entry in list(&directory)? {
            let file_name = entry.file_name();
            let name = file_name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(|name| name.parse().ok());
            names.extend(name);
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The templates of all owners. One that cannot be read is an error, because nobody knows what it needs.
    pub(super) fn templates_of_all(&self) -> Result<Vec<Template>, StoreError> {
        let mut found = Vec::new();
        let mut directories = vec![self.templates_directory()];
        while let Some(directory) = directories.pop() {
            for entry in list(&directory)? {
                let path = entry.path();
                let failed = |source| StoreError::TemplateFile { path: path.clone(), source };
                if entry.file_type().map_err(failed)?.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "json") {
                    match fs::read(&path) {
                        Ok(text) => found.push(serde_json::from_slice(&text).map_err(|e| failed(e.into()))?),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
        }
        Ok(found)
    }

    /// Forgets a template; its layers stay until they are removed. Says whether it was there.
    pub fn remove_template(&self, name: &TemplateName) -> Result<bool, StoreError> {
        let failed = |source| StoreError::Template { action: "remove", name: name.clone(), source };
        let _guard = self.lock_references().map_err(failed)?;
        match fs::remove_file(self.template_file(name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        if self.owner.is_some() {
            // It goes with its last template; with others in it the kernel refuses.
            let _ = fs::remove_dir(self.owned_directory());
        }
        Ok(true)
    }

    /// Which template uses a layer.
    pub(super) fn user_of(&self, digest: &LayerDigest) -> Result<Option<TemplateName>, StoreError> {
        Ok(self.templates_of_all()?.into_iter().find(|template| template.layers.contains(digest)).map(|template| template.name))
    }

    /// Held while a template is written or a layer removed, so that neither overtakes the other.
    pub(super) fn lock_references(&self) -> io::Result<fs::File> {
        let directory = fs::File::open(self.templates_directory())?;
        flock(&directory, FlockOperation::LockExclusive)?;
        Ok(directory)
    }

    /// Writes a file beside its place and renames it over: a reader sees the old one or the new one, after any crash too.
    pub(crate) fn replace_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let staged = staging::Staged::new(&self.staging_directory())?;
        let temporary = staged.path().join("file");
        let mut file = fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
    }

    fn template_file(&self, name: &TemplateName) -> PathBuf {
        self.owned_directory().join(format!("{name}.json"))
    }

    fn owned_directory(&self) -> PathBuf {
        let all = self.templates_directory();
        self.owner.as_ref().map_or_else(|| all.clone(), |project| all.join(project.as_str()))
    }
}

/// What is in a directory; nothing if there is none.
fn list(directory: &Path) -> Result<Vec<fs::DirEntry>, StoreError> {
    let listed = match fs::read_dir(directory) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    listed.map_err(|source| StoreError::List { path: directory.to_owned(), source })
}
