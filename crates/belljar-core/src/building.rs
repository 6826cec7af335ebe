//! Templates made from steps. A step is somebody's code: it runs in a sandbox, and nothing of it on the host.
//!
//! ```text
//!   reserve ─► start ─► base ─► step: known already? ─► finish: start it once, write the template down ─► ready
//!                                 │  no: sandbox on the layers so far ─► run ─► pause ─► what it wrote is the next layer ─► kill
//!                                 └─ yes: take its layer                        any failure: written down, nothing left
//! ```
//! A step's layer is found again by everything that decides it (`key`), so that an unchanged beginning is not run again. A build is written down when
//! it starts and when it ends; a server that comes back gives up those that did not end, and their sandboxes with them.

mod environment;
mod key;
mod log;
mod steps;
mod work;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_ports::FileStream;
use belljar_types::{
    BuildFailure, BuildId, BuildLog, BuildPlace, BuildRecord, BuildState, BuildStep, FilesHash, Invalid, IsolationRequest, LayerDigest,
    Network, ProjectId, SandboxState, Scope, StartUp, TemplateName, Timestamp, UserName,
};
use tokio::sync::{RwLock, Semaphore};
use tracing::{error, info, warn};

use self::log::Log;
use crate::request::PartialLimits;
use crate::{Caller, CoreError, Service, asking, chain};

/// The metadata by which a sandbox is known as one of a build.
pub(crate) const OF_BUILD: &str = "belljar.build";
/// Most steps of a build: each may be a layer, and an overlay has at most 500.
const STEPS_MAX: usize = 300;
/// Most builds of a project that have not ended.
const UNENDED_MAX: usize = 20;
/// Most builds at work at one time; the others wait for their turn.
const AT_ONCE: usize = 2;
/// How long a build may be asked for and not started.
const START_WITHIN: Duration = Duration::from_secs(3600);

/// What a template is built on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildBase {
    /// A template that the caller sees.
    Template(TemplateName),
    /// An image in a registry.
    Image(String),
    /// A recipe, as TOML.
    Recipe(String),
}

/// A step, and whether it is to be run again if it was run before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// What to do.
    pub step: BuildStep,
    /// Run it, and all that follow, whatever was run before.
    pub force: bool,
}

/// What a build is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPlan {
    /// What it begins with.
    pub base: BuildBase,
    /// Who the first step is run as, in their home; as the base says when unset.
    pub user: Option<UserName>,
    /// What is done, in order.
    pub steps: Vec<PlannedStep>,
    /// What the template starts in every sandbox; the base's when unset.
    pub start: Option<StartUp>,
    /// Run every step again.
    pub force: bool,
    /// What the sandboxes of the build may use.
    pub limits: PartialLimits,
    /// What isolates them; as the operator says when unset.
    pub isolation: Option<IsolationRequest>,
    /// What they reach.
    pub network: Network,
}

/// A build as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildView {
    /// All but its log.
    pub record: BuildRecord,
    /// The lines of its log that were asked for.
    pub log: Vec<BuildLog>,
}

/// The builds that have not ended.
pub(crate) struct Builds {
    live: Mutex<HashMap<BuildId, Arc<Live>>>,
    turns: Semaphore,
    /// Held for reading while a layer is made and not yet known here, and while a template goes: a sweep must not take what either leaves unnamed for a moment.
    pub(crate) gate: RwLock<()>,
    /// The layers of sandboxes that were asked for and are not in the store yet, whose template may be removed meanwhile.
    wanted: Mutex<HashMap<u64, Vec<LayerDigest>>>,
    wishes: AtomicU64,
}

/// Layers that somebody is about to use; no longer when dropped.
pub(crate) struct Wanted<'a> {
    builds: &'a Builds,
    number: u64,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        lock(&self.builds.wanted).remove(&self.number);
    }
}

impl Default for Builds {
    fn default() -> Self {
        let (wanted, wishes) = (Mutex::default(), AtomicU64::new(0));
        Self { live: Mutex::default(), turns: Semaphore::new(AT_ONCE), gate: RwLock::default(), wanted, wishes }
    }
}

/// A build that has not ended.
pub(crate) struct Live {
    id: BuildId,
    project: ProjectId,
    shared: bool,
    names: Vec<TemplateName>,
    created_at: Timestamp,
    state: Mutex<BuildState>,
    log: Mutex<Log>,
    layers: Mutex<Vec<LayerDigest>>,
}

