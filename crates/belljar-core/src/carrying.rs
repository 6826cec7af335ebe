//! Snapshots that are carried to other servers: as a file, or through the blobs that several servers share.
//!
//! ```text
//!   export:  whole snapshot ─► packed as it is sent
//!   import:  manifest read and held to this server's rules ─► store: making ─► every digest checked on the way in ─► store: whole
//!   push:    layers that are not there yet ─► the rest packed into a blob of its own ─► then a small one, by project and name, says where it is and what its digest must be
//!   pull:    the small one ─► the blob, its digest checked ─► as an import
//! ```
//! A push that is cut short leaves nothing that anybody finds: the small blob comes last. What comes in as a file was written by anybody. Its files are
//! unpacked as strangers' archives are; its memory would be believed by the engine, so only an administrator may bring one.

use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{Format, parse};
use belljar_ports::{BlobKey, BlobStream, Contents, Parcel, Sender, SnapshotKind, Wanted};
use belljar_types::{
    AuditAction, Invalid, LayerDigest, Network, Scope, Snapshot, SnapshotId, SnapshotName, SnapshotPurpose, SnapshotState, Timestamp,
    escape_untrusted, hex,
};
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tracing::info;

use crate::request::{check_env, check_idle, check_metadata};
use crate::shared::Shared;
use crate::{Caller, CoreError, CreateSandbox, NoClass, Service, ServiceConfig, SharedKernel};

/// The longest that is read of what says where a pushed snapshot is.
const LONGEST_POINTER: u64 = 64 << 10;
/// No snapshot is larger than a pool.
const LARGEST: u64 = 64 << 40;

/// A snapshot that comes in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportSnapshot {
    /// What to call it; as it was called when unset.
    pub name: Option<SnapshotName>,
    /// How long it is kept; until it is removed when unset.
    pub lifetime: Option<Duration>,
}

/// A snapshot that other servers can pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    /// What to pull it as.
    pub name: String,
    /// Which it was.
    pub snapshot: SnapshotId,
    /// What it holds.
    pub kind: SnapshotKind,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
}

impl Service {
    /// A snapshot as one stream of bytes. What is in it, environment and memory included, is as secret as its sandbox was.
    pub async fn export_snapshot(&self, caller: &Caller, which: &str) -> Result<(Snapshot, BlobStream), CoreError> {
        caller.require(Scope::Use)?;
        let snapshot = self.snapshot(caller, which).await?;
        let source = snapshot.source.clone();
        let action = |phase| AuditAction::lifecycle("export_snapshot", phase, [("snapshot", snapshot.id.to_string())]);
        let (shared, packing) = (Arc::clone(&self.shared), snapshot.clone());
        let work = async move { shared.pack(&packing, Contents::Everything).await };
        let packed = self.recorded(caller, Some(&source), action, work).await?;
        Ok((snapshot, packed))
    }

    /// Takes in a snapshot that was exported here or elsewhere. If it fails, nothing of it is left.
    pub async fn import_snapshot(&self, caller: &Caller, content: BlobStream, request: ImportSnapshot) -> Result<Snapshot, CoreError> {
        caller.require(Scope::Use)?;
        let parcel = self.begin_import().await?.open(content).await?;
        if parcel.snapshot().kind == SnapshotKind::Memory {
            // The engine believes what is in a memory image.
            caller.require(Scope::Admin)?;
        }
        self.take_in(caller, parcel, Sender::Stranger, request).await
    }

    /// Puts a snapshot where other servers with the same blobs can pull it, under its name or id.
    pub async fn push_snapshot(&self, caller: &Caller, which: &str) -> Result<Pushed, CoreError> {
        caller.require(Scope::Use)?;
        self.shared.refuse_if_stopping()?;
        let snapshot = self.snapshot(caller, which).await?;
        let source = snapshot.source.clone();
        let action = |phase| AuditAction::lifecycle("push_snapshot", phase, [("snapshot", snapshot.id.to_string())]);
        let (shared, pushing) = (Arc::clone(&self.shared), snapshot.clone());
        self.recorded(caller, Some(&source), action, async move { shared.push(&pushing).await }).await
    }

