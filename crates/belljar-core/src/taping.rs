//! Terminals are recorded by a reader of their own, so that a tape has what the program showed whoever looked on, and looking away loses nothing.
//! A tape that fails is ended with an error in the log; the terminal goes on.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Guest, GuestError, TapeInfo, TapeName, Tapes};
use belljar_types::{AuditAction, Offsets, OutputEvent, Phase, ProcessId, ProcessSpec, PtySize, SandboxId, Scope, StreamKind};
use futures_util::StreamExt;
use tracing::{error, warn};

use crate::recording::event;
use crate::{Caller, CoreError, Service};

/// How often, and how long apart, an agent is asked again that went silent: a pause cuts every stream.
const TRIES: u32 = 60;
const BETWEEN: Duration = Duration::from_secs(1);

/// Whether and where the terminals of a sandbox are recorded.
#[derive(Clone)]
pub(crate) struct Taping {
    pub(crate) tapes: Arc<dyn Tapes>,
    pub(crate) project: belljar_types::ProjectId,
    pub(crate) sandbox: SandboxId,
}

impl Taping {
    fn name(&self, process: &ProcessId) -> TapeName {
        TapeName { project: self.project.clone(), sandbox: self.sandbox.clone(), process: process.clone() }
    }

    /// Records a process that was started, if it has a terminal.
    pub(crate) fn started(&self, guest: &Arc<dyn Guest>, spec: &ProcessSpec) {
        let Some(size) = spec.pty else { return };
        let name = self.name(&spec.id);
        let words: Vec<_> = spec.argv.iter().map(|word| String::from_utf8_lossy(word)).collect();
        match self.tapes.begin(&name, size, &words.join(" ")) {
            Ok(true) => drop(tokio::spawn(record(Arc::clone(&self.tapes), Arc::clone(guest), name))),
            Ok(false) => {}
            Err(failure) => error!(sandbox = %self.sandbox, process = %spec.id, error = %failure, "could not begin to record a terminal"),
        }
    }

    pub(crate) fn resized(&self, process: &ProcessId, size: PtySize) {
        if let Err(failure) = self.tapes.resized(&self.name(process), size) {
            error!(sandbox = %self.sandbox, %process, error = %failure, "could not record a terminal's size");
        }
    }
}

async fn record(tapes: Arc<dyn Tapes>, guest: Arc<dyn Guest>, name: TapeName) {
    let (mut at, mut tries) = (Offsets::default(), 0);
    let ended = loop {
        match follow(&*tapes, &*guest, &name, &mut at).await {
            Ok(how) => break Ok(how),
            Err(Stop::Tape(failure)) => break Err(failure),
            Err(Stop::Agent) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(BETWEEN).await;
            }
            Err(Stop::Agent) => break Ok("the sandbox ended or stands still".to_owned()),
        }
    };
    if let Err(failure) = ended.and_then(|how| tapes.marked(&name, &how)) {
        warn!(sandbox = %name.sandbox, process = %name.process, error = %failure, "a terminal is not recorded any more");
    }
    tapes.end(&name);
}

enum Stop {
    Tape(std::io::Error),
    Agent,
}

/// Writes down what a terminal shows from some byte on, until its process ends; says how it did.
async fn follow(tapes: &dyn Tapes, guest: &dyn Guest, name: &TapeName, at: &mut Offsets) -> Result<String, Stop> {
    let mut output = match guest.attach(&name.process, *at).await {
        Ok(output) => output,
        Err(GuestError::NoProcess { .. }) => return Ok("the process is gone".to_owned()),
        Err(_) => return Err(Stop::Agent),
    };
    while let Some(event) = output.next().await {
        match event.map_err(|_| Stop::Agent)? {
            OutputEvent::Data { stream: StreamKind::Stdout, offset, bytes } => {
                tapes.shown(name, &bytes).map_err(Stop::Tape)?;
                at.stdout = offset + bytes.len() as u64;
            }
            OutputEvent::Gap { stream: StreamKind::Stdout, from, to } => {
                tapes.marked(name, &format!("{} bytes are missing", to.saturating_sub(from))).map_err(Stop::Tape)?;
                at.stdout = to;
            }
            OutputEvent::Exit(_) => return Ok("the process ended".to_owned()),
            // A terminal has one stream.
            OutputEvent::Data { .. } | OutputEvent::Gap { .. } => {}
        }
    }
    Err(Stop::Agent)
}

impl Service {
    /// The recorded terminals of a sandbox of the caller's project, whether it lives or not; oldest first.
    pub async fn recordings(&self, caller: &Caller, sandbox: &SandboxId) -> Result<Vec<TapeInfo>, CoreError> {
        caller.require(Scope::Read)?;
        let (project, id) = (caller.project.clone(), sandbox.clone());
        let found = self.on_tapes("list recordings", move |tapes| tapes.list(&project, &id)).await?;
        if found.is_empty() {
            // None of a sandbox is something else than none of nobody's.
            self.sandbox(caller, sandbox).await?;
        }
        Ok(found)
    }

    /// A recorded terminal, as asciicast. That it was looked at is recorded too.
    pub async fn recording(&self, caller: &Caller, sandbox: &SandboxId, process: &ProcessId) -> Result<Vec<u8>, CoreError> {
        caller.require(Scope::Read)?;
        let name = TapeName { project: caller.project.clone(), sandbox: sandbox.clone(), process: process.clone() };
        let Some(tape) = self.on_tapes("read a recording", move |tapes| tapes.read(&name)).await? else {
            self.sandbox(caller, sandbox).await?;
            return Err(CoreError::NoRecording { sandbox: sandbox.clone(), process: process.clone() });
        };
        let detail = [("process".to_owned(), process.to_string())].into();
        let looked = AuditAction::Access { verb: "replay".to_owned(), phase: Phase::Done, subject: sandbox.to_string(), detail };
        self.shared.audit.note(event(caller, Some(sandbox), looked)).await;
        Ok(tape)
    }

    /// Looks something up on a thread that may wait for the disk. Where nothing is recorded, nothing is found.
    async fn on_tapes<T: Default + Send + 'static>(
        &self,
        operation: &'static str,
        look: impl FnOnce(&dyn Tapes) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, CoreError> {
        let Some(tapes) = self.shared.tapes.clone() else { return Ok(T::default()) };
        let found = tokio::task::spawn_blocking(move || look(&*tapes)).await.map_err(|_died| CoreError::Stopping)?;
        found.map_err(|source| CoreError::Tapes { operation, source })
    }
}
