//! [`Catalog`]: the host's templates as core asks for them.
//!
//! ```text
//!   make ─▶ look at the request ─▶ wait for one's turn ─▶ a thread that may block ─▶ layers, then the template's file
//!                                                            └─ lines for the listener, dropped when it is slow
//! ```
//! Everything that touches the disk runs on threads that may block. Makes of one name take turns, and only a few run at once. When the
//! caller goes away its make ends at the next bytes and leaves nothing; the turn ends only when it really has.

mod admission;
mod builds;
mod listener;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use belljar_ports::{BuildLine, FileStream, OwnedTemplate, StepKey, Swept, TemplateError, TemplateSource, Templates};
use belljar_types::{BuildId, BuildRecord, FilesHash, LayerDigest, ProjectId, Template, TemplateName};
use tokio::sync::{Semaphore, mpsc};

use self::admission::Work;
use self::listener::{Listener, printable_chain};
use self::turns::Turns;
use crate::{ImageError, LayerStore, PullOptions, StoreError, recipe};

/// What an operator decides about templates.
#[derive(Debug, Clone, Default)]
pub struct CatalogOptions {
    /// Where files lie that the server's own recipes refer to. Recipes of projects never refer to files.
    pub recipe_directory: Option<PathBuf>,
    /// Let projects' recipes name package sources and run steps. Both run as root on this host while the template is built, behind
    /// nothing but a `chroot`: only for a host whose every project is the operator's own.
    pub trust_projects: bool,
    /// How registries are spoken to.
    pub pull: PullOptions,
    /// What is put before the name of an image that names no registry: a host, and a path if the registry wants one.
    pub default_registry: Option<String>,
}

/// The templates of a host, on its layer store.
#[derive(Debug)]
pub struct Catalog {
    store: LayerStore,
    options: CatalogOptions,
    turns: Turns,
    at_once: Arc<Semaphore>,
}

impl Catalog {
    /// The templates in this store.
    pub fn new(store: LayerStore, options: CatalogOptions) -> Self {
        let at_once = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
        Self { store, options, turns: Turns::default(), at_once: Arc::new(Semaphore::new(at_once)) }
    }

    /// Does something with the store where it may block.
    async fn with_store<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&LayerStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, TemplateError> {
        let store = self.store.clone();
        let done = blocking(operation, move || work(&store)).await?;
        done.map_err(|error| storage(operation, error))
    }
}