    /// Takes in a snapshot that this project pushed, here or on another server.
    pub async fn pull_snapshot(&self, caller: &Caller, name: &str, request: ImportSnapshot) -> Result<Snapshot, CoreError> {
        caller.require(Scope::Use)?;
        let parcels = self.begin_import().await?;
        let blobs = &self.shared.blobs;
        let not_pushed = || CoreError::NotPushed { name: escape_untrusted(name.as_bytes().get(..80).unwrap_or(name.as_bytes())) };
        let Ok(pointer) = pointer_of(&caller.project, name) else { return Err(not_pushed()) };
        let (_, text) = blobs.get(&pointer, Wanted::Part(0..LONGEST_POINTER)).await?.ok_or_else(not_pushed)?;
        let text: Vec<u8> = text.map_ok(|piece| piece.to_vec()).try_concat().await.map_err(belljar_ports::BlobError::Source)?;
        let pushed: Pushed = serde_json::from_slice(&text).map_err(|_| not_pushed())?;
        let wanted = Wanted::Whole { sha256: pushed.sha256.clone() };
        let (_, content) = blobs.get(&parcel_of(&caller.project, &pushed.snapshot)?, wanted).await?.ok_or_else(not_pushed)?;
        let parcel = parcels.open(content).await?;
        for digest in parcel.layers() {
            if parcels.has_layer(&digest).await? {
                continue;
            }
            let key = layer_of(&digest)?;
            let head = blobs.head(&key).await?.ok_or_else(not_pushed)?;
            // Its name is its digest, and is checked when it is here.
            let (_, content) = blobs.get(&key, Wanted::Part(0..head.bytes)).await?.ok_or_else(not_pushed)?;
            parcels.unpack_layer(&digest, content).await?;
        }
        self.take_in(caller, parcel, Sender::Server, request).await
    }

    async fn begin_import(&self) -> Result<&Arc<dyn belljar_ports::Parcels>, CoreError> {
        self.shared.refuse_if_stopping()?;
        self.shared.admission.disk_for_a_snapshot()?;
        Ok(&self.shared.parcels)
    }

    async fn take_in(
        &self,
        caller: &Caller,
        parcel: Box<dyn Parcel>,
        sender: Sender,
        request: ImportSnapshot,
    ) -> Result<Snapshot, CoreError> {
        let snapshot = self.admitted(caller, parcel.snapshot(), request)?;
        let action = |phase| AuditAction::lifecycle("import_snapshot", phase, [("snapshot", snapshot.id.to_string())]);
        let shared = Arc::clone(&self.shared);
        let whole = snapshot.clone();
        self.recorded(caller, None, action, shared.keep_incoming(parcel, sender, whole)).await
    }

    /// What comes in, held to what this server and this project allow, as if it were asked for here.
    fn admitted(&self, caller: &Caller, foreign: &Snapshot, request: ImportSnapshot) -> Result<Snapshot, CoreError> {
        let config = &self.shared.config;
        if foreign.class == belljar_types::IsolationClass::Container && config.shared_kernel == SharedKernel::Refused {
            let reason = "this server does not allow sandboxes to share its kernel".to_owned();
            return Err(NoClass::Broken { class: foreign.class, reason }.into());
        }
        self.shared.engine_of(foreign)?;
        check_env(&foreign.spec.env)?;
        check_metadata(&foreign.metadata)?;
        check_idle(foreign.idle_timeout)?;
        let policy = foreign.spec.policy.as_deref().map(|text| parse(text, Format::Json)).transpose();
        let asked = CreateSandbox {
            policy: policy.map_err(|error| error.as_invalid())?,
            network: Some(foreign.spec.network).filter(|network| *network != Network::Filtered),
            privilege: foreign.spec.privilege,
            env: foreign.spec.env.clone(),
            ..CreateSandbox::default()
        };
        let limits = asked.limits(&ServiceConfig { default_limits: foreign.spec.limits.clone(), ..config.clone() })?;
        let ruled = self.shared.rule(&asked, &caller.project, &foreign.template, foreign.class, limits)?;
        if ruled.privilege != foreign.spec.privilege && foreign.kind == SnapshotKind::Memory {
            let expected = "a snapshot without memory: the agent in this one lets root be root, and this server's policy does not";
            return Err(Invalid::new("snapshot", expected, foreign.id.as_str()).into());
        }
        if !foreign.spec.volumes.is_empty() && foreign.kind == SnapshotKind::Memory {
            let expected =
                "a snapshot without memory, or of a sandbox without volumes: its programs have files open on volumes that are elsewhere";
            return Err(Invalid::new("snapshot", expected, foreign.id.as_str()).into());
        }
        let now = Timestamp::now();
        let mut spec = foreign.spec.clone();
        spec.volumes.clear();
        (spec.policy, spec.network, spec.limits, spec.privilege, spec.env) =
            (ruled.policy, ruled.network, ruled.limits, ruled.privilege, ruled.env);
        spec.hostname = None;
        Ok(Snapshot {
            id: SnapshotId::random(),
            project: caller.project.clone(),
            name: request.name.or_else(|| foreign.name.clone()),
            state: SnapshotState::Making,
            purpose: SnapshotPurpose::Kept,
            parent: None,
            spec,
            bytes: 0,
            created_at: now,
            expires_at: request.lifetime.map(|lifetime| now.plus(lifetime)),
            ..foreign.clone()
        })
    }
}

