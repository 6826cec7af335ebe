//! Volumes: made, found, copied, removed, and given to sandboxes.
//!
//! ```text
//!   enter (making) ─► host: made or copied ─► record (ready) ─► answer
//!   record (removing; refused while a sandbox has it) ─► host: removed ─► forget ─► answer
//! ```
//! A volume is named by its id or by what people call it. Which sandbox has which volume is decided by the store, in the transaction that enters
//! the sandbox: it has it from then until its end, through every pause. A snapshot remembers the mounts, not the content; whoever is made from it
//! gets the volumes as they are then, if they are free.

use std::sync::Arc;

use belljar_ports::{Holder, RuntimeError, StoreError, VolumeError, VolumePage};
use belljar_types::{
    AuditAction, Invalid, IsolationClass, MountMode, MountPath, Sandbox, Scope, Timestamp, Volume, VolumeId, VolumeMount, VolumeName,
    VolumeState, escape_untrusted,
};
use tracing::{error, info};

use crate::shared::Shared;
use crate::{Caller, CoreError, Service, chain};

/// What a volume may hold when nobody says.
const DEFAULT_BYTES: u64 = 1 << 30;
/// Most volumes of one sandbox.
const MOST_MOUNTS: usize = 16;
/// As many as are read from the store at one time.
const LARGEST_PAGE: u32 = 1000;
/// Most sandboxes with a volume that are told.
const MOST_HOLDERS: u32 = 100;

/// A volume to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateVolume {
    /// What people will call it.
    pub name: VolumeName,
    /// What may be written to it; 1 GiB when unset.
    pub size_bytes: Option<u64>,
    /// The bucket that it is to be, by the operator's name for that.
    pub bucket: Option<String>,
}

/// A copy of a volume to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyVolume {
    /// What people will call it.
    pub name: VolumeName,
    /// What may be written to it beyond what it shares; as much as to its origin when unset.
    pub size_bytes: Option<u64>,
    /// Whether it is to keep this state for ever.
    pub read_only: bool,
}

/// A volume that a sandbox is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRequest {
    /// Which, by its id or name.
    pub volume: String,
    /// Where it is to be seen.
    pub path: MountPath,
    /// How it may be used.
    pub mode: MountMode,
}

/// A volume and how it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeStatus {
    /// What it is.
    pub volume: Volume,
    /// Bytes that were written to it.
    pub used_bytes: u64,
    /// Who has it.
    pub holders: Vec<Holder>,
}

impl Service {
    /// Makes an empty volume.
    pub async fn create_volume(&self, caller: &Caller, request: CreateVolume) -> Result<Volume, CoreError> {
        let CreateVolume { name, size_bytes, bucket } = request;
        if bucket.is_some() && size_bytes.is_some() {
            return Err(Invalid::new("size_bytes", "nothing: a bucket has no size of its own", "a size and a bucket").into());
        }
        let draft = Volume {
            id: VolumeId::random(),
            project: caller.project.clone(),
            name,
            state: VolumeState::Making,
            // Nothing of a bucket is on this host.
            size_bytes: if bucket.is_some() { Volume::LEAST_BYTES } else { size_bytes.unwrap_or(DEFAULT_BYTES) },
            read_only: false,
            origin: None,
            bucket,
            created_at: Timestamp::now(),
        };
        self.make_volume(caller, "create_volume", draft).await
    }

    /// Makes a volume that holds what another holds now. Both go their own ways from then on, unless the copy is to be read-only.
    pub async fn copy_volume(&self, caller: &Caller, which: &str, request: CopyVolume) -> Result<Volume, CoreError> {
        caller.require(Scope::Use)?;
        let source = self.find_volume(caller, which).await?;
        if source.bucket.is_some() {
            let expected = "a volume that is no bucket: copy a bucket with its own tools";
            return Err(Invalid::new("volume", expected, source.name.as_str()).into());
        }
        let draft = Volume {
            id: VolumeId::random(),
            project: caller.project.clone(),
            name: request.name,
            state: VolumeState::Making,
            size_bytes: request.size_bytes.unwrap_or(source.size_bytes),
            read_only: request.read_only,
            origin: Some(source.id),
            bucket: None,
            created_at: Timestamp::now(),
        };
        self.make_volume(caller, "copy_volume", draft).await
    }

