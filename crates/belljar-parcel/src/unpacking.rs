//! A snapshot on its way in: hostile until the last digest is right.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_host::Incoming as Room;
use belljar_image::{ArchiveError, ArchiveLimits, ImageError, unpack_tree};
use belljar_ports::{BlobStream, Parcel, ParcelError, Sender};
use belljar_types::{LayerDigest, Snapshot, SnapshotId, chain, lacks_room};

use crate::channel::{Incoming, Passage};
use crate::manifest::{LONGEST, Manifest, MemoryNeeds};
use crate::packing::{Place, storage};
use crate::parts::{self, PartReader, told};

struct Opened {
    parcels: Arc<Place>,
    manifest: Manifest,
    input: Incoming,
}

pub(crate) async fn open(parcels: Arc<Place>, content: BlobStream) -> Result<Box<dyn Parcel>, ParcelError> {
    let (manifest, input) = read_manifest(&parcels.passage, content).await?;
    Ok(Box::new(Opened { parcels, manifest, input }))
}

/// What comes first, and the rest.
pub(crate) async fn read_manifest(passage: &Passage, content: BlobStream) -> Result<(Manifest, Incoming), ParcelError> {
    let mut input = passage.follow(content);
    let read = move || {
        parts::expect_beginning(&mut input)?;
        let mut part = PartReader::expect(&mut input, "manifest")?;
        let mut text = Vec::new();
        (&mut part).take(LONGEST + 1).read_to_end(&mut text).map_err(|error| told(error, "manifest"))?;
        part.finish()?;
        let manifest: Manifest = match serde_json::from_slice(&text) {
            Ok(manifest) => manifest,
            Err(error) => return Err(ParcelError::Damaged { part: "manifest".to_owned(), reason: error.to_string() }),
        };
        manifest.check()?;
        Ok((manifest, input))
    };
    passage.take_in(read).await
}

/// A layer that was sent by itself.
pub(crate) async fn one_layer(parcels: Arc<Place>, digest: LayerDigest, content: BlobStream) -> Result<(), ParcelError> {
    let mut input = parcels.passage.follow(content);
    let taking = Arc::clone(&parcels);
    parcels.passage.take_in(move || take_layer(&taking, &digest, &mut input, Sender::Stranger)).await
}

#[async_trait]
impl Parcel for Opened {
    fn snapshot(&self) -> &Snapshot {
        &self.manifest.snapshot
    }

    fn layers(&self) -> Vec<LayerDigest> {
        self.manifest.layers().cloned().collect()
    }

    async fn unpack(self: Box<Self>, id: &SnapshotId, engine: &str, sender: Sender) -> Result<u64, ParcelError> {
        let Self { parcels, manifest, input } = *self;
        if let Some(needs) = &manifest.memory {
            can_go_on(needs, &MemoryNeeds::here(engine).map_err(storage("look at the processor"))?)?;
        }
        let host = Arc::clone(&parcels.host);
        let room = host.begin_incoming(id, manifest.host.clone()).await.map_err(storage("make room for the snapshot"))?;
        let filling = Arc::clone(&parcels);
        let filled = parcels.passage.take_in(move || fill(&filling, &manifest, input, room, sender)).await;
        let kept = match filled {
            Ok(room) => host.finish_incoming(room).await.map_err(storage("keep the snapshot")),
            Err(error) => Err(error),
        };
        match kept {
            Ok(snapshot) => Ok(snapshot.bytes),
            Err(error) => {
                if let Err(left) = host.remove_snapshot(id).await {
                    tracing::error!(snapshot = %id, error = chain(&left), "a snapshot that came in half could not be removed; the next start does");
                }
                Err(error)
            }
        }
    }
}

/// A memory image holds the inside of its engine, and code that was chosen for its processor.
fn can_go_on(needs: &MemoryNeeds, here: &MemoryNeeds) -> Result<(), ParcelError> {
    let elsewhere = |reason: String| Err(ParcelError::MemoryElsewhere { reason });
    if needs.engine != here.engine {
        return elsewhere(format!("it was taken with {}, and this server has {}", needs.engine, here.engine));
    }
    let missing: Vec<&str> = needs.processor.iter().filter(|one| !here.processor.contains(one)).map(String::as_str).take(5).collect();
    if missing.is_empty() { Ok(()) } else { elsewhere(format!("it was taken on a processor that has {}", missing.join(", "))) }
}

fn fill(parcels: &Place, manifest: &Manifest, mut input: Incoming, room: Room, sender: Sender) -> Result<Room, ParcelError> {
    for digest in manifest.layers() {
        if !manifest.with_layers {
            let here = parcels.layers.layer(digest).map_err(storage("look for a layer"))?.is_some();
            if here && sender == Sender::Server {
                continue;
            }
            return Err(ParcelError::Damaged { part: format!("layer/{digest}"), reason: "it is neither here nor in the file".to_owned() });
        }
        take_layer(parcels, digest, &mut input, sender)?;
    }
    let mut part = PartReader::expect(&mut input, "upper")?;
    let unpacked = unpack_tree(room.upper(), &mut part, ArchiveLimits::default());
    finish(part, unpacked.map_err(|error| archive("upper", error)))?;
    for name in &manifest.memory_files {
        let part_name = format!("memory/{name}");
        let mut part = PartReader::expect(&mut input, &part_name)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(room.memory(name))
            .map_err(storage("write the memory image"))?;
        let copied = io::copy(&mut part, &mut file)
            .map_err(|error| if lacks_room(&error) { ParcelError::HostFull } else { told(error, &part_name) });
        finish(part, copied.map(drop))?;
    }
    parts::expect_end(&mut input)?;
    Ok(room)
}

fn take_layer(parcels: &Place, digest: &LayerDigest, input: &mut Incoming, sender: Sender) -> Result<(), ParcelError> {
    let name = format!("layer/{digest}");
    let mut part = PartReader::expect(input, &name)?;
    if sender == Sender::Server && parcels.layers.layer(digest).map_err(storage("look for a layer"))?.is_some() {
        return part.finish();
    }
    let taken = parcels.layers.receive_layer(digest, &mut part, ArchiveLimits::default());
    let taken = taken.map(drop).map_err(|error| match error {
        ImageError::Archive(error) => archive(&name, error),
        other if lacks_room(&other) => ParcelError::HostFull,
        other => ParcelError::Damaged { part: name.clone(), reason: chain(&other) },
    });
    finish(part, taken)
}

/// What a damaged part was taken for is told as the damage that its digest shows, if it shows any.
fn finish(part: PartReader<&mut Incoming>, result: Result<(), ParcelError>) -> Result<(), ParcelError> {
    match result {
        Ok(()) => part.finish(),
        Err(error @ (ParcelError::CutShort { .. } | ParcelError::Source(_) | ParcelError::HostFull | ParcelError::Storage { .. })) => {
            Err(error)
        }
        Err(error) => part.finish().and(Err(error)),
    }
}

fn archive(part: &str, error: ArchiveError) -> ParcelError {
    match error {
        ArchiveError::Read(error) => told(error, part),
        ArchiveError::Unpack { source, .. } => storage("unpack a file of the snapshot")(source),
        other => ParcelError::Damaged { part: part.to_owned(), reason: chain(&other) },
    }
}

pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, ParcelError> + Send + 'static) -> Result<T, ParcelError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_ended) => Err(ParcelError::CutShort { part: "everything: the server is stopping".to_owned() }),
    }
}
