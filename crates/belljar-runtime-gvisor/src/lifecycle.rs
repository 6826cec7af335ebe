//! A sandbox's life: made whole or not at all, found again by whoever comes after us, ended without a trace.
//!
//! ```text
//!   reserve ──▶ boot files, config.json ──▶ runsc ──▶ agent answers ──▶ commit        any failure, or nobody waiting any more:
//!      └────────────────────────────────────────────────────────────────── release ◀──┘
//! ```
//! runsc returns when the agent's program has been started, so its failure is known at once, and from then on the port answers or refuses
//! without delay: the agent is asked in short steps only for the few milliseconds it needs to listen.

use std::sync::Arc;
use std::time::Duration;

use belljar_host::{Host, Reservation, write_boot_files};
use belljar_linux::cgroup::Cgroup;
use belljar_ports::{Guest, GuestError, Presence, RuntimeError};
use belljar_types::{EndReason, Execution, IsolationClass, SandboxId, SandboxSpec};
use tokio::time::{Instant, sleep, timeout_at};

use crate::errors::{EngineError, from_host};
use crate::find::{execution, require_whole, sentry_pid};
use crate::launch::{Files, Launch};
use crate::live::Live;
use crate::runsc::Runsc;
use crate::runtime::{GvisorRuntime, blocking};
use crate::{bundle, oom};

const FIRST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

impl GvisorRuntime {
    pub(crate) async fn make(&self, spec: &SandboxSpec) -> Result<Execution, RuntimeError> {
        const OPERATION: &str = "start runsc";
        spec.limits.validate()?;
        let runsc = self.runsc().await.map_err(|error| error.during(OPERATION, &spec.id))?.clone();
        self.files(&spec.id).check_socket_path().map_err(|error| error.during(OPERATION, &spec.id))?;
        let reserved = self.host.reserve(IsolationClass::Gvisor, spec).await;
        let reservation = reserved.map_err(|error| from_host(error, "reserve room", &spec.id))?;
        let unfinished = Unfinished { host: Some(self.host.clone()), id: spec.id.clone() };
        let made = self.start(reservation, runsc).await;
        match &made {
            Ok(_) => unfinished.keep(),
            Err(_) => unfinished.release().await,
        }
        made
    }

    async fn start(&self, reservation: Reservation, runsc: Runsc) -> Result<Execution, RuntimeError> {
        let (record, cgroup) = (reservation.record.clone(), reservation.cgroup.clone());
        let (id, files, deadline) = (record.id.clone(), self.files(&record.id), Instant::now() + self.config.start_limit);
        let silent = |files: &Files| EngineError::Silent { limit: self.config.start_limit, said: files.last_words() };

        let (direct_files, its_files) = (self.config.direct_files, files.clone());
        let launch = blocking(move || prepare_and_launch(&reservation, &runsc, &its_files, direct_files));
        let launched = timeout_at(deadline, launch).await.unwrap_or_else(|_| Err(silent(&files)));
        if let Err(error) = launched {
            return Err(self.failed_start(&id, cgroup, error).await);
        }

        let live = Arc::new(Live::new(&self.host, &record));
        let answered = timeout_at(deadline, first_answer(&*live.guest, &cgroup)).await;
        match answered.unwrap_or_else(|_| Err(FirstAnswer::Engine(silent(&files)))) {
            Ok(()) => {}
            Err(FirstAnswer::Engine(error)) => return Err(self.failed_start(&id, cgroup, error).await),
            Err(FirstAnswer::Agent(source)) => return Err(RuntimeError::Agent { id, source }),
            Err(FirstAnswer::Ended) => return Err(self.ended_early(&id, cgroup, files.last_words()).await),
        }
        self.host.commit(&id).await.map_err(|error| from_host(error, "commit", &id))?;
        self.lives().insert(id, live);
        Ok(execution(&record))
    }

    /// A start that failed because the sandbox's memory limit is too low says so.
    async fn failed_start(&self, id: &SandboxId, cgroup: Cgroup, error: EngineError) -> RuntimeError {
        let said = error.to_string();
        match blocking(move || Ok(cgroup.oom_kills()?)).await {
            Ok(kills) if kills > 0 => RuntimeError::Ended { id: id.clone(), reason: EndReason::OutOfMemory, detail: said },
            _ => error.during("start runsc", id),
        }
    }