impl Live {
    fn state(&self) -> BuildState {
        *lock(&self.state)
    }

    fn record(&self) -> BuildRecord {
        BuildRecord {
            id: self.id.clone(),
            project: self.project.clone(),
            shared: self.shared,
            names: self.names.clone(),
            state: self.state(),
            failure: None,
            created_at: self.created_at,
            ended_at: None,
            log: Vec::new(),
        }
    }
}

impl Builds {
    /// The layers that builds stand on and that no template may name yet, and those of sandboxes that are about to be made.
    pub(crate) fn layers(&self) -> Vec<LayerDigest> {
        let mut layers: Vec<LayerDigest> = lock(&self.wanted).values().flatten().cloned().collect();
        layers.extend(lock(&self.live).values().flat_map(|build| lock(&build.layers).clone()));
        layers
    }

    /// Keeps these layers from being swept until the answer is dropped.
    pub(crate) fn want(&self, layers: &[LayerDigest]) -> Wanted<'_> {
        let number = self.wishes.fetch_add(1, Ordering::Relaxed);
        lock(&self.wanted).insert(number, layers.to_vec());
        Wanted { builds: self, number }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// Asks for a build of a template with these names, for the caller's project or for all (`shared`: administrators only). It waits to be told what
    /// to do.
    pub fn reserve_build(&self, caller: &Caller, names: Vec<TemplateName>, shared: bool) -> Result<BuildRecord, CoreError> {
        caller.require(if shared { Scope::Admin } else { Scope::Templates })?;
        self.shared.refuse_if_stopping()?;
        if names.is_empty() {
            return Err(Invalid::new("name", "at least one name for the template", "").into());
        }
        let mut live = lock(&self.shared.builds.live);
        let now = Timestamp::now();
        live.retain(|_, build| build.state() != BuildState::Waiting || build.created_at.until(now) < START_WITHIN);
        if live.values().filter(|build| build.project == caller.project).count() >= UNENDED_MAX {
            let reason = format!("{UNENDED_MAX} builds of this project have not ended yet");
            return Err(CoreError::Busy { reason, retry_after: Duration::from_secs(10) });
        }
        let build = Arc::new(Live {
            id: BuildId::random(),
            project: caller.project.clone(),
            shared,
            names,
            created_at: now,
            state: Mutex::new(BuildState::Waiting),
            log: Mutex::default(),
            layers: Mutex::default(),
        });
        let record = build.record();
        live.insert(build.id.clone(), build);
        Ok(record)
    }

    /// Tells a build what to do, and answers when that is written down; the build goes on by itself.
    pub async fn start_build(self: &Arc<Self>, caller: &Caller, id: &BuildId, plan: BuildPlan) -> Result<(), CoreError> {
        caller.require(Scope::Templates)?;
        self.shared.refuse_if_stopping()?;
        if plan.steps.len() > STEPS_MAX {
            return Err(Invalid::new("steps", format!("at most {STEPS_MAX}"), plan.steps.len().to_string()).into());
        }
        plan.start.as_ref().map_or(Ok(()), StartUp::validate)?;
        let found = lock(&self.shared.builds.live).get(id).filter(|build| build.project == caller.project).cloned();
        let Some(build) = found else {
            let record = self.build_record(caller, id).await?;
            return Err(CoreError::BuildStarted {
                id: id.clone(),
                state: if record.state == BuildState::Ready { "ready" } else { "over" },
            });
        };
        {
            let mut state = lock(&build.state);
            if *state != BuildState::Waiting {
                return Err(CoreError::BuildStarted { id: id.clone(), state: "under way" });
            }
            *state = BuildState::Building;
        }
        let (service, caller) = (Arc::clone(self), for_build(caller));
        // Whoever asked may go away: a build that says it is under way is.
        asking::to_the_end(async move {
            if let Err(failure) = service.shared.templates.put_build(&build.record()).await {
                *lock(&build.state) = BuildState::Waiting;
                return Err(failure.into());
            }
            tokio::spawn(async move {
                let outcome = Box::pin(service.make_from_steps(&caller, &build, plan)).await;
                service.end_build(&build, outcome.err()).await;
            });
            Ok(())
        })
        .await
    }

