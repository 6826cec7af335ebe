//! Making one sandbox: it is whole when its agent has answered, and otherwise it is not there.
//!
//! ```text
//!   reserve ──▶ boot files, config.json ──▶ runsc ──▶ agent answers ──▶ limit the processor ──▶ commit
//!      └─────────────────────────────────────────────────────── any failure, or called off: remove ◀┘
//! ```
//! runsc returns when the agent's program has been started, so its failure is known at once, and from then on the port answers or refuses
//! without delay: the agent is asked in short steps only for the few milliseconds it needs to listen.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use belljar_host::{Making, Origin, Record, Reservation, renew_boot_files, write_boot_files};
use belljar_linux::cgroup::Cgroup;
use belljar_ports::{Guest, GuestError, RuntimeError};
use belljar_types::{EndReason, Execution, ExecutionId, IsolationClass, SandboxId, SandboxSpec, SnapshotId};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::errors::{EngineError, from_host};
use crate::find::{execution, sentry_pid};
use crate::launch::{Files, Launch};
use crate::live::Live;
use crate::runsc::Runsc;
use crate::runtime::{Inner, blocking};
use crate::{bundle, oom, restore};

/// Between two tries to reach an agent that does not listen yet: it needs about twenty.
const NEXT_TRY: Duration = Duration::from_millis(1);
/// After this many, something is slow and haste does not help.
const HASTY_TRIES: u32 = 100;
const LATER_TRY: Duration = Duration::from_millis(10);
/// What is stopped while it starts may not have been born when it was first killed.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// Makes it, or leaves nothing, whether or not the caller waits for the end of it.
pub(crate) async fn make(inner: Arc<Inner>, spec: SandboxSpec, from: Option<SnapshotId>) -> Result<Execution, RuntimeError> {
    let (makings, id) = (Arc::clone(&inner.makings), spec.id.clone());
    let (remover, unwanted) = (Arc::clone(&inner), id.clone());
    let work = |making: Arc<Making>| async move { inner.create(&spec, from.as_ref(), &making).await };
    makings.make(&id, work, move || async move { remover.remove(&unwanted).await }).await
}

/// Brings a paused sandbox back, or leaves it paused.
pub(crate) async fn bring_back(inner: &Arc<Inner>, id: &SandboxId, run: &ExecutionId, making: &Making) -> Result<Execution, RuntimeError> {
    const OPERATION: &str = "resume";
    let runsc = inner.runsc().await.map_err(|error| error.during(OPERATION, id))?.clone();
    let reservation = inner.host.wake(id, run).await.map_err(|error| from_host(error, OPERATION, id))?;
    let made = inner.bring_up(reservation, runsc, making).await;
    if made.is_err()
        && let Err(error) = inner.host.rest_again(id).await
    {
        tracing::error!(sandbox = %id, %error, "a failed resume could not be taken back; it is when the host is next opened");
    }
    made
}

impl Inner {
    async fn create(&self, spec: &SandboxSpec, from: Option<&SnapshotId>, making: &Making) -> Result<Execution, RuntimeError> {
        const OPERATION: &str = "start runsc";
        let id = &spec.id;
        spec.limits.validate()?;
        let runsc = self.runsc().await.map_err(|error| error.during(OPERATION, id))?.clone();
        self.files(id).check_socket_path().map_err(|error| error.during(OPERATION, id))?;
        let reserved = match from {
            None => self.host.reserve(IsolationClass::Gvisor, spec).await,
            Some(snapshot) => self.host.reserve_fork(IsolationClass::Gvisor, spec, snapshot).await,
        };
        let reservation = reserved.map_err(|error| from_host(error, "reserve room", id))?;
        let made = self.bring_up(reservation, runsc, making).await;
        if made.is_err()
            && let Err(error) = self.remove(id).await
        {
            tracing::error!(sandbox = %id, %error, "a sandbox that could not be made could not be removed either; the inventory shows it");
        }
        made
    }

    async fn bring_up(&self, reservation: Reservation, runsc: Runsc, making: &Making) -> Result<Execution, RuntimeError> {
        let (record, cgroup) = (reservation.record.clone(), reservation.cgroup.clone());
        let origin = reservation.origin.clone();
        let (id, files, deadline) = (record.id.clone(), self.files(&record.id), Instant::now() + self.config.start_limit);
        let silent = || EngineError::Silent { limit: self.config.start_limit, said: files.last_words() };
        if making.is_called_off() {
            return Err(making.unwanted());
        }

        let (direct_files, its_files, never_rests) = (self.config.direct_files, files.clone(), runsc.never_rests());
        let mut launch = pin!(blocking(move || prepare_and_launch(&reservation, &runsc, &its_files, direct_files)));
        let launched = tokio::select! {
            launched = timeout_at(deadline, &mut launch) => launched,
            () = making.called_off() => {
                stop(&cgroup, launch).await;
                return Err(making.unwanted());
            }
        };
        let launched = match launched {
            Ok(launched) => launched,
            Err(_) => {
                stop(&cgroup, launch).await;
                Err(EngineError::Slow { limit: self.config.start_limit, said: files.last_words() })
            }
        };
        if let Err(error) = launched {
            return Err(failed_start(&id, cgroup, error).await);
        }

        let live = Arc::new(Live::new(&self.host, &record, self.files(&record.id), never_rests));
        let answer = async {
            if let Origin::Memory { identity, .. } = &origin {
                self.tell_who_it_is(&record, identity, &cgroup).await?;
            }
            first_answer(&*live.guest, &cgroup).await
        };
        let answered = tokio::select! {
            answered = timeout_at(deadline, answer) => answered,
            () = making.called_off() => return Err(making.unwanted()),
        };
        match answered.unwrap_or_else(|_| Err(FirstAnswer::Engine(silent()))) {
            Ok(()) => {}
            Err(FirstAnswer::Engine(error)) => return Err(failed_start(&id, cgroup, error).await),
            Err(FirstAnswer::Agent(source)) => return Err(RuntimeError::Agent { id, source }),
            Err(FirstAnswer::Ended) => return Err(ended_early(&id, cgroup, files.last_words()).await),
        }
        if let Origin::Memory { .. } = origin {
            restore::renew_names(&*live.guest, &record).await;
        }
        self.finish(&record, cgroup).await?;
        self.lives().insert(id, live);
        Ok(execution(&record))
    }