impl Shared {
    async fn pack(&self, snapshot: &Snapshot, contents: Contents) -> Result<BlobStream, CoreError> {
        self.engine_of(snapshot)?;
        Ok(self.parcels.pack(snapshot, &self.engine_version(snapshot), contents).await?)
    }

    fn engine_version(&self, snapshot: &Snapshot) -> String {
        self.engine(snapshot.class).map(|engine| engine.report.version.clone()).unwrap_or_default()
    }

    async fn push(&self, snapshot: &Snapshot) -> Result<Pushed, CoreError> {
        let _unfinished = self.unfinished.token();
        let name = snapshot.name.as_ref().map_or_else(|| snapshot.id.to_string(), ToString::to_string);
        for digest in self.parcels.layers(&snapshot.id).await? {
            let key = layer_of(&digest)?;
            if self.blobs.head(&key).await?.is_none() {
                self.blobs.put(&key, self.parcels.pack_layer(&digest).await?, LARGEST).await?;
            }
        }
        let packed = self.pack(snapshot, Contents::WithoutLayers).await?;
        let put = self.blobs.put(&parcel_of(&snapshot.project, &snapshot.id)?, packed, LARGEST).await?;
        let pushed = Pushed { name, snapshot: snapshot.id.clone(), kind: snapshot.kind, bytes: put.bytes, sha256: put.sha256 };
        let text = Bytes::from(serde_json::to_vec(&pushed).unwrap_or_default());
        let pointer: BlobStream = Box::pin(stream::once(async { Ok(text) }));
        self.blobs.put(&pointer_of(&snapshot.project, &pushed.name)?, pointer, LONGEST_POINTER).await?;
        info!(snapshot = %snapshot.id, bytes = pushed.bytes, "snapshot pushed");
        Ok(pushed)
    }

    async fn keep_incoming(
        self: Arc<Self>,
        parcel: Box<dyn Parcel>,
        sender: Sender,
        mut snapshot: Snapshot,
    ) -> Result<Snapshot, CoreError> {
        let _unfinished = self.unfinished.token();
        let engine = self.engine_version(&snapshot);
        let runtime = Arc::clone(self.engine_of(&snapshot)?);
        self.store.enter_snapshot(self.epoch, &snapshot).await.inspect_err(|error| self.note(error))?;
        let kept = async {
            snapshot.bytes = parcel.unpack(&snapshot.id, &engine, sender).await?;
            snapshot.state = SnapshotState::Whole;
            self.store.record_snapshot(self.epoch, SnapshotState::Making, &snapshot).await.inspect_err(|error| self.note(error))?;
            Ok(())
        };
        if let Err(failure) = kept.await {
            self.drop_snapshot(&runtime, &snapshot.id).await;
            return Err(failure);
        }
        if snapshot.expires_at.is_some() {
            self.expiries.notify_one();
        }
        info!(snapshot = %snapshot.id, project = %snapshot.project, bytes = snapshot.bytes, "snapshot taken in");
        Ok(snapshot)
    }
}

/// Layers are everybody's: whoever names one by its digest has what it holds.
fn layer_of(digest: &LayerDigest) -> Result<BlobKey, Invalid> {
    format!("layers/{digest}").parse()
}

fn parcel_of(project: &belljar_types::ProjectId, id: &SnapshotId) -> Result<BlobKey, Invalid> {
    format!("snapshots/{project}/{id}").parse()
}

/// Names of snapshots have capitals, which names of blobs have not.
fn pointer_of(project: &belljar_types::ProjectId, name: &str) -> Result<BlobKey, Invalid> {
    format!("pushed/{project}/{}", hex(name.as_bytes())).parse()
}
