//! A snapshot on its way out.

use std::error::Error;
use std::fs::File;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_host::{Capture, Host};
use belljar_image::{LayerStore, pack_tree};
use belljar_ports::{BlobStream, Contents, Parcel, ParcelError, Parcels};
use belljar_types::{LayerDigest, Snapshot, SnapshotId, lacks_room};

use crate::channel::{Outgoing, Passage};
use crate::manifest::{Manifest, MemoryNeeds};
use crate::parts::{self, PartWriter};
use crate::unpacking::{self, blocking};

/// Snapshots of one host and its layers.
pub struct HostParcels {
    place: Arc<Place>,
}

pub(crate) struct Place {
    pub(crate) host: Arc<Host>,
    pub(crate) layers: LayerStore,
    pub(crate) passage: Passage,
}

impl HostParcels {
    /// For this host, and the layers in its pool.
    pub fn new(host: Arc<Host>, layers: LayerStore) -> Self {
        Self { place: Arc::new(Place { host, layers, passage: Passage::default() }) }
    }
}

#[async_trait]
impl Parcels for HostParcels {
    async fn pack(&self, snapshot: &Snapshot, engine: &str, contents: Contents) -> Result<BlobStream, ParcelError> {
        let capture = self.place.host.capture(&snapshot.id).await.map_err(storage("look at the snapshot"))?;
        let memory = match capture.snapshot.identity {
            Some(_) => Some(MemoryNeeds::here(engine).map_err(storage("look at the processor"))?),
            None => None,
        };
        let names: Option<Vec<String>> = capture.memory.iter().map(|file| file.file_name()?.to_str().map(str::to_owned)).collect();
        let memory_files = names.ok_or_else(|| storage("name the memory image")(io::Error::from(io::ErrorKind::InvalidData)))?;
        let with_layers = contents == Contents::Everything;
        let manifest = Manifest { snapshot: snapshot.clone(), host: capture.snapshot.clone(), with_layers, memory, memory_files };
        manifest.check()?;
        let layers = self.place.layers.clone();
        let packing = move |out: &mut Outgoing| {
            let packed = pack(out, &manifest, &capture, &layers);
            if let Err(error) = &packed
                && error.kind() != io::ErrorKind::BrokenPipe
            {
                tracing::warn!(snapshot = %manifest.snapshot.id, %error, "could not pack a snapshot");
            }
            packed
        };
        Ok(self.place.passage.send_out(packing).await)
    }

    async fn layers(&self, id: &SnapshotId) -> Result<Vec<LayerDigest>, ParcelError> {
        let capture = self.place.host.capture(id).await.map_err(storage("look at the snapshot"))?;
        Ok(capture.snapshot.layers.into_iter().chain(capture.snapshot.agent).collect())
    }

    async fn has_layer(&self, digest: &LayerDigest) -> Result<bool, ParcelError> {
        let (layers, digest) = (self.place.layers.clone(), digest.clone());
        blocking(move || Ok(layers.layer(&digest).map_err(storage("look for a layer"))?.is_some())).await
    }

    async fn pack_layer(&self, digest: &LayerDigest) -> Result<BlobStream, ParcelError> {
        let (layers, digest) = (self.place.layers.clone(), digest.clone());
        Ok(self.place.passage.send_out(move |out| pack_layer(out, &digest, &layers)).await)
    }

    async fn unpack_layer(&self, digest: &LayerDigest, content: BlobStream) -> Result<(), ParcelError> {
        unpacking::one_layer(Arc::clone(&self.place), digest.clone(), content).await
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
    for digest in manifest.layers().filter(|_| manifest.with_layers) {
        pack_layer(out, digest, layers)?;
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

fn pack_layer(out: &mut Outgoing, digest: &LayerDigest, layers: &LayerStore) -> io::Result<()> {
    let mut part = PartWriter::begin(&mut *out, &format!("layer/{digest}"))?;
    layers.send_layer(digest, &mut part).map_err(io::Error::other)?;
    part.finish()
}

pub(crate) fn storage<E: Into<Box<dyn Error + Send + Sync>>>(operation: &'static str) -> impl FnOnce(E) -> ParcelError {
    move |source| {
        let source = source.into();
        if lacks_room(&*source) { ParcelError::HostFull } else { ParcelError::Storage { operation, source } }
    }
}
