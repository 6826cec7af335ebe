//! Artifacts: files that are taken out of a sandbox on purpose, and are there when it is gone.
//!
//! ```text
//!   keep ─► store: keeping ─► read through the agent, hashed on the way into the blobs ─► store: kept ─► answer
//!   remove ─► store: removing ─► the blob goes ─► forgotten
//! ```
//! What is half-way when the server ends was promised to nobody, and is removed at the next start. A blob may be in a bucket that others use
//! too, so nothing is removed that this store does not know.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{ArtifactCursor, ArtifactPage, BlobError, BlobKey, BlobStream, Wanted};
use belljar_types::{
    Artifact, ArtifactId, ArtifactState, AuditAction, AuditEvent, ByteRange, ContentDigest, FileKind, GuestPath, Invalid, ProjectId,
    SandboxId, Scope, Timestamp, UserName, audit_text, escape_untrusted,
};
use futures_util::StreamExt;
use tracing::{error, info, warn};

use crate::media_type::{media_type, said_type};
use crate::recording::event;
use crate::shared::Shared;
use crate::{Caller, CoreError, Service, Session, chain};

const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);
const LONGEST_NAME: usize = 255;

/// A file to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepFile {
    /// Where it is.
    pub path: GuestPath,
    /// Who reads it; the template's user when unset.
    pub user: Option<UserName>,
    /// What to call it; as it is called there when unset.
    pub name: Option<String>,
    /// What it is, as `type/subtype`; as its first bytes look when unset.
    pub media_type: Option<String>,
    /// How long it is kept; until it is removed when unset.
    pub lifetime: Option<Duration>,
}

impl Service {
    /// Takes a file out of a running sandbox and keeps it. Goes on to its end if whoever asked has gone.
    pub async fn keep_file(&self, caller: &Caller, sandbox: &SandboxId, request: KeepFile) -> Result<Artifact, CoreError> {
        caller.require(Scope::Use)?;
        self.shared.refuse_if_stopping()?;
        if let Some(lifetime) = request.lifetime
            && (lifetime.is_zero() || lifetime > LONGEST)
        {
            let expected = format!("more than 0 and at most {} seconds", LONGEST.as_secs());
            return Err(Invalid::new("lifetime", expected, format!("{} seconds", lifetime.as_secs())).into());
        }
        // Before a sandbox is woken for it.
        name_of(&request)?;
        request.media_type.as_deref().map(said_type).transpose()?;
        let session = self.open(caller, sandbox).await?;
        let unwritten = event(caller, Some(sandbox), AuditAction::Log { detail: String::new() });
        self.shared.keep_to_the_end(session, unwritten, ArtifactId::random(), request).await
    }

    /// A page of the caller's project's artifacts, newest first.
    pub async fn artifacts(
        &self,
        caller: &Caller,
        sandbox: Option<&SandboxId>,
        after: Option<&ArtifactCursor>,
        limit: u32,
    ) -> Result<ArtifactPage, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.store.list_artifacts(&caller.project, sandbox, after, limit).await?)
    }

    /// An artifact of the caller's project.
    pub async fn artifact(&self, caller: &Caller, id: &ArtifactId) -> Result<Artifact, CoreError> {
        caller.require(Scope::Read)?;
        let found = self.shared.store.artifact(&caller.project, id).await?;
        found.ok_or_else(|| CoreError::NoArtifact { id: id.clone() })
    }

    /// An artifact and its bytes, which end with an error where they are not those that were kept.
    pub async fn artifact_content(&self, caller: &Caller, id: &ArtifactId) -> Result<(Artifact, BlobStream), CoreError> {
        let artifact = self.artifact(caller, id).await?;
        let wanted = Wanted::Whole { sha256: artifact.sha256.clone() };
        match self.shared.blobs.get(&blob_of(id)?, wanted).await? {
            Some((bytes, stream)) if bytes == artifact.bytes => Ok((artifact, stream)),
            found => {
                error!(artifact = %id, expected = artifact.bytes, found = ?found.map(|(bytes, _)| bytes), "the bytes of an artifact are not there");
                Err(CoreError::NoArtifact { id: id.clone() })
            }
        }
    }

    /// Removes an artifact.
    pub async fn remove_artifact(&self, caller: &Caller, id: &ArtifactId) -> Result<(), CoreError> {
        caller.require(Scope::Use)?;
        let artifact = self.artifact(caller, id).await?;
        let sandbox = artifact.sandbox.clone();
        let action = |phase| AuditAction::lifecycle("remove_artifact", phase, [("artifact", id.to_string())]);
        let shared = Arc::clone(&self.shared);
        self.recorded(caller, Some(&sandbox), action, async move { shared.remove_artifact(artifact).await }).await
    }
}

impl Shared {
    /// Keeps a file and writes it down, even if whoever waits for it goes. `unwritten` says whose doing it is.
    pub(crate) async fn keep_to_the_end(
        self: &Arc<Self>,
        session: Session,
        unwritten: AuditEvent,
        id: ArtifactId,
        request: KeepFile,
    ) -> Result<Artifact, CoreError> {
        self.refuse_if_stopping()?;
        let shared = Arc::clone(self);
        let work = async move {
            let _unfinished = shared.unfinished.token();
            let kept = shared.keep(&session, unwritten.project.clone(), id, &request).await?;
            let content = ContentDigest { bytes: kept.bytes, sha256: Some(kept.sha256.clone()) };
            let action = AuditAction::Artifact { name: audit_text(kept.name.as_bytes()), content };
            shared.audit.note(AuditEvent { action, ..unwritten }).await;
            Ok(kept)
        };
        tokio::spawn(work).await.unwrap_or(Err(CoreError::Stopping))
    }

