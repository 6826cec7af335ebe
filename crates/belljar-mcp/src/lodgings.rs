//! The sandboxes that whoever asks may use: the one where the agent works, which is made at its first use or is there, and its forks.
//!
//! What a connection made lives as long as it does: leases are short and renewed, so that nothing outlives an agent that was killed by more than
//! two minutes. A computer with a name is found by its metadata, and used by requests that know nothing of each other: it is held while one of them works,
//! and for its idle time after that; nothing about it is remembered here. What was given stays as it is.

mod states;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_client::{Client, ClientError, CreateSandbox, ListSandboxes, Patience, SandboxView};
use belljar_types::{SandboxId, SandboxState, escape_untrusted};
use tokio_util::task::AbortOnDropHandle;

use crate::error::ToolError;
use crate::place::{COMPUTER, ComputerName, PREFERRED_TEMPLATE, Place};

/// How long a server that is being restarted is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many that ended one after the other a computer follows before something is wrong.
const MOST_ENDED: u32 = 8;

/// Whether a computer was there before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    First,
    Another,
}

/// The sandboxes of one connection, or of one request to a computer with a name.
pub(crate) struct Lodgings {
    pub(crate) client: Client,
    place: Place,
    /// Held while it is made, so that calls that come together find the same one.
    own: tokio::sync::Mutex<Option<SandboxId>>,
    held: Mutex<Held>,
}

/// What keeps each sandbox; nothing keeps one that ended by itself, of which checkpoints may be left.
type Held = BTreeMap<SandboxId, Option<AbortOnDropHandle<Infallible>>>;

impl Lodgings {
    pub(crate) fn new(client: Client, place: Place) -> Self {
        Self { client, place, own: tokio::sync::Mutex::new(None), held: Mutex::default() }
    }

    /// The sandbox that is meant; the agent's own if none is named, which is made if there is none yet.
    pub(crate) async fn find(&self, which: Option<&str>) -> Result<SandboxId, ToolError> {
        let Some(which) = which else { return self.own().await };
        let strange = || ToolError::Strange { sandbox: escape_untrusted(which.as_bytes()) };
        let id: SandboxId = which.parse().map_err(|_| strange())?;
        if self.is_held(&id) || matches!(&self.place, Place::Given(given) if *given == id) {
            return Ok(id);
        }
        let Place::Named(..) = self.place else { return Err(strange()) };
        match self.patiently(|| self.client.sandbox(&id)).await {
            Ok(found) if self.place.has(&found) && is_there(&found) => self.visit(id, Visit::Another).await,
            Err(error) if error.code() != Some("sandbox_not_found") => Err(ToolError::asked("find the sandbox")(error)),
            _ => Err(strange()),
        }
    }

    async fn own(&self) -> Result<SandboxId, ToolError> {
        let mut own = self.own.lock().await;
        if let Some(id) = own.as_ref().filter(|id| self.is_held(id)) {
            return Ok(id.clone());
        }
        let id = match &self.place {
            Place::Given(given) => return Ok(given.clone()),
            Place::Made(_) => {
                let made = self.make(SandboxId::random().as_str()).await.map_err(ToolError::asked("make a sandbox"))?;
                self.hold(made.id.clone());
                made.id
            }
            Place::Named(name, _) => {
                let (found, visit) = self.named(name).await.map_err(ToolError::asked("find or make the sandbox"))?;
                self.visit(found, visit).await?
            }
        };
        Ok(own.insert(id).clone())
    }

    /// Holds what lives on without us: from now on it is idle, until its next visitor.
    async fn visit(&self, id: SandboxId, visit: Visit) -> Result<SandboxId, ToolError> {
        let lease = self.place.lease().as_secs();
        // Somebody may have given it longer; who has made it has given it time to be made.
        let extended = self.patiently(|| self.client.set_lease(&id, lease, visit == Visit::Another)).await;
        extended.map_err(|error| self.failed(&id, "extend the lease", error))?;
        self.hold(id.clone());
        Ok(id)
    }

    /// The computer of that name. It follows the last one that had it, and whoever makes it at the same moment, here or elsewhere, makes the same one.
    async fn named(&self, name: &ComputerName) -> Result<(SandboxId, Visit), ClientError> {
        let metadata = vec![(COMPUTER.to_owned(), name.as_str().to_owned())];
        let newest = ListSandboxes { metadata, limit: Some(1), ..ListSandboxes::default() };
        let mut last = self.patiently(|| self.client.sandboxes(&newest)).await?.sandboxes.into_iter().next();
        let mut visit = Visit::Another;
        for _ in 0..MOST_ENDED {
            let key = match &last {
                Some(last) if is_there(last) => return Ok((last.id.clone(), visit)),
                Some(last) => format!("mcp:{}:after:{}", name.as_str(), last.id),
                None => format!("mcp:{}:first", name.as_str()),
            };
            // One that was made with this key and has ended since is one more that it follows.
            (last, visit) = (Some(self.make(&key).await?), Visit::First);
        }
        Err(ClientError::Answer { url: self.client.url().to_owned(), detail: "sandboxes that end as soon as they are made".to_owned() })
    }

    async fn make(&self, key: &str) -> Result<SandboxView, ClientError> {
        let request = self.place.like().unwrap_or_default();
        if request.template.is_some() || request.snapshot.is_some() {
            return self.create(&request, key).await;
        }
        let preferred = CreateSandbox { template: Some(PREFERRED_TEMPLATE.to_owned()), ..request.clone() };
        match self.create(&preferred, key).await {
            Err(error) if error.code() == Some("template_not_found") => self.create(&request, key).await,
            made => made,
        }
    }

    /// The same key in every try: an answer that was lost on the way costs no sandbox.
    async fn create(&self, request: &CreateSandbox, key: &str) -> Result<SandboxView, ClientError> {
        self.patiently(|| self.client.create_sandbox(request, Some(key))).await
    }

    fn hold(&self, id: SandboxId) {
        let (client, held, lease) = (self.client.clone(), id.clone(), self.place.lease());
        let holding = AbortOnDropHandle::new(tokio::spawn(async move { client.hold(&held, lease).await }));
        self.lock().insert(id, Some(holding));
    }

    fn is_held(&self, id: &SandboxId) -> bool {
        self.lock().get(id).is_some_and(Option::is_some)
    }

    /// Does what may be done twice, through a restart of the server.
    pub(crate) async fn patiently<T, F>(&self, work: impl FnMut() -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        Patience::new(PATIENCE).insist(work).await
    }

    /// Does what must not be done twice: again only if it certainly was not done.
    pub(crate) async fn once<T, F>(&self, mut work: impl FnMut() -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let patience = Patience::new(PATIENCE);
        loop {
            match work().await {
                Err(error) if error.had_no_effect() => patience.bear(error).await?,
                done => return done,
            }
        }
    }

    /// Why something in a sandbox failed. One that has ended is forgotten, so that the next call begins in a fresh one instead of failing for ever.
    pub(crate) fn failed(&self, sandbox: &SandboxId, attempt: &str, error: ClientError) -> ToolError {
        match error.problem() {
            Some(problem) if matches!(problem.code.as_str(), "sandbox_ended" | "sandbox_not_found") => {
                if let Some(holding) = self.lock().get_mut(sandbox) {
                    *holding = None;
                }
                ToolError::Gone { sandbox: sandbox.clone(), why: problem.detail.clone() }
            }
            _ => ToolError::asked(format!("{attempt} in sandbox {sandbox}"))(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_there(sandbox: &SandboxView) -> bool {
    !sandbox.state.has_ended() && sandbox.state != SandboxState::Stopping
}
