//! Forks: one to a hundred sandboxes from one that runs or stands still, or from a snapshot.
//!
//! ```text
//!   of a sandbox:   its owner takes a snapshot for this fork alone ─┐
//!   of a snapshot:  a mark, where all are to be made or none ───────┴─► each: place, reserve, engine.fork, running ─► snapshot or mark goes
//! ```
//! The sandbox stands still once, however many forks are made of it. Where all are to be made or none, the mark in the store is the turning
//! point: as long as it says `making`, whoever comes back after a crash ends what there is of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{Format, parse};
use belljar_ports::{Once, SnapshotKind};
use belljar_types::{
    AuditAction, Beginning, ExecutionId, Invalid, IsolationRequest, KeyId, OnTimeout, Origin, PrivilegePolicy, Sandbox, SandboxId,
    SandboxSpec, SandboxState, Scope, Snapshot, SnapshotId, SnapshotPurpose, SnapshotState, Timestamp,
};
use tokio::sync::oneshot;
use tracing::{error, info};

use crate::admission::Place;
use crate::keeping::Taking;
use crate::owner::{Birth, Order, Owner};
use crate::policies::check_mounts;
use crate::request::{check_env, check_idle, check_lease, check_metadata};
use crate::shared::{Handle, Shared};
use crate::volumes::{exclusive, refuse_forks};
use crate::{Caller, CoreError, CreateSandbox, MountRequest, Service, ServiceConfig, chain};

/// Most forks of one request.
const MOST: u32 = 100;

/// What forks are to be. What is unset they have from what they are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkRequest {
    /// How many: 1 to 100.
    pub count: u32,
    /// All or none; otherwise as many as can be.
    pub together: bool,
    /// Environment over that of their origin.
    pub env: BTreeMap<String, String>,
    /// Replaces all metadata.
    pub metadata: Option<BTreeMap<String, String>>,
    /// How long each lives from now on; the server's default when unset.
    pub lease: Option<Duration>,
    /// How long nobody may use it before it ends.
    pub idle_timeout: Option<Duration>,
    /// What happens when its lease runs out or nobody uses it.
    pub on_timeout: Option<OnTimeout>,
    /// Whether using it while it is paused resumes it.
    pub auto_resume: Option<bool>,
}

impl Default for ForkRequest {
    fn default() -> Self {
        Self {
            count: 1,
            together: false,
            env: BTreeMap::new(),
            metadata: None,
            lease: None,
            idle_timeout: None,
            on_timeout: None,
            auto_resume: None,
        }
    }
}