    /// A build of the caller's project, with the lines of its log from `from` on, at most `limit`.
    pub async fn build(&self, caller: &Caller, id: &BuildId, from: usize, limit: usize) -> Result<BuildView, CoreError> {
        caller.require(Scope::Read)?;
        let live = lock(&self.shared.builds.live).get(id).filter(|build| build.project == caller.project).cloned();
        if let Some(build) = live {
            let log = lock(&build.log).lines(from, limit);
            return Ok(BuildView { record: build.record(), log });
        }
        let mut record = self.build_record(caller, id).await?;
        let log = std::mem::take(&mut record.log).into_iter().skip(from).take(limit).collect();
        Ok(BuildView { record, log })
    }

    /// Keeps an archive of files for builds of the caller's project.
    pub async fn put_build_files(&self, caller: &Caller, hash: &FilesHash, content: FileStream) -> Result<(), CoreError> {
        caller.require(Scope::Templates)?;
        Ok(self.shared.templates.put_files(&caller.project, hash, content).await?)
    }

    /// Whether such an archive is there.
    pub async fn has_build_files(&self, caller: &Caller, hash: &FilesHash) -> Result<bool, CoreError> {
        caller.require(Scope::Templates)?;
        Ok(self.shared.templates.has_files(&caller.project, hash).await?)
    }

    async fn build_record(&self, caller: &Caller, id: &BuildId) -> Result<BuildRecord, CoreError> {
        let record = self.shared.templates.build(id).await?;
        record.filter(|record| record.project == caller.project).ok_or_else(|| CoreError::NoBuild { id: id.clone() })
    }

    async fn end_build(&self, build: &Live, failure: Option<BuildFailure>) {
        let state = if failure.is_some() { BuildState::Failed } else { BuildState::Ready };
        match &failure {
            Some(failure) => {
                lock(&build.log).failure(failure);
                info!(build = %build.id, project = %build.project, reason = failure.message, "a build failed");
            }
            None => info!(build = %build.id, project = %build.project, "a build is done"),
        }
        let log = lock(&build.log).lines(0, usize::MAX);
        let record = BuildRecord { state, failure, ended_at: Some(Timestamp::now()), log, ..build.record() };
        // Whoever asks meanwhile finds the one or the other.
        if let Err(failure) = self.shared.templates.put_build(&record).await {
            error!(build = %build.id, error = chain(&failure), "could not write down the end of a build; it will be told as failed");
        }
        lock(&self.shared.builds.live).remove(&build.id);
    }

    /// Gives up the builds that another server had under way.
    pub(crate) async fn give_up_builds(&self) {
        let builds = match self.shared.templates.builds().await {
            Ok(builds) => builds,
            Err(failure) => return warn!(error = chain(&failure), "could not read the builds of the server before"),
        };
        for build in builds.into_iter().filter(|build| build.state == BuildState::Building) {
            let message = "the server ended while it was building; build it again, what was done is not done twice".to_owned();
            let failure = BuildFailure { place: BuildPlace::Finish, message, unknown_user: None };
            warn!(build = %build.id, "gave up a build that the server before had under way");
            let owner = (!build.shared).then_some(&build.project);
            let left = self.shared.templates.remove(owner, &work::base_name(&build.id)).await;
            let given_up = BuildRecord { state: BuildState::Failed, failure: Some(failure), ended_at: Some(Timestamp::now()), ..build };
            for failure in [left.map(drop), self.shared.templates.put_build(&given_up).await].into_iter().filter_map(Result::err) {
                error!(build = %given_up.id, error = chain(&failure), "could not give up a build");
            }
        }
        for sandbox in self.shared.views() {
            if sandbox.metadata.contains_key(OF_BUILD) && sandbox.state != SandboxState::Stopping {
                let caller = Caller { key: belljar_types::KeyId::random(), project: sandbox.project.clone(), scopes: [Scope::Use].into() };
                if let Err(failure) = self.kill(&caller, &sandbox.id).await {
                    error!(sandbox = %sandbox.id, error = chain(&failure), "could not end the sandbox of a build that was given up");
                }
            }
        }
    }
}

/// A key that may make templates may have them made.
fn for_build(caller: &Caller) -> Caller {
    let mut caller = caller.clone();
    caller.scopes.insert(Scope::Use);
    caller
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_that_somebody_is_about_to_use_are_known_until_then() {
        let (builds, layer): (Builds, LayerDigest) = (Builds::default(), "ab".repeat(32).parse().unwrap());
        let first = builds.want(std::slice::from_ref(&layer));
        let second = builds.want(std::slice::from_ref(&layer));
        drop(first);
        assert_eq!(builds.layers(), [layer], "the second one still wants it");
        drop(second);
        assert!(builds.layers().is_empty());
    }
}
