//! What a template starts in a sandbox before anybody may use it.
//!
//! ```text
//!   agent answers ─► start the command ─► wait: ready │ it failed │ time is over ─► the sandbox runs, or was not made
//! ```
//! Both processes have ids made from the run's, so that a server which comes back half-way through asks for the same ones and starts nothing
//! twice. The check is repeated inside the sandbox by one process; the host waits for that process's end and asks for nothing meanwhile.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Guest, GuestError, RuntimeError};
use belljar_types::{
    ExecutionId, ExitStatus, Offsets, OutputEvent, ProcessId, ProcessSpec, ReadyCheck, SandboxState, Signal, StartUp, Termination,
    escape_untrusted,
};
use futures_util::StreamExt;

use crate::owner::Owner;
use crate::{CoreError, chain};

/// What a template's start command is tagged with.
pub(crate) const TAG: &str = "start";
/// The shell that people know if it is there; the command is its argument, so that nothing in it needs quoting.
pub(crate) const SHELL: &str = r#"if [ -x /bin/bash ]; then exec /bin/bash -l -c "$1"; else exec /bin/sh -l -c "$1"; fi"#;
/// The same again until it succeeds.
const UNTIL: &str = r#"if [ -x /bin/bash ]; then s=/bin/bash; else s=/bin/sh; fi; until "$s" -l -c "$1"; do sleep 0.1; done"#;
/// How often the ports of a sandbox are looked at: at first, and at most.
const LOOK_AFTER: Duration = Duration::from_millis(10);
const LOOK_AFTER_MAX: Duration = Duration::from_millis(250);
/// How much of what a failed command said is told.
const LAST_WORDS: usize = 1000;
/// How long a dead process's output may take to be read.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);

/// Why a sandbox did not become ready.
#[derive(Debug, thiserror::Error)]
enum NotReady {
    #[error("reach its agent")]
    Runtime(#[from] RuntimeError),
    #[error("run its template's start command")]
    Guest(#[from] GuestError),
    #[error("name the process of its start command")]
    Id(#[from] belljar_types::Invalid),
    #[error("its template's start command {how} before it was ready{}", said(last_words))]
    Ended { how: String, last_words: String },
    #[error("it was not ready within {} s; the last words of its start command{}", within.as_secs(), said(last_words))]
    Late { within: Duration, last_words: String },
}

fn said(last_words: &str) -> String {
    if last_words.is_empty() { ": (none)".to_owned() } else { format!(": {last_words}") }
}

impl Owner {
    /// Whether there is something to start.
    pub(crate) fn has_start(&self) -> bool {
        self.sandbox.spec.defaults.start.is_some()
    }

    /// Whether what its template starts runs already, in the memory that it begins with.
    pub(crate) fn begins_with_memory(&self) -> bool {
        self.sandbox.begins_with.as_ref().is_some_and(|beginning| beginning.memory)
    }

    /// Whether what its template starts may not have been started when the server before ended.
    pub(crate) fn is_starting(&self) -> bool {
        match self.sandbox.state {
            SandboxState::Creating => self.has_start() && !self.begins_with_memory(),
            SandboxState::Resuming => self.boots_anew(),
            _ => false,
        }
    }

    /// Starts what the template starts and waits until the sandbox is ready. Asked again in the same run, it starts nothing twice.
    pub(crate) async fn start_up(&self, run: &ExecutionId) -> Result<(), CoreError> {
        let Some(start) = &self.sandbox.spec.defaults.start else { return Ok(()) };
        let done = match self.runtime.guest(&self.sandbox.id).await {
            Ok(guest) => bring_up(&guest, start, run).await,
            Err(failure) => Err(failure.into()),
        };
        done.map_err(|failure| CoreError::StartFailed { id: self.sandbox.id.clone(), detail: chain(&failure) })
    }
}

async fn bring_up(guest: &Arc<dyn Guest>, start: &StartUp, run: &ExecutionId) -> Result<(), NotReady> {
    let within = start.within();
    let started = match &start.command {
        Some(command) => {
            let id: ProcessId = format!("start-{run}").parse()?;
            let spec =
                ProcessSpec { id: id.clone(), tag: Some(TAG.to_owned()), ..ProcessSpec::new(["/bin/sh", "-c", SHELL, TAG, command]) };
            guest.start(&spec).await?;
            Some(id)
        }
        None => None,
    };
    let Some(check) = &start.ready else { return Ok(()) };
    let outcome = tokio::time::timeout(within, async {
        tokio::select! {
            ready = ready(guest, check, run, within) => ready,
            ended = failed(guest, started.as_ref(), within) => ended,
        }
    });
    let failure = match outcome.await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(failure)) => failure,
        Err(_late) => NotReady::Late { within, last_words: String::new() },
    };
    // Whatever it still does is of no use to anybody, and its last words end with it.
    let Some(id) = started else { return Err(failure) };
    let _gone = guest.signal(&id, Signal::KILL).await;
    let words = tokio::time::timeout(LAST_WORDS_WITHIN, last_words(guest, &id)).await.unwrap_or_default();
    Err(match failure {
        NotReady::Ended { how, .. } => NotReady::Ended { how, last_words: words },
        NotReady::Late { within, .. } => NotReady::Late { within, last_words: words },
        other => other,
    })
}

async fn ready(guest: &Arc<dyn Guest>, check: &ReadyCheck, run: &ExecutionId, within: Duration) -> Result<(), NotReady> {
    match check {
        ReadyCheck::Port(port) => {
            let mut pause = LOOK_AFTER;
            while !guest.ports().await?.iter().any(|listening| listening.port == *port) {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK_AFTER_MAX);
            }
            Ok(())
        }
        ReadyCheck::Command(command) => {
            let id: ProcessId = format!("ready-{run}").parse()?;
            let argv = ["/bin/sh", "-c", UNTIL, "ready", command];
            let spec = ProcessSpec { id: id.clone(), deadline: Some(within), ..ProcessSpec::new(argv) };
            guest.start(&spec).await?;
            match guest.wait(&id, within).await? {
                Some(ExitStatus { termination: Termination::Exited(0), .. }) => Ok(()),
                _ => Err(NotReady::Late { within, last_words: String::new() }),
            }
        }
    }
}

/// Waits for a start command that fails. One that ends well has left something in the background, and one that goes on is what it should be.
async fn failed(guest: &Arc<dyn Guest>, id: Option<&ProcessId>, within: Duration) -> Result<(), NotReady> {
    let ended = match id {
        Some(id) => guest.wait(id, within).await?,
        None => None,
    };
    let how = match ended.map(|exit| exit.termination) {
        Some(Termination::Exited(0)) | None => std::future::pending().await,
        Some(Termination::Exited(code)) => format!("exited with code {code}"),
        Some(Termination::Signaled(signal)) => format!("was ended by signal {signal}"),
    };
    Err(NotReady::Ended { how, last_words: String::new() })
}

/// The end of what a process wrote, safe to print.
async fn last_words(guest: &Arc<dyn Guest>, id: &ProcessId) -> String {
    let mut kept: Vec<u8> = Vec::new();
    if let Ok(mut output) = guest.attach(id, Offsets::default()).await {
        while let Some(Ok(event)) = output.next().await {
            match event {
                OutputEvent::Data { bytes, .. } => {
                    kept.extend_from_slice(&bytes);
                    kept.drain(..kept.len().saturating_sub(LAST_WORDS));
                }
                OutputEvent::Gap { .. } => {}
                OutputEvent::Exit(_) => break,
            }
        }
    }
    escape_untrusted(kept.trim_ascii())
}