    async fn make_volume(&self, caller: &Caller, verb: &'static str, draft: Volume) -> Result<Volume, CoreError> {
        caller.require(Scope::Use)?;
        self.shared.refuse_if_stopping()?;
        if draft.size_bytes < Volume::LEAST_BYTES {
            let expected = format!("at least {} bytes", Volume::LEAST_BYTES);
            return Err(Invalid::new("size_bytes", expected, draft.size_bytes.to_string()).into());
        }
        self.shared.admission.disk_for_a_snapshot()?;
        let detail = [("volume", draft.id.to_string()), ("name", draft.name.to_string())];
        let action = |phase| AuditAction::lifecycle(verb, phase, detail.clone());
        self.recorded(caller, None, action, Arc::clone(&self.shared).make_volume(draft)).await
    }

    /// A page of the caller's project's volumes, by name.
    pub async fn volumes(&self, caller: &Caller, after: Option<&VolumeName>, limit: u32) -> Result<VolumePage, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.store.list_volumes(&caller.project, after, limit).await?)
    }

    /// All volumes of the caller's project, for fronts whose lists have no pages.
    pub async fn all_volumes(&self, caller: &Caller) -> Result<Vec<Volume>, CoreError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.volumes(caller, after.as_ref(), LARGEST_PAGE).await?;
            all.extend(page.volumes);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// A volume of the caller's project, by its id or its name.
    pub async fn volume(&self, caller: &Caller, which: &str) -> Result<Volume, CoreError> {
        caller.require(Scope::Read)?;
        self.find_volume(caller, which).await
    }

    /// The same for whoever may do something with it.
    pub(crate) async fn find_volume(&self, caller: &Caller, which: &str) -> Result<Volume, CoreError> {
        if let Ok(id) = which.parse::<VolumeId>()
            && let Some(found) = self.shared.store.volume(&caller.project, &id).await?
        {
            return Ok(found);
        }
        let named = match which.parse::<VolumeName>() {
            Ok(name) => self.shared.store.volume_named(&caller.project, &name).await?,
            Err(_) => None,
        };
        named.ok_or_else(|| CoreError::NoVolume { name: escape_untrusted(&which.as_bytes()[..which.len().min(80)]) })
    }

    /// How a volume stands: what was written to it and who has it.
    pub async fn volume_status(&self, caller: &Caller, which: &str) -> Result<VolumeStatus, CoreError> {
        let volume = self.volume(caller, which).await?;
        let holders = self.shared.store.holders(&volume.id, MOST_HOLDERS).await?;
        let used_bytes = self.shared.volumes.usage(&volume.id).await?;
        Ok(VolumeStatus { volume, used_bytes, holders })
    }

    /// Removes a volume with all it holds. Refused while a sandbox has it, running or paused. Copies live on.
    pub async fn remove_volume(&self, caller: &Caller, which: &str) -> Result<(), CoreError> {
        caller.require(Scope::Use)?;
        let volume = self.find_volume(caller, which).await?;
        let detail = [("volume", volume.id.to_string()), ("name", volume.name.to_string())];
        let action = |phase| AuditAction::lifecycle("remove_volume", phase, detail.clone());
        let shared = Arc::clone(&self.shared);
        self.recorded(caller, None, action, async move { shared.remove_volume(volume).await }).await
    }

    /// The volumes of a request, found.
    pub(crate) async fn find_mounts(&self, caller: &Caller, requests: &[MountRequest]) -> Result<Vec<VolumeMount>, CoreError> {
        if requests.len() > MOST_MOUNTS {
            return Err(Invalid::new("volumes", format!("at most {MOST_MOUNTS} volumes"), requests.len().to_string()).into());
        }
        let mut mounts: Vec<VolumeMount> = Vec::with_capacity(requests.len());
        for MountRequest { volume, path, mode } in requests {
            let found = self.find_volume(caller, volume).await?;
            if let Some(other) = mounts.iter().find(|mount| mount.path.touches(path)) {
                let expected = format!("paths of which none is or holds another; {} is taken", other.path);
                return Err(Invalid::new("volumes.path", expected, path.as_str()).into());
            }
            if mounts.iter().any(|mount| mount.volume == found.id) {
                return Err(Invalid::new("volumes", "each volume once", volume).into());
            }
            if found.read_only && *mode != MountMode::ReadOnly {
                return Err(StoreError::VolumeReadOnly { name: found.name }.into());
            }
            mounts.push(VolumeMount { volume: found.id, name: found.name, path: path.clone(), mode: *mode });
        }
        Ok(mounts)
    }
}

