//! The composition root: the only place that names the adapters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_host::{Host, HostConfig, HostRoom};
use belljar_image::{Catalog, CatalogOptions, LayerStore};
use belljar_parcel::HostParcels;
use belljar_ports::{Blobs, Capacity, Parcels, Runtime, Templates};
use belljar_runtime_container::{ContainerConfig, ContainerRuntime};
use belljar_runtime_gvisor::{GvisorConfig, GvisorRuntime};

use crate::config::{BlobsConfig, BlobsKind, Bytes, HostSection};

/// Why the host could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComposeError {
    /// An ordinary user asks.
    #[error(transparent)]
    NotRoot(#[from] NotRoot),
    /// There is no agent to put into sandboxes.
    #[error("there is no agent at {path}: `make guest` builds it; say where it is with host.guest or BELLJAR_GUEST")]
    NoAgent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The host's own parts failed.
    #[error("open the data directory {path}")]
    Host {
        /// Which.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: belljar_host::HostError,
    },
    /// It cannot be told how much room there is.
    #[error("look at the room in {path}")]
    Room {
        /// Which data directory.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// Bytes cannot be kept.
    #[error(transparent)]
    Blobs(#[from] belljar_blobs::OpenError),
    /// The settings of where they are kept are wrong.
    #[error("use the configuration")]
    Settings(#[from] belljar_types::Invalid),
    /// The layers failed.
    #[error("open the layers of {path}")]
    Layers {
        /// Which data directory.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: belljar_image::ImageError,
    },
}

/// An ordinary user can neither mount nor make network namespaces.
#[derive(Debug, thiserror::Error)]
#[error("this needs root, because sandboxes are made of mounts, network namespaces and control groups; run it with sudo")]
pub(crate) struct NotRoot;

/// A host with its engines and templates.
pub(crate) struct Machine {
    pub(crate) host: Arc<Host>,
    pub(crate) engines: Vec<Arc<dyn Runtime>>,
    pub(crate) templates: Arc<dyn Templates>,
    pub(crate) capacity: Arc<dyn Capacity>,
    pub(crate) parcels: Arc<dyn Parcels>,
}

/// Opens the host on its data directory and builds the engines on it.
pub(crate) async fn open(data_dir: &Path, section: &HostSection, filtered_slots: u32) -> Result<Machine, ComposeError> {
    require_root()?;
    let agent = section.guest.clone().unwrap_or_else(agent_beside_this_program);
    if !agent.exists() {
        return Err(ComposeError::NoAgent { path: agent });
    }
    let host = Host::open(host_config(data_dir, section, filtered_slots))
        .await
        .map_err(|source| ComposeError::Host { path: data_dir.to_owned(), source })?;
    let failed = |source| ComposeError::Layers { path: data_dir.to_owned(), source };
    let layers = LayerStore::open(host.pool_directory()).map_err(|error| failed(error.into()))?;
    let agent_layer = layers.agent_layer(&agent).map_err(failed)?;
    host.set_agent_layer(agent_layer);
    let options = CatalogOptions {
        recipe_directory: section.recipes.clone(),
        default_registry: section.default_registry.clone(),
        ..CatalogOptions::default()
    };
    let engines: Vec<Arc<dyn Runtime>> = vec![
        Arc::new(GvisorRuntime::new(Arc::clone(&host), GvisorConfig::default())),
        Arc::new(ContainerRuntime::new(Arc::clone(&host), ContainerConfig::default())),
    ];
    let capacity = HostRoom::new(data_dir).map_err(|source| ComposeError::Room { path: data_dir.to_owned(), source })?;
    let parcels = Arc::new(HostParcels::new(Arc::clone(&host), layers.clone()));
    Ok(Machine { host, engines, templates: Arc::new(Catalog::new(layers, options)), capacity: Arc::new(capacity), parcels })
}

/// The host that these settings ask for.
pub(crate) fn host_config(data_dir: &Path, section: &HostSection, filtered_slots: u32) -> HostConfig {
    let defaults = HostConfig::new(data_dir);
    HostConfig {
        pool_bytes: section.pool_size.map_or(defaults.pool_bytes, Bytes::get),
        closed_slots: section.closed_slots.unwrap_or(defaults.closed_slots),
        open_slots: section.open_slots.unwrap_or(1),
        filtered_slots,
        ..defaults
    }
}

/// Opens the place for bytes that outlive sandboxes.
pub(crate) async fn blobs(data_dir: &Path, config: &BlobsConfig) -> Result<Arc<dyn Blobs>, ComposeError> {
    Ok(match config.kind {
        BlobsKind::Directory => Arc::new(belljar_blobs::open_directory(&config.directory(data_dir))?),
        BlobsKind::S3 => Arc::new(belljar_blobs::open_s3(config.bucket(data_dir)?).await?),
    })
}

/// Refuses an ordinary user with a reason, before some file refuses without one.
pub(crate) fn require_root() -> Result<(), NotRoot> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(NotRoot) }
}

fn agent_beside_this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_default().with_file_name("belljar-guest")
}