    /// From here on it is the caller's, within its limits.
    async fn finish(&self, record: &Record, cgroup: Cgroup) -> Result<(), RuntimeError> {
        let (id, cpu_millis) = (&record.id, record.spec.limits.cpu_millis);
        let limited = blocking(move || Ok(cgroup.set_cpu_limit(Some(cpu_millis))?)).await;
        limited.map_err(|error| error.during("limit the processor time", id))?;
        self.host.commit(id).await.map_err(|error| from_host(error, "commit", id))
    }
}

/// A start that failed because the sandbox's memory limit is too low says so.
async fn failed_start(id: &SandboxId, cgroup: Cgroup, error: EngineError) -> RuntimeError {
    let said = error.to_string();
    match blocking(move || Ok(cgroup.oom_kills()?)).await {
        Ok(kills) if kills > 0 => RuntimeError::Ended { id: id.clone(), reason: EndReason::OutOfMemory, detail: said },
        _ => error.during("start runsc", id),
    }
}

async fn ended_early(id: &SandboxId, cgroup: Cgroup, detail: String) -> RuntimeError {
    let kills = blocking(move || Ok(cgroup.oom_kills()?)).await.unwrap_or(0);
    let reason = if kills > 0 { EndReason::OutOfMemory } else { EndReason::Exited };
    RuntimeError::Ended { id: id.clone(), reason, detail }
}

fn prepare_and_launch(reservation: &Reservation, runsc: &Runsc, files: &Files, direct_files: bool) -> Result<(), EngineError> {
    let Reservation { record, cgroup, slot, upper, layers, origin, volumes, .. } = reservation;
    let boot_files = match origin {
        Origin::Blank => write_boot_files(upper, record, slot),
        Origin::Disk => renew_boot_files(upper, record, slot),
        // Nothing on this disk may differ from what the memory remembers of it.
        Origin::Memory { .. } => Ok(()),
    };
    boot_files.map_err(|source| EngineError::BootFiles { upper: upper.clone(), source })?;
    let image = if let Origin::Memory { image, .. } = origin { Some(image.as_path()) } else { None };
    let config = files.bundle.join("config.json");
    let volumes = files.places_for(volumes);
    bundle::write(&config, &record.spec, &files.root, &slot.netns, &volumes)
        .map_err(|source| EngineError::Write { path: config, source })?;
    cgroup.set_pids_limit(bundle::host_tasks(record.spec.limits.pids))?;
    // Until the agent has answered, nothing of the sandbox's own runs; with its share alone, the engine's start would stand still in between.
    cgroup.set_cpu_limit(None)?;
    let disk = upper.parent().unwrap_or(upper);
    let memory_bytes = record.spec.limits.memory_bytes;
    Launch { runsc, files, layers, disk, cgroup: &cgroup.membership()?, memory_bytes, direct_files, image, volumes: &volumes }.run()?;
    let protected = sentry_pid(files).and_then(|sentry| oom::prefer_stubs(cgroup, sentry, image.is_some()));
    if !matches!(protected, Ok(true)) {
        tracing::warn!(sandbox = %record.id, ?protected, "running out of memory may end this sandbox and not one process of it");
    }
    Ok(())
}

/// Ends a start that nobody waits for, and returns when its thread has noticed.
async fn stop(cgroup: &Cgroup, mut launch: std::pin::Pin<&mut impl Future<Output = Result<(), EngineError>>>) {
    loop {
        let group = cgroup.clone();
        if let Err(error) = blocking(move || Ok(group.kill()?)).await {
            tracing::error!(group = %cgroup.path().display(), %error, "a start that is not wanted could not be stopped; it is waited for");
        }
        if timeout(KILL_AGAIN, &mut launch).await.is_ok() {
            return;
        }
    }
}

/// How the first question to an agent can go wrong.
pub(crate) enum FirstAnswer {
    Engine(EngineError),
    Agent(GuestError),
    Ended,
}

/// Asks until the agent listens. A refused connection costs nothing and means that it does not listen yet, or never will.
pub(crate) async fn first_answer(agent: &impl Guest, cgroup: &Cgroup) -> Result<(), FirstAnswer> {
    let mut tries = 0;
    loop {
        match agent.hello().await {
            Ok(_) => return Ok(()),
            Err(GuestError::Lost { .. }) => {}
            Err(other) => return Err(FirstAnswer::Agent(other)),
        }
        if !cgroup.is_populated().map_err(|error| FirstAnswer::Engine(error.into()))? {
            return Err(FirstAnswer::Ended);
        }
        tries += 1;
        sleep(if tries < HASTY_TRIES { NEXT_TRY } else { LATER_TRY }).await;
    }
}