/// What forks are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkSource<'a> {
    /// A sandbox that runs or is paused.
    Sandbox(&'a SandboxId),
    /// A snapshot, by its id or name.
    Snapshot(&'a str),
}

/// What came of each fork that was asked for.
pub type Forks = Vec<Result<Arc<Sandbox>, CoreError>>;

impl ForkRequest {
    fn validate(&self, config: &ServiceConfig) -> Result<(), Invalid> {
        if !(1..=MOST).contains(&self.count) {
            return Err(Invalid::new("count", format!("1 to {MOST}"), self.count.to_string()));
        }
        check_env(&self.env)?;
        if let Some(metadata) = &self.metadata {
            check_metadata(metadata)?;
        }
        check_lease(self.lease.unwrap_or(config.default_lease), config)?;
        check_idle(self.idle_timeout)
    }
}

impl Service {
    /// Makes forks and answers when each runs or has failed. With `together`, the answer is all of them or an error.
    pub async fn fork(&self, caller: &Caller, source: ForkSource<'_>, request: ForkRequest) -> Result<Forks, CoreError> {
        caller.require(Scope::Use)?;
        self.shared.refuse_if_stopping()?;
        request.validate(&self.shared.config)?;
        let from = match source {
            ForkSource::Snapshot(which) => From::Kept(Box::new(self.snapshot(caller, which).await?)),
            ForkSource::Sandbox(id) => match self.handle(caller, id) {
                Some(handle) => From::Live(handle),
                None => return Err(crate::service::ended(&*self.ended_or_away(caller, id).await?, "fork it")),
            },
        };
        let network = match &from {
            From::Live(handle) => handle.view.borrow().spec.network,
            From::Kept(snapshot) => snapshot.spec.network,
        };
        match &from {
            From::Live(handle) => refuse_forks(&handle.view.borrow())?,
            From::Kept(snapshot) => {
                if let Some(name) = exclusive(&snapshot.spec.volumes).filter(|_| request.count > 1) {
                    return Err(CoreError::ExclusiveVolume { id: snapshot.source.clone(), name: name.clone() });
                }
            }
        }
        let source = match source {
            ForkSource::Sandbox(id) => id.to_string(),
            ForkSource::Snapshot(which) => which.to_owned(),
        };
        let count = request.count.to_string();
        let action = |phase| AuditAction::lifecycle("fork", phase, [("from", source.clone()), ("count", count.clone())]);
        self.refuse_without_budget(caller, network)?;
        let forking = Forking { shared: Arc::clone(&self.shared), request, key: caller.key.clone() };
        self.recorded(caller, None, action, Box::pin(forking.run(from))).await
    }
}

impl Service {
    /// Makes one sandbox from a snapshot, as if that were its template.
    pub(crate) async fn create_from(&self, caller: &Caller, request: CreateSandbox, which: &str) -> Result<Arc<Sandbox>, CoreError> {
        if let Some(template) = &request.template {
            return Err(
                Invalid::new("template", "nothing where `snapshot` is given, which says what it is made from", template.as_str()).into()
            );
        }
        let snapshot = self.snapshot(caller, which).await?;
        if let Some(IsolationRequest::Exactly(class)) = request.isolation
            && class != snapshot.class
        {
            return Err(Invalid::new("isolation", format!("{}, which the snapshot is of, or auto", snapshot.class), class.as_str()).into());
        }
        let runtime = Arc::clone(self.shared.engine_of(&snapshot)?);
        let config = &self.shared.config;
        let limits = request.limits(&ServiceConfig { default_limits: snapshot.spec.limits.clone(), ..config.clone() })?;
        let once = request.idempotency_key.clone().map(|key| Once { key, fingerprint: request.fingerprint() });
        // What held for the sandbox it was taken of holds here, unless something else is asked for.
        let kept = snapshot.spec.policy.as_deref().map(|text| parse(text, Format::Json)).transpose().map_err(|error| error.as_invalid())?;
        let request = CreateSandbox { policy: request.policy.or(kept), ..request };
        let ruled = self.shared.rule(&request, &caller.project, &snapshot.template, snapshot.class, limits)?;
        let privilege = privilege_of(&snapshot, ruled.privilege)?;
        let mut env = snapshot.spec.env.clone();
        env.extend(ruled.env);
        let spec = SandboxSpec {
            id: SandboxId::random(),
            execution: ExecutionId::random(),
            limits: ruled.limits,
            network: ruled.network,
            policy: ruled.policy,
            privilege,
            env,
            hostname: request.hostname.or_else(|| snapshot.spec.hostname.clone()),
            ..snapshot.spec.clone()
        };
        let spec = self.mounts_over(caller, &request.volumes, &snapshot, spec).await?;
        check_mounts(spec.policy.as_deref(), &spec.volumes)?;
        let sandbox = from_snapshot(&snapshot, true, spec, request.metadata, ruled.lease);
        let sandbox =
            Sandbox { idle_timeout: ruled.idle_timeout, on_timeout: request.on_timeout, auto_resume: request.auto_resume, ..sandbox };
        self.make(caller, runtime, sandbox, once).await
    }

    /// The volumes that were asked for instead of the snapshot's. Programs in its memory have files open where they know them to be.
    async fn mounts_over(
        &self,
        caller: &Caller,
        asked: &[MountRequest],
        of: &Snapshot,
        spec: SandboxSpec,
    ) -> Result<SandboxSpec, CoreError> {
        if asked.is_empty() {
            return Ok(spec);
        }
        if of.kind == SnapshotKind::Memory {
            let expected = "nothing where a snapshot with memory is given: it has the volumes that its sandbox had";
            return Err(Invalid::new("volumes", expected, asked.len().to_string()).into());
        }
        Ok(SandboxSpec { volumes: self.find_mounts(caller, asked).await?, ..spec })
    }
}

enum From {
    Live(Handle),
    Kept(Box<Snapshot>),
}

struct Forking {
    shared: Arc<Shared>,
    request: ForkRequest,
    /// Whoever asked: what the forks use counts for this key.
    key: KeyId,
}

impl Forking {
    async fn run(self, from: From) -> Result<Forks, CoreError> {
        let _unfinished = self.shared.unfinished.token();
        // Before anything stands still for it.
        let mut places = self.places(&from)?;
        let purpose = if self.request.together { SnapshotPurpose::ForkTogether } else { SnapshotPurpose::Fork };
        let (snapshot, kept, mark) = match from {
            From::Live(handle) => {
                let (reply, answer) = oneshot::channel();
                let taking = Taking { name: None, kind: None, purpose, lifetime: None };
                handle.orders.send(Order::Snapshot(taking, reply)).await.map_err(|_ended| gone(&handle))?;
                let snapshot = answer.await.map_err(|_ended| gone(&handle))??;
                (snapshot.clone(), false, Some(snapshot))
            }
            From::Kept(snapshot) if self.request.together => {
                let mark = Snapshot {
                    id: SnapshotId::random(),
                    name: None,
                    state: SnapshotState::Making,
                    purpose,
                    bytes: 0,
                    created_at: Timestamp::now(),
                    expires_at: None,
                    ..(*snapshot).clone()
                };
                self.shared.store.enter_snapshot(self.shared.epoch, &mark).await.inspect_err(|error| self.shared.note(error))?;
                (*snapshot, true, Some(mark))
            }
            From::Kept(snapshot) => (*snapshot, true, None),
        };
        let together = mark.as_ref().filter(|_| self.request.together).map(|mark| mark.id.clone());
        let mut waiting = Vec::new();
        for _ in 0..self.request.count {
            waiting.push(self.begin(&snapshot, kept, together.clone(), places.pop()).await);
        }
        let mut forks = Vec::with_capacity(waiting.len());
        for begun in waiting {
            forks.push(match begun {
                Ok(answer) => answer.await.unwrap_or(Err(CoreError::Stopping)).map(Birth::into_sandbox),
                Err(refused) => Err(refused),
            });
        }
        let made = forks.iter().filter(|fork| fork.is_ok()).count();
        info!(of = %snapshot.source, snapshot = %snapshot.id, asked = self.request.count, made, "forks made");
        self.settle(forks, mark).await
    }

    /// With `together` there is room for all of them before the first is begun.
    fn places(&self, from: &From) -> Result<Vec<Place>, CoreError> {
        let limits = match from {
            From::Live(handle) => handle.view.borrow().spec.limits.clone(),
            From::Kept(snapshot) => snapshot.spec.limits.clone(),
        };
        if let From::Live(_) = from {
            self.shared.admission.disk_for_a_snapshot()?;
        }
        let held = if self.request.together { self.request.count } else { 0 };
        (0..held).map(|_| self.shared.admission.admit(&limits)).collect()
    }

    /// Waits for a turn and gives one fork to an owner of its own.
    async fn begin(
        &self,
        snapshot: &Snapshot,
        kept: bool,
        together: Option<SnapshotId>,
        place: Option<Place>,
    ) -> Result<oneshot::Receiver<Result<Birth, CoreError>>, CoreError> {
        let sandbox = self.sandbox(snapshot, kept, together);
        let runtime = Arc::clone(self.shared.engine_of(snapshot)?);
        let place = place.map_or_else(|| self.shared.admission.admit(&sandbox.spec.limits), Ok)?;
        let turn = self.shared.admission.turn().await?;
        let (reply, answer) = oneshot::channel();
        tokio::spawn(Owner::new(&self.shared, runtime, sandbox, place).make_and_own(None, turn, reply));
        Ok(answer)
    }

    fn sandbox(&self, snapshot: &Snapshot, kept: bool, together: Option<SnapshotId>) -> Sandbox {
        let request = &self.request;
        let mut env = snapshot.spec.env.clone();
        env.extend(request.env.clone());
        let spec = SandboxSpec { id: SandboxId::random(), execution: ExecutionId::random(), env, ..snapshot.spec.clone() };
        let lease = request.lease.unwrap_or(self.shared.config.default_lease);
        let metadata = request.metadata.clone().unwrap_or_else(|| snapshot.metadata.clone());
        let forked = from_snapshot(snapshot, kept, spec, metadata, lease);
        Sandbox {
            idle_timeout: request.idle_timeout.or(snapshot.idle_timeout),
            on_timeout: request.on_timeout.unwrap_or(snapshot.on_timeout),
            auto_resume: request.auto_resume.unwrap_or(snapshot.auto_resume),
            begins_with: Some(Beginning { snapshot: snapshot.id.clone(), memory: snapshot.kind == SnapshotKind::Memory, together }),
            asked_with: Some(self.key.clone()),
            ..forked
        }
    }

    /// Makes them last, or undoes all where one failed; then the snapshot that was only for them goes.
    async fn settle(&self, mut forks: Forks, mark: Option<Snapshot>) -> Result<Forks, CoreError> {
        let failed = forks.iter().position(Result::is_err).filter(|_| self.request.together);
        if let Some(failed) = failed {
            let failure = forks.swap_remove(failed);
            self.undo(forks).await;
            self.remove(mark).await.inspect_err(|error| error!(error = chain(error), "could not remove the mark of a fork"))?;
            return Err(failure.err().unwrap_or(CoreError::Stopping));
        }
        match self.remove(mark).await {
            Err(failure) if self.request.together => {
                self.undo(forks).await;
                Err(failure)
            }
            // They are there all the same; the next start removes the snapshot.
            Err(failure) => {
                error!(error = chain(&failure), "could not remove the snapshot of a fork");
                Ok(forks)
            }
            Ok(()) => Ok(forks),
        }
    }

    async fn remove(&self, mark: Option<Snapshot>) -> Result<(), CoreError> {
        match mark {
            Some(mark) => self.shared.remove_snapshot(mark).await,
            None => Ok(()),
        }
    }

    async fn undo(&self, forks: Forks) {
        for made in forks.into_iter().flatten() {
            let Some(handle) = self.shared.handle(&made.id) else { continue };
            let (reply, answer) = oneshot::channel();
            if handle.orders.send(Order::Kill(reply)).await.is_ok() {
                let _ended = answer.await;
            }
        }
    }
}

/// A sandbox that begins as a snapshot, with what everybody who makes one has to say.
pub(crate) fn from_snapshot(
    snapshot: &Snapshot,
    kept: bool,
    spec: SandboxSpec,
    metadata: BTreeMap<String, String>,
    lease: Duration,
) -> Sandbox {
    let now = Timestamp::now();
    let origin = Origin { sandbox: snapshot.source.clone(), snapshot: kept.then(|| snapshot.id.clone()), root: snapshot.root.clone() };
    Sandbox {
        id: spec.id.clone(),
        project: snapshot.project.clone(),
        asked_with: None,
        state: SandboxState::Creating,
        class: snapshot.class,
        class_reason: format!("it was forked from sandbox {}, which was of the {} class", snapshot.source, snapshot.class),
        template: snapshot.template.clone(),
        spec,
        metadata,
        created_at: now,
        started_at: None,
        expires_at: Some(now.plus(lease)),
        leased_at: now,
        idle_timeout: None,
        on_timeout: OnTimeout::default(),
        auto_resume: false,
        pause: None,
        stood_still: Duration::ZERO,
        last_snapshot: origin.snapshot.clone(),
        origin: Some(origin),
        begins_with: Some(Beginning { snapshot: snapshot.id.clone(), memory: snapshot.kind == SnapshotKind::Memory, together: None }),
        end: None,
    }
}

/// Who may become root in it: what came with its memory cannot be made stricter, and never becomes laxer.
fn privilege_of(snapshot: &Snapshot, asked: PrivilegePolicy) -> Result<PrivilegePolicy, Invalid> {
    match (snapshot.kind, snapshot.spec.privilege, asked) {
        (SnapshotKind::Memory, PrivilegePolicy::RootAllowed, PrivilegePolicy::UserOnly) => Err(Invalid::new(
            "privilege",
            "root-allowed, as the agent in the snapshot's memory has it; or a snapshot without memory",
            "user-only",
        )),
        (_, PrivilegePolicy::UserOnly, _) => Ok(PrivilegePolicy::UserOnly),
        (_, PrivilegePolicy::RootAllowed, asked) => Ok(asked),
    }
}

fn gone(handle: &Handle) -> CoreError {
    let sandbox = Arc::clone(&handle.view.borrow());
    crate::service::ended(&sandbox, "fork it")
}
