//! Making one sandbox: it is whole when its agent has answered, and otherwise it is not there.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use belljar_host::{Making, RecordState, Reservation};
use belljar_ports::{GuestError, GuestInfo, RuntimeError};
use belljar_types::{Execution, ExecutionId, IsolationClass, SandboxId, SandboxSpec, SnapshotId, escape_untrusted};
use tokio::time::Instant;

use crate::errors::{ContainerError, from_host};
use crate::lifecycle::Inner;
use crate::live::{Live, execution};

/// Between two tries to reach an agent that does not listen yet: it needs about a millisecond.
const NEXT_TRY: Duration = Duration::from_micros(150);
/// After this many, something is slow and haste does not help.
const HASTY_TRIES: u32 = 40;
const LATER_TRY: Duration = Duration::from_millis(5);
const LAST_WORDS_MAX: usize = 4096;

/// Makes it, or leaves nothing, whether or not the caller waits for the end of it.
pub(crate) async fn make(inner: Arc<Inner>, spec: SandboxSpec, from: Option<SnapshotId>) -> Result<Execution, RuntimeError> {
    let (makings, id) = (Arc::clone(&inner.makings), spec.id.clone());
    let (remover, unwanted) = (Arc::clone(&inner), id.clone());
    let work = |making: Arc<Making>| async move { create(&inner, &spec, from.as_ref(), &making).await };
    makings.make(&id, work, move || async move { remover.remove(&unwanted).await }).await
}

/// Makes it, or leaves nothing. Whoever calls it holds on to the making until nothing is left to do.
async fn create(inner: &Arc<Inner>, spec: &SandboxSpec, from: Option<&SnapshotId>, making: &Making) -> Result<Execution, RuntimeError> {
    let id = &spec.id;
    let reserved = match from {
        None => inner.host.reserve(IsolationClass::Container, spec).await,
        Some(snapshot) => inner.host.reserve_fork(IsolationClass::Container, spec, snapshot).await,
    };
    let reservation = reserved.map_err(|error| from_host("reserve the sandbox's resources", id, error))?;
    let made = bring_up(inner, id, reservation, making).await;
    if made.is_err()
        && let Err(error) = inner.remove(id).await
    {
        tracing::error!(sandbox = %id, %error, "a sandbox that could not be made could not be removed either; the inventory shows it");
    }
    made
}

/// Starts a paused sandbox anew on its disk, or leaves it paused.
pub(crate) async fn bring_back(inner: &Arc<Inner>, id: &SandboxId, run: &ExecutionId, making: &Making) -> Result<Execution, RuntimeError> {
    let woken = inner.host.wake(id, run).await;
    let reservation = woken.map_err(|error| from_host("wake the sandbox", id, error))?;
    let made = bring_up(inner, id, reservation, making).await;
    if made.is_err() {
        if let Err(error) = inner.host.rest_again(id).await {
            tracing::error!(sandbox = %id, %error, "a failed resume could not be taken back; it is when the host is next opened");
        }
        inner.forget(id).await;
    }
    made
}

/// A start cannot be stopped half-way: being called off is heeded before and after it.
async fn bring_up(inner: &Arc<Inner>, id: &SandboxId, reservation: Reservation, making: &Making) -> Result<Execution, RuntimeError> {
    if making.is_called_off() {
        return Err(making.unwanted());
    }
    let starter = Arc::clone(&inner.starter);
    let started = tokio::task::spawn_blocking(move || {
        let started = starter.start(&reservation);
        (started, reservation.record)
    });
    let (started, mut record) = started.await.map_err(|_| ContainerError::Stopped.during("start the sandbox", id))?;
    let started = started.map_err(|error| error.during("start the sandbox", id))?;
    let live = Live::watch(&inner.host, &record, started.process.pidfd);
    let live = Arc::new(live.map_err(|source| ContainerError::Watch(source).during("watch the sandbox", id))?);
    inner.keep(id, Arc::clone(&live));
    tokio::select! {
        () = making.called_off() => return Err(making.unwanted()),
        reason = live.ended() => {
            return Err(RuntimeError::Ended { id: id.clone(), reason, detail: last_words(started.last_words) });
        }
        answer = first_answer(&live, inner.config.agent_deadline) => {
            let info = answer.map_err(|source| RuntimeError::Agent { id: id.clone(), source })?;
            expect_identity(&info, &live.execution)?;
        }
    }
    inner.host.commit(id).await.map_err(|error| from_host("commit the sandbox", id, error))?;
    record.state = RecordState::Running;
    Ok(execution(&record))
}

/// The agent's first answer. At its door the first call waits for it; by network connections are refused until it listens, a few milliseconds later.
async fn first_answer(live: &Live, at_most: Duration) -> Result<GuestInfo, GuestError> {
    let deadline = Instant::now() + at_most;
    let mut tries = 0;
    loop {
        match live.guest.hello().await {
            Err(GuestError::Lost { .. }) if Instant::now() < deadline => tries += 1,
            answer => return answer,
        }
        pause(tries).await;
    }
}

/// The async timer counts in whole milliseconds, which is as long as the agent needs in all.
async fn pause(tries: u32) {
    if tries > HASTY_TRIES || tokio::task::spawn_blocking(|| std::thread::sleep(NEXT_TRY)).await.is_err() {
        tokio::time::sleep(LATER_TRY).await;
    }
}

fn expect_identity(info: &GuestInfo, execution: &Execution) -> Result<(), RuntimeError> {
    if info.sandbox == execution.sandbox && info.execution == execution.id {
        return Ok(());
    }
    let detail = format!("it says it is run {} of sandbox {}", info.execution, info.sandbox);
    let source = GuestError::Misbehaved { operation: "say who it is", detail };
    Err(RuntimeError::Agent { id: execution.sandbox.clone(), source })
}

/// What the agent wrote before it ended, made safe to print.
fn last_words(pipe: OwnedFd) -> String {
    let mut words = vec![0; LAST_WORDS_MAX];
    let length = std::fs::File::from(pipe).read(&mut words).unwrap_or(0);
    words.truncate(length);
    escape_untrusted(&words).to_string()
}