fn storage(operation: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> TemplateError {
    if belljar_types::lacks_room(&error) { TemplateError::HostFull } else { TemplateError::Storage { operation, source: Box::new(error) } }
}

#[async_trait]
impl Templates for Catalog {
    async fn find(&self, project: &ProjectId, name: &TemplateName) -> Result<Option<Template>, TemplateError> {
        let (project, name) = (project.clone(), name.clone());
        let find = move |store: &LayerStore| match store.of(Some(&project)).template(&name)? {
            Some(own) => Ok(Some(own)),
            None => store.of(None).template(&name),
        };
        self.with_store("look for a template", find).await
    }

    async fn list(&self, project: &ProjectId) -> Result<Vec<OwnedTemplate>, TemplateError> {
        let project = project.clone();
        let list = move |store: &LayerStore| {
            let mut seen = BTreeMap::new();
            for owner in [None, Some(project)] {
                let view = store.of(owner.as_ref());
                for name in view.template_names()? {
                    if let Some(found) = readable(&view, owner.as_ref(), &name) {
                        seen.insert(name, found);
                    }
                }
            }
            Ok(seen.into_values().collect())
        };
        self.with_store("list the templates", list).await
    }

    async fn make(
        &self,
        owner: Option<&ProjectId>,
        name: &TemplateName,
        source: TemplateSource,
        lines: mpsc::Sender<BuildLine>,
    ) -> Result<Template, TemplateError> {
        let work = Work::admit(source, owner, name, &self.options)?;
        let listener = Listener::new(lines);
        let _stops_when_dropped = listener.stop_on_drop();
        let turn = self.turns.wait(owner, name).await;
        let permit = Arc::clone(&self.at_once).acquire_owned().await.ok();
        let (store, pull, made_name) = (self.store.of(owner), self.options.pull.clone(), name.clone());
        let make = move || {
            let _until_done = (turn, permit);
            match work {
                Work::Recipe(recipe) => recipe::ensure(&store, &recipe, &listener),
                Work::Archive(path) => store.import_archive(made_name, &path, &listener),
                Work::Image(reference) => store.pull(made_name, &reference, &pull, &listener),
            }
        };
        let made: Result<Template, ImageError> = blocking("make a template", make).await?;
        made.map_err(|error| TemplateError::Build { name: name.clone(), detail: printable_chain(&error) })
    }

    async fn put(&self, owner: Option<&ProjectId>, template: &Template) -> Result<(), TemplateError> {
        let (owner, template) = (owner.cloned(), template.clone());
        self.with_store("write a template", move |store| store.of(owner.as_ref()).put_template(&template)).await
    }

    async fn step(&self, key: &StepKey) -> Result<Option<LayerDigest>, TemplateError> {
        let key = *key;
        self.with_store("look for the layer of a step", move |store| store.step(&key)).await
    }

    async fn keep_step(&self, key: &StepKey, written: &Path, origin: &str) -> Result<LayerDigest, TemplateError> {
        builds::keep_step(&self.store, *key, written.to_owned(), origin.to_owned()).await
    }

    async fn put_files(&self, project: &ProjectId, hash: &FilesHash, content: FileStream) -> Result<(), TemplateError> {
        builds::put_files(&self.store, project, hash, content, builds::SILENCE).await
    }

    async fn has_files(&self, project: &ProjectId, hash: &FilesHash) -> Result<bool, TemplateError> {
        let (project, hash) = (project.clone(), hash.clone());
        self.with_store("look for uploaded files", move |store| Ok(store.upload_path(&project, &hash).is_file())).await
    }

    async fn files(&self, project: &ProjectId, hash: &FilesHash) -> Result<Option<FileStream>, TemplateError> {
        let (project, hash) = (project.clone(), hash.clone());
        let opened = self.with_store("open uploaded files", move |store| store.open_upload(&project, &hash)).await?;
        Ok(opened.map(builds::stream_of))
    }

    async fn put_build(&self, build: &BuildRecord) -> Result<(), TemplateError> {
        let build = build.clone();
        self.with_store("write down a build", move |store| store.put_build(&build)).await
    }

    async fn build(&self, id: &BuildId) -> Result<Option<BuildRecord>, TemplateError> {
        let id = id.clone();
        self.with_store("read a build", move |store| store.build(&id)).await
    }

    async fn builds(&self) -> Result<Vec<BuildRecord>, TemplateError> {
        self.with_store("read the builds", LayerStore::builds).await
    }

    async fn remove(&self, owner: Option<&ProjectId>, name: &TemplateName) -> Result<bool, TemplateError> {
        let (owner, name) = (owner.cloned(), name.clone());
        self.with_store("remove a template", move |store| store.of(owner.as_ref()).remove_template(&name)).await
    }

    async fn sweep(&self, keep: &BTreeSet<LayerDigest>, dry_run: bool) -> Result<Swept, TemplateError> {
        let keep = keep.clone();
        let swept = self.with_store("sweep the layers", move |store| store.sweep(&keep, dry_run)).await?;
        let bytes = swept.iter().map(|(_, bytes)| bytes).sum();
        Ok(Swept { layers: swept.into_iter().map(|(digest, _)| digest).collect(), bytes })
    }
}

/// A template for a list. One damaged file must not hide the others: it is logged and left out; asking for it by name says more.
fn readable(view: &LayerStore, owner: Option<&ProjectId>, name: &TemplateName) -> Option<OwnedTemplate> {
    let template = match view.template(name) {
        Ok(template) => template?,
        Err(error) => {
            tracing::warn!(template = %name, error = printable_chain(&error), "left a template out of the list");
            return None;
        }
    };
    let size = |digest: &LayerDigest| view.layer(digest).ok().flatten().map_or(0, |layer| layer.size);
    let bytes = template.layers.iter().map(size).sum();
    Some(OwnedTemplate { owner: owner.cloned(), template, bytes })
}

/// Runs work where it does not hold up other tasks.
async fn blocking<T: Send + 'static>(operation: &'static str, work: impl FnOnce() -> T + Send + 'static) -> Result<T, TemplateError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(TemplateError::Storage { operation, source: Box::new(error) }),
    }
}