    async fn ended_early(&self, id: &SandboxId, cgroup: Cgroup, detail: String) -> RuntimeError {
        let kills = blocking(move || Ok(cgroup.oom_kills()?)).await.unwrap_or(0);
        let reason = if kills > 0 { EndReason::OutOfMemory } else { EndReason::Exited };
        RuntimeError::Ended { id: id.clone(), reason, detail }
    }

    pub(crate) async fn remove(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let record = self.host.record(id).await.map_err(|error| from_host(error, "destroy", id))?;
        if record.is_some_and(|record| record.class != IsolationClass::Gvisor) {
            return Ok(());
        }
        if let Some(live) = self.lives().remove(id) {
            live.ask_to_end();
        }
        let released = self.host.release(id).await;
        released.map_err(|error| from_host(error, "destroy", id))
    }

    pub(crate) async fn freeze(&self, id: &SandboxId) -> Result<(), RuntimeError> {
        let record = self.known(id, "pause").await?;
        match self.presence(&record).await? {
            Presence::Running(_) => {}
            Presence::Frozen(_) => return Ok(()),
            Presence::Ended(_) => return Err(RuntimeError::WrongState { id: id.clone(), state: "ended".to_owned() }),
            Presence::HalfMade => return Err(RuntimeError::WrongState { id: id.clone(), state: "being made".to_owned() }),
        }
        let cgroup = self.host.cgroup(id);
        blocking(move || Ok(cgroup.freeze()?)).await.map_err(|error| error.during("pause", id))
    }

    pub(crate) async fn thaw(&self, id: &SandboxId) -> Result<Execution, RuntimeError> {
        let record = self.known(id, "resume").await?;
        require_whole(&record)?;
        let cgroup = self.host.cgroup(id);
        blocking(move || Ok(cgroup.thaw()?)).await.map_err(|error| error.during("resume", id))?;
        self.take_over(id).await
    }
}

fn prepare_and_launch(reservation: &Reservation, runsc: &Runsc, files: &Files, direct_files: bool) -> Result<(), EngineError> {
    let Reservation { record, cgroup, slot, upper, layers, .. } = reservation;
    write_boot_files(upper, record, slot).map_err(|source| EngineError::BootFiles { upper: upper.clone(), source })?;
    let config = files.bundle.join("config.json");
    bundle::write(&config, &record.spec, &files.root, &slot.netns).map_err(|source| EngineError::Write { path: config, source })?;
    cgroup.set_pids_limit(bundle::host_tasks(record.spec.limits.pids))?;
    let disk = upper.parent().unwrap_or(upper);
    let memory_bytes = record.spec.limits.memory_bytes;
    Launch { runsc, files, layers, disk, cgroup: &cgroup.join_paths(), memory_bytes, direct_files }.run()?;
    let protected = sentry_pid(files).and_then(|sentry| oom::prefer_stubs(cgroup, sentry));
    if !matches!(protected, Ok(true)) {
        tracing::warn!(sandbox_id = %record.id, ?protected, "running out of memory may end this sandbox and not one process of it");
    }
    Ok(())
}

/// How the first question to an agent can go wrong.
enum FirstAnswer {
    Engine(EngineError),
    Agent(GuestError),
    Ended,
}

/// Asks until the agent listens. A refused connection costs nothing and means that it does not listen yet, or never will.
async fn first_answer(agent: &impl Guest, cgroup: &Cgroup) -> Result<(), FirstAnswer> {
    let mut pause = FIRST_PAUSE;
    loop {
        match agent.hello().await {
            Ok(_) => return Ok(()),
            Err(GuestError::Lost { .. }) => {}
            Err(other) => return Err(FirstAnswer::Agent(other)),
        }
        if !cgroup.is_populated().map_err(|error| FirstAnswer::Engine(error.into()))? {
            return Err(FirstAnswer::Ended);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A sandbox that is being made. If whoever waits for it goes away, what there is of it is removed in the background.
struct Unfinished {
    host: Option<Arc<Host>>,
    id: SandboxId,
}

impl Unfinished {
    fn keep(mut self) {
        self.host = None;
    }

    async fn release(mut self) {
        if let Some(host) = self.host.take() {
            release(&host, &self.id).await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let (Some(host), Ok(runtime)) = (self.host.take(), tokio::runtime::Handle::try_current()) {
            let id = self.id.clone();
            runtime.spawn(async move { release(&host, &id).await });
        }
    }
}

async fn release(host: &Host, id: &SandboxId) {
    if let Err(error) = host.release(id).await {
        tracing::error!(sandbox_id = %id, error = &error as &dyn std::error::Error, "remains of a failed start could not be removed");
    }
}
