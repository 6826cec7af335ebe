//! A snapshot on its way out.

use std::fs::File;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_host::{Capture, Host};
use belljar_image::{LayerStore, pack_tree};
use belljar_ports::{BlobStream, Parcel, ParcelError, Parcels};
use belljar_types::Snapshot;

use crate::channel::{Outgoing, outgoing};
use crate::manifest::{Manifest, MemoryNeeds};
use crate::parts::{self, PartWriter};
use crate::unpacking;

/// Snapshots of one host and its layers.
pub struct HostParcels {
    place: Arc<Place>,
}

pub(crate) struct Place {
    pub(crate) host: Arc<Host>,
    pub(crate) layers: LayerStore,
}

impl HostParcels {
    /// For this host, and the layers in its pool.
    pub fn new(host: Arc<Host>, layers: LayerStore) -> Self {
        Self { place: Arc::new(Place { host, layers }) }
    }
}

#[async_trait]
impl Parcels for HostParcels {
    async fn pack(&self, snapshot: &Snapshot, engine: &str) -> Result<BlobStream, ParcelError> {
        let capture = self.place.host.capture(&snapshot.id).await.map_err(storage("look at the snapshot"))?;
        let memory = match capture.snapshot.identity {
            Some(_) => Some(MemoryNeeds::here(engine).map_err(storage("look at the processor"))?),
            None => None,
        };
        let names: Option<Vec<String>> = capture.memory.iter().map(|file| file.file_name()?.to_str().map(str::to_owned)).collect();
        let memory_files = names.ok_or_else(|| storage("name the memory image")(io::Error::from(io::ErrorKind::InvalidData)))?;
        let manifest = Manifest { snapshot: snapshot.clone(), host: capture.snapshot.clone(), memory, memory_files };
        manifest.check()?;
        let (mut out, stream) = outgoing();
        let layers = self.place.layers.clone();
        tokio::task::spawn_blocking(move || {
            let packed = pack(&mut out, &manifest, &capture, &layers);
            if let Err(error) = &packed
                && error.kind() != io::ErrorKind::BrokenPipe
            {
                tracing::warn!(snapshot = %manifest.snapshot.id, %error, "could not pack a snapshot");
            }
            out.finish(packed);
        });
        Ok(stream)
    }

    async fn open(&self, content: BlobStream) -> Result<Box<dyn Parcel>, ParcelError> {
        unpacking::open(Arc::clone(&self.place), content).await
    }
}

fn pack(out: &mut Outgoing, manifest: &Manifest, capture: &Capture, layers: &LayerStore) -> io::Result<()> {
    parts::begin(out)?;
    let mut part = PartWriter::begin(&mut *out, "manifest")?;
    serde_json::to_writer(&mut part, manifest)?;
    part.finish()?;
    for digest in manifest.layers() {
        let mut part = PartWriter::begin(&mut *out, &format!("layer/{digest}"))?;
        layers.send_layer(digest, &mut part).map_err(io::Error::other)?;
        part.finish()?;
    }
    let mut part = PartWriter::begin(&mut *out, "upper")?;
    pack_tree(&capture.upper, &mut part)?;
    part.finish()?;
    for (name, file) in manifest.memory_files.iter().zip(&capture.memory) {
        let mut part = PartWriter::begin(&mut *out, &format!("memory/{name}"))?;
        io::copy(&mut File::open(file)?, &mut part)?;
        part.finish()?;
    }
    PartWriter::begin(&mut *out, "end")?.finish()
}

pub(crate) fn storage<E: Into<Box<dyn std::error::Error + Send + Sync>>>(operation: &'static str) -> impl FnOnce(E) -> ParcelError {
    move |source| ParcelError::Storage { operation, source: source.into() }
}
