//! What programs inside ask for: files to keep (`belljar-keep`).
//!
//! ```text
//!   owner: it runs ─► listen ─► agent tells a wish ─► keep the file, as whoever asked ─► answer ─► the next
//! ```
//! Nobody polls: the agent tells, over one connection that is silent otherwise. Wishes are granted one after the other and not faster than a
//! bound, so that a sandbox that asks without end keeps nobody busy but itself. A wish whose answer was lost is told again, to this server or
//! the next, and has the same artifact: its id follows from the sandbox's and the wish's.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{BlobError, GuestError, StoreError};
use belljar_types::{Actor, Artifact, ArtifactId, AuditAction, AuditEvent, KeepWish, ProjectId, SandboxId};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::activity::Activity;
use crate::artifacts::KeepFile;
use crate::owner::Owner;
use crate::recorded::{Recorded, Witness};
use crate::shared::{Handle, Shared};
use crate::{CoreError, Session, chain};

/// A sandbox that just began to run is wanted for something else first.
const FIRST_CALLS_FIRST: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// So many wishes at once, then one each [`EVERY`].
const BURST: u32 = 20;
const EVERY: Duration = Duration::from_secs(1);
/// How often one that is half kept is looked at again: whoever was keeping it, before the line was lost, is about to let go.
const HALF_KEPT: u32 = 10;

/// Ends the listening when dropped. What is being kept is kept to its end.
pub(crate) struct Listening(AbortHandle);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Owner {
    /// Listens to what programs in the sandbox ask for.
    pub(crate) fn listen(&self) -> Option<Listening> {
        let ear = Ear {
            handle: self.shared.handle(&self.sandbox.id)?,
            shared: Arc::clone(&self.shared),
            sandbox: self.sandbox.id.clone(),
            project: self.sandbox.project.clone(),
        };
        Some(Listening(tokio::spawn(ear.listen()).abort_handle()))
    }
}

struct Ear {
    shared: Arc<Shared>,
    handle: Handle,
    sandbox: SandboxId,
    project: ProjectId,
}

impl Ear {
    async fn listen(self) {
        let mut pause = FIRST_CALLS_FIRST;
        let mut allowance = Allowance::new();
        loop {
            tokio::time::sleep(pause).await;
            match self.hear(&mut allowance).await {
                // Another server listens, or the agent is from a time before there was anything to hear.
                Ok(()) | Err(CoreError::Guest(GuestError::TooOld { .. })) => return,
                Err(failure) => debug!(sandbox = %self.sandbox, error = chain(&failure), "stopped hearing what a sandbox asks for"),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn hear(&self, allowance: &mut Allowance) -> Result<(), CoreError> {
        let handle = self.handle.clone();
        let guest = handle.runtime.guest(&self.sandbox).await?;
        let witness =
            Witness::new(self.shared.audit.clone(), self.event(AuditAction::Log { detail: String::new() }), handle.told, handle.counts);
        // Nobody outside uses the sandbox by this: it does not keep itself from being idle.
        let session = Session::new(Arc::new(Recorded::new(guest, witness, None)), handle.view, Arc::new(Activity::new()));
        let mut wishes = session.wishes().await?;
        while let Some(wish) = wishes.next().await {
            let wish = wish?;
            allowance.take().await;
            let granted = self.grant(&session, &wish).await;
            let answer = granted.as_ref().map(|kept| &kept.id).map_err(String::as_str);
            session.answer_wish(wish.id, answer).await?;
        }
        Ok(())
    }

    /// Keeps what is wished for; says why not, in words that tell nothing of the host.
    async fn grant(&self, session: &Session, wish: &KeepWish) -> Result<Artifact, String> {
        let id = ArtifactId::of_digest(&Sha256::new().chain_update(self.sandbox.as_str()).chain_update(wish.id.0).finalize().into());
        let mut looks = 0;
        loop {
            match self.keep(session, wish, id.clone()).await {
                Ok(kept) => return Ok(kept),
                Err(CoreError::Store(StoreError::Exists { .. })) => {}
                Err(failure) => return Err(self.refusal(&failure)),
            }
            match self.shared.store.artifact(&self.project, &id).await {
                Ok(Some(kept)) => return Ok(kept),
                Ok(None) if looks < HALF_KEPT => looks += 1,
                Ok(None) => return Err("it was being kept when the server ended; try again".to_owned()),
                Err(failure) => return Err(self.refusal(&failure.into())),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn keep(&self, session: &Session, wish: &KeepWish, id: ArtifactId) -> Result<Artifact, CoreError> {
        let request = KeepFile {
            path: wish.path.clone(),
            user: Some(wish.user.clone()),
            name: wish.name.clone(),
            media_type: wish.media_type.clone(),
            lifetime: None,
        };
        self.shared.keep_to_the_end(session.clone(), self.event(AuditAction::Log { detail: String::new() }), id, request).await
    }

    fn refusal(&self, failure: &CoreError) -> String {
        match failure {
            CoreError::Invalid(invalid) => invalid.to_string(),
            CoreError::Guest(GuestError::Invalid(invalid)) => invalid.to_string(),
            CoreError::Guest(GuestError::Refused { message, .. }) => message.clone(),
            CoreError::Blob(error @ BlobError::TooLarge { .. }) => error.to_string(),
            CoreError::Store(error @ StoreError::OverQuota { .. }) => error.to_string(),
            CoreError::Stopping => "the server is stopping; try again".to_owned(),
            other => {
                warn!(sandbox = %self.sandbox, error = chain(other), "could not keep a file that a program inside asked to have kept");
                format!("the server could not keep it ({})", other.code())
            }
        }
    }

    fn event(&self, action: AuditAction) -> AuditEvent {
        AuditEvent { project: self.project.clone(), sandbox: Some(self.sandbox.clone()), actor: Actor::default(), action }
    }
}

/// How many wishes may be granted now.
struct Allowance {
    left: u32,
    counted_at: Instant,
}

impl Allowance {
    fn new() -> Self {
        Self { left: BURST, counted_at: Instant::now() }
    }

    /// Takes one, or waits for it.
    async fn take(&mut self) {
        let since = self.counted_at.elapsed();
        let more = u32::try_from(since.as_millis() / EVERY.as_millis()).unwrap_or(BURST);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(BURST);
            self.counted_at += EVERY * more.min(BURST);
            if more >= BURST {
                self.counted_at = Instant::now();
            }
        }
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        tokio::time::sleep_until(self.counted_at + EVERY).await;
        self.counted_at += EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_without_end_is_served_once_a_second() {
        let begun = Instant::now();
        let mut allowance = Allowance::new();
        for _ in 0..BURST {
            allowance.take().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            allowance.take().await;
        }
        assert_eq!(begun.elapsed(), EVERY * 10);
        tokio::time::sleep(EVERY * 1000).await;
        let rested = Instant::now();
        for _ in 0..BURST {
            allowance.take().await;
        }
        assert_eq!(rested.elapsed(), Duration::ZERO);
        allowance.take().await;
        assert_eq!(rested.elapsed(), EVERY, "no more than a burst is saved");
    }
}