    async fn keep(&self, session: &Session, project: ProjectId, id: ArtifactId, request: &KeepFile) -> Result<Artifact, CoreError> {
        let name = name_of(request)?;
        let media_type = request.media_type.as_deref().map(said_type).transpose()?.unwrap_or_default();
        let most = self.config.max_artifact_bytes;
        let content = match session.read_file(&request.path, ByteRange::default(), request.user.as_ref()).await {
            Ok(content) => content,
            Err(error) => return Err(session.explain(error).await),
        };
        if content.info.kind != FileKind::File {
            return Err(Invalid::new("path", "a regular file", escape_untrusted(request.path.as_bytes())).into());
        }
        if content.info.size > most {
            return Err(CoreError::Blob(BlobError::TooLarge { most }));
        }
        let now = Timestamp::now();
        let draft = Artifact {
            id,
            project,
            state: ArtifactState::Keeping,
            sandbox: session.sandbox().id.clone(),
            media_type,
            name,
            path: escape_untrusted(request.path.as_bytes()),
            bytes: content.info.size,
            sha256: String::new(),
            created_at: now,
            expires_at: request.lifetime.map(|lifetime| now.plus(lifetime)),
        };
        let bytes: BlobStream = Box::pin(content.bytes.map(|piece| piece.map_err(io::Error::other)));
        self.put_artifact(draft, bytes, most).await
    }

    /// Enters it, puts its bytes, and shows it; or leaves nothing.
    pub(crate) async fn put_artifact(&self, draft: Artifact, bytes: BlobStream, most: u64) -> Result<Artifact, CoreError> {
        let key = blob_of(&draft.id)?;
        self.store.enter_artifact(self.epoch, &draft, self.config.max_artifacts).await.inspect_err(|error| self.note(error))?;
        let id = draft.id.clone();
        let kept = async {
            let put = self.blobs.put(&key, bytes, most).await?;
            let sniffed = || media_type(&draft.name, &put.first).to_owned();
            let media_type = if draft.media_type.is_empty() { sniffed() } else { draft.media_type.clone() };
            let kept = Artifact { state: ArtifactState::Kept, media_type, bytes: put.bytes, sha256: put.sha256, ..draft };
            self.store.record_artifact(self.epoch, ArtifactState::Keeping, &kept).await.inspect_err(|error| self.note(error))?;
            Ok(kept)
        };
        match kept.await {
            Ok(kept) => {
                if kept.expires_at.is_some() {
                    self.expiries.notify_one();
                }
                info!(artifact = %id, sandbox = %kept.sandbox, project = %kept.project, bytes = kept.bytes, "artifact kept");
                Ok(kept)
            }
            Err(failure) => {
                if let Err(left) = self.drop_artifact(&id).await {
                    warn!(artifact = %id, error = chain(&left), "could not remove what was half kept; the next start does");
                }
                Err(failure)
            }
        }
    }

    /// From here on nobody sees it; its bytes go now, or at the next start.
    pub(crate) async fn remove_artifact(&self, artifact: Artifact) -> Result<(), CoreError> {
        let removing = Artifact { state: ArtifactState::Removing, ..artifact };
        self.store.record_artifact(self.epoch, ArtifactState::Kept, &removing).await.inspect_err(|error| self.note(error))?;
        if let Err(failure) = self.drop_artifact(&removing.id).await {
            warn!(artifact = %removing.id, error = chain(&failure), "could not remove an artifact's bytes; the next start does");
        }
        Ok(())
    }

    async fn drop_artifact(&self, id: &ArtifactId) -> Result<(), CoreError> {
        self.blobs.remove(&blob_of(id)?).await?;
        self.store.forget_artifact(self.epoch, id).await.inspect_err(|error| self.note(error))?;
        Ok(())
    }
}

/// What a server before this one left half kept or half removed goes.
pub(crate) async fn finish_removing(shared: Arc<Shared>, left: Vec<ArtifactId>) {
    for id in left {
        match shared.drop_artifact(&id).await {
            Ok(()) => info!(artifact = %id, "removed an artifact that was half kept or half removed when the server ended"),
            Err(failure) => error!(artifact = %id, error = chain(&failure), "could not remove an artifact; the next start tries again"),
        }
    }
}

fn blob_of(id: &ArtifactId) -> Result<BlobKey, Invalid> {
    format!("artifacts/{id}").parse()
}

fn name_of(request: &KeepFile) -> Result<String, Invalid> {
    let name = match &request.name {
        Some(name) => name.clone(),
        None => {
            let path = request.path.as_bytes();
            escape_untrusted(path.rsplit(|byte| *byte == b'/').find(|part| !part.is_empty()).unwrap_or_default())
        }
    };
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && name != "." && name != "..";
    if fits && !name.contains('/') && !name.chars().any(char::is_control) {
        Ok(name)
    } else {
        Err(Invalid::new("name", format!("1 to {LONGEST_NAME} bytes without '/' and control characters"), name))
    }
}