/// What an engine without volumes answers.
pub(crate) fn unsupported(class: IsolationClass) -> CoreError {
    RuntimeError::Unsupported { class, verb: "volumes", reason: "choose another class, or make the sandbox without them".to_owned() }.into()
}

/// Refuses to make several sandboxes of one that has a volume for itself.
pub(crate) fn refuse_forks(sandbox: &Sandbox) -> Result<(), CoreError> {
    match exclusive(&sandbox.spec.volumes) {
        Some(name) => Err(CoreError::ExclusiveVolume { id: sandbox.id.clone(), name: name.clone() }),
        None => Ok(()),
    }
}

/// The first volume that only one sandbox can have.
pub(crate) fn exclusive(mounts: &[VolumeMount]) -> Option<&VolumeName> {
    mounts.iter().find(|mount| mount.mode == MountMode::ReadWrite).map(|mount| &mount.name)
}

impl Shared {
    async fn make_volume(self: Arc<Self>, draft: Volume) -> Result<Volume, CoreError> {
        self.store.enter_volume(self.epoch, &draft).await.inspect_err(|error| self.note(error))?;
        let made = match (&draft.bucket, &draft.origin) {
            (Some(bucket), _) => self.volumes.make_bucket(&draft.id, bucket, &draft.project).await,
            (None, None) => self.volumes.make(&draft.id, draft.size_bytes).await,
            (None, Some(origin)) => self.volumes.copy(origin, &draft.id, draft.size_bytes, draft.read_only).await,
        };
        if let Err(failure) = made {
            self.drop_volume(&draft.id).await;
            return Err(failure.into());
        }
        let ready = Volume { state: VolumeState::Ready, ..draft };
        match self.store.record_volume(self.epoch, VolumeState::Making, &ready).await.inspect_err(|error| self.note(error)) {
            Ok(()) => {
                info!(volume = %ready.id, name = %ready.name, project = %ready.project, bytes = ready.size_bytes, "volume made");
                Ok(ready)
            }
            // The server that took over finishes it.
            Err(fenced @ StoreError::Fenced { .. }) => Err(fenced.into()),
            Err(failure) => {
                self.drop_volume(&ready.id).await;
                Err(failure.into())
            }
        }
    }

    /// From here on nobody sees it; if the host cannot remove it now, the next start does.
    pub(crate) async fn remove_volume(&self, volume: Volume) -> Result<(), CoreError> {
        let (was, id) = (volume.state, volume.id.clone());
        let removing = Volume { state: VolumeState::Removing, ..volume };
        self.store.record_volume(self.epoch, was, &removing).await.inspect_err(|error| self.note(error))?;
        self.drop_volume(&id).await;
        Ok(())
    }

    /// Removes what the host has of a volume, then forgets it. Whoever starts next tries again.
    pub(crate) async fn drop_volume(&self, id: &VolumeId) {
        let gone = async {
            match self.volumes.remove(id).await {
                Ok(()) | Err(VolumeError::Absent { .. }) => {}
                Err(failure) => return Err(CoreError::from(failure)),
            }
            self.store.forget_volume(self.epoch, id).await.inspect_err(|error| self.note(error))?;
            Ok(())
        };
        match gone.await {
            Ok(()) => info!(volume = %id, "volume removed"),
            Err(failure) => error!(volume = %id, error = chain(&failure), "could not remove a volume; the next start tries again"),
        }
    }
}
