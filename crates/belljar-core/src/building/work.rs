//! A build at work: its base, its steps one after the other, and the template at the end.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{SnapshotKind, TemplateSource};
use belljar_types::{
    BuildFailure, BuildId, BuildPlace, BuildStep, LayerDigest, LogLevel, ProjectId, Sandbox, Template, TemplateDefaults, TemplateName,
    Timestamp, UserName,
};
use tokio::sync::mpsc;
use tracing::error;

use super::{BuildBase, BuildPlan, Live, OF_BUILD, environment, key, lock, steps};
use crate::request::{CreateSandbox, check_env};
use crate::{Caller, CoreError, Service, chain, templates};

/// How long a sandbox of a build may live, whatever its step does.
const LEASE: Duration = Duration::from_secs(2 * 3600);
/// How often a build asks again for a sandbox when the host is full.
const TRIES: u32 = 60;

/// What an image or a recipe is called while a build stands on it.
pub(super) fn base_name(build: &BuildId) -> TemplateName {
    format!("build-{build}").parse().expect("a build's id is a part of a name")
}

pub(super) fn failed(place: BuildPlace, message: impl Into<String>) -> BuildFailure {
    BuildFailure { place, message: message.into(), unknown_user: None }
}

/// What all else came from.
fn first_cause(error: &CoreError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Everything that the steps so far have come to.
pub(super) struct Site<'a> {
    pub(super) service: &'a Service,
    pub(super) caller: &'a Caller,
    pub(super) build: &'a Live,
    plan: &'a BuildPlan,
    base: TemplateName,
    layers: Vec<LayerDigest>,
    pub(super) defaults: TemplateDefaults,
}

impl Service {
    pub(super) async fn make_from_steps(&self, caller: &Caller, build: &Arc<Live>, plan: BuildPlan) -> Result<(), BuildFailure> {
        let Ok(_turn) = self.shared.builds.turns.acquire().await else { return Err(failed(BuildPlace::Base, "the server is stopping")) };
        let owner = (!build.shared).then_some(&build.project);
        let made = self.make_on_base(caller, build, &plan, owner).await;
        if !matches!(plan.base, BuildBase::Template(_))
            && let Err(failure) = self.shared.templates.remove(owner, &base_name(&build.id)).await
        {
            error!(build = %build.id, error = chain(&failure), "could not remove what a build stood on");
        }
        made
    }

    async fn make_on_base(&self, caller: &Caller, build: &Live, plan: &BuildPlan, owner: Option<&ProjectId>) -> Result<(), BuildFailure> {
        let base = self.base_of(caller, build, plan, owner).await?;
        lock(&build.layers).clone_from(&base.layers);
        let mut defaults = base.defaults;
        if let Some(user) = &plan.user {
            (defaults.user, defaults.workdir) = (Some(user.clone()), None);
        }
        let mut site = Site { service: self, caller, build, plan, base: base.name, layers: base.layers, defaults };
        let mut force = plan.force;
        for (number, planned) in plan.steps.iter().enumerate() {
            force |= planned.force;
            site.step(BuildPlace::Step(number + 1), &planned.step, force).await?;
        }
        site.finish(owner).await
    }

    /// What the build begins with.
    async fn base_of(&self, caller: &Caller, build: &Live, plan: &BuildPlan, owner: Option<&ProjectId>) -> Result<Template, BuildFailure> {
        let place = BuildPlace::Base;
        let source = match &plan.base {
            BuildBase::Template(name) => {
                let found = self.shared.templates.find(&caller.project, name).await;
                let template = found.map_err(|error| failed(place, chain(&error)))?;
                return template.ok_or_else(|| failed(place, format!("template '{name}' not found")));
            }
            BuildBase::Image(reference) => TemplateSource::Image(reference.clone()),
            BuildBase::Recipe(text) => TemplateSource::Recipe(text.clone()),
        };
        let (say, mut said) = mpsc::channel::<belljar_ports::BuildLine>(64);
        let name = base_name(&build.id);
        let listen = async {
            while let Some(line) = said.recv().await {
                lock(&build.log).say(LogLevel::Info, place, &line.text);
            }
        };
        let (made, ()) = tokio::join!(self.shared.templates.make(owner, &name, source, say), listen);
        made.map_err(|error| failed(place, chain(&error)))
    }
}

impl Site<'_> {
    pub(super) fn say(&self, level: LogLevel, place: BuildPlace, text: &str) {
        lock(&self.build.log).say(level, place, text);
    }

    async fn step(&mut self, place: BuildPlace, step: &BuildStep, force: bool) -> Result<(), BuildFailure> {
        let BuildPlace::Step(number) = place else { return Ok(()) };
        let title = format!("[{number}/{}] {}", self.plan.steps.len(), steps::words(step));
        if let Some(reason) = steps::refuse(step) {
            return Err(failed(place, reason));
        }
        if steps::writes(step) {
            let key = key::of(&self.build.project, &self.layers, &self.defaults, step);
            let known = if force { None } else { self.service.shared.templates.step(&key).await.unwrap_or_default() };
            let layer = match known {
                Some(layer) => {
                    self.say(LogLevel::Info, place, &format!("CACHED {title}"));
                    layer
                }
                None => {
                    self.say(LogLevel::Info, place, &title);
                    self.in_sandbox(place, step, &key).await?
                }
            };
            self.layers.push(layer.clone());
            lock(&self.build.layers).push(layer);
        } else {
            self.say(LogLevel::Info, place, &title);
        }
        self.take_over(place, step)
    }

    /// What a step changes for those after it.
    fn take_over(&mut self, place: BuildPlace, step: &BuildStep) -> Result<(), BuildFailure> {
        match step {
            BuildStep::Run { .. } | BuildStep::Copy { .. } => {}
            BuildStep::Env { set } => {
                for (name, value) in set {
                    let value = environment::expand(value, &self.defaults.env);
                    self.defaults.env.insert(name.clone(), value);
                }
                check_env(&self.defaults.env).map_err(|invalid| failed(place, invalid.to_string()))?;
            }
            BuildStep::Workdir { path } => self.defaults.workdir = Some(steps::absolute(self.defaults.workdir.as_deref(), path)),
            BuildStep::User { name } => self.defaults.user = Some(name.clone()),
        }
        Ok(())
    }

    /// Does a step in a sandbox of its own and makes a layer of what it wrote.
    async fn in_sandbox(&self, place: BuildPlace, step: &BuildStep, key: &belljar_ports::StepKey) -> Result<LayerDigest, BuildFailure> {
        let sandbox = self.sandbox(place, &self.base, TemplateDefaults { start: None, ..self.defaults.clone() }).await?;
        let done = async {
            steps::perform(self, place, &sandbox, step).await?;
            self.keep(&sandbox, step, key).await.map_err(|error| {
                // Where it lies on the host is for the log only.
                error!(build = %self.build.id, error = chain(&error), "could not keep what a step wrote");
                failed(place, format!("what the step wrote could not be kept: {}", first_cause(&error)))
            })
        }
        .await;
        self.end(&sandbox).await;
        done
    }

    async fn keep(&self, sandbox: &Sandbox, step: &BuildStep, key: &belljar_ports::StepKey) -> Result<LayerDigest, CoreError> {
        let shared = &self.service.shared;
        let runtime =
            shared.handle(&sandbox.id).map(|handle| handle.runtime).ok_or_else(|| CoreError::NoSandbox { id: sandbox.id.clone() })?;
        self.service.pause(self.caller, &sandbox.id, SnapshotKind::Filesystem).await?;
        let written = runtime.written(&sandbox.id).await?;
        let _not_swept = shared.builds.gate.read().await;
        let layer = shared.templates.keep_step(key, &written, &format!("{} of build {}", step.kind(), self.build.id)).await?;
        lock(&self.build.layers).push(layer.clone());
        Ok(layer)
    }

    /// A sandbox on the layers so far. A host that is full is asked again for a while.
    async fn sandbox(&self, place: BuildPlace, name: &TemplateName, defaults: TemplateDefaults) -> Result<Arc<Sandbox>, BuildFailure> {
        let template = Template {
            name: name.clone(),
            layers: self.layers.clone(),
            defaults,
            origin: String::new(),
            created_at: Timestamp::now().0 / 1000,
        };
        let request = CreateSandbox {
            isolation: self.plan.isolation,
            limits: self.plan.limits,
            network: Some(self.plan.network),
            metadata: [(OF_BUILD.to_owned(), self.build.id.to_string())].into(),
            lease: Some(LEASE.min(self.service.config().max_lease)),
            ..CreateSandbox::default()
        };
        for _ in 0..TRIES {
            match self.service.create_of(self.caller, request.clone(), template.clone()).await {
                Ok(sandbox) => return Ok(sandbox),
                Err(CoreError::Busy { reason, retry_after }) => {
                    self.say(LogLevel::Info, place, &format!("waiting: {reason}"));
                    tokio::time::sleep(retry_after.max(Duration::from_secs(1))).await;
                }
                Err(error) => return Err(failed(place, chain(&error))),
            }
        }
        Err(failed(place, "the host had no room for a sandbox to build in"))
    }

    async fn end(&self, sandbox: &Sandbox) {
        if let Err(failure) = self.service.kill(self.caller, &sandbox.id).await {
            error!(sandbox = %sandbox.id, build = %self.build.id, error = chain(&failure), "could not end the sandbox of a build");
        }
    }

    /// Tries what the template starts, and writes it down under its names.
    async fn finish(self, owner: Option<&ProjectId>) -> Result<(), BuildFailure> {
        let place = BuildPlace::Finish;
        let start = self.plan.start.clone().or_else(|| self.defaults.start.clone());
        let defaults = TemplateDefaults { start, ..self.defaults.clone() };
        if defaults.start.is_some() {
            self.say(LogLevel::Info, place, "starting what the template starts");
            // By its own name: if its memory is kept, it is the new template's.
            let name = self.build.names.first().unwrap_or(&self.base);
            let sandbox = self.sandbox(place, name, defaults.clone()).await?;
            self.end(&sandbox).await;
        }
        let origin = format!("build {} on {}", self.build.id, self.base);
        let template =
            Template { name: self.base.clone(), layers: self.layers.clone(), defaults, origin, created_at: Timestamp::now().0 / 1000 };
        for name in &self.build.names {
            let template = Template { name: name.clone(), ..template.clone() };
            let (shared, owner) = (Arc::clone(&self.service.shared), owner.cloned());
            let putting = async move { Ok(shared.templates.put(owner.as_ref(), &template).await?) };
            let put = self.service.recorded(self.caller, None, templates::action("make", name), putting).await;
            put.map_err(|error| failed(place, chain(&error)))?;
        }
        for name in self.build.names.iter().skip(1) {
            self.service.shared.cool(owner, name).await;
        }
        self.say(LogLevel::Info, place, "the template is ready");
        Ok(())
    }

    /// Whose the files are that a step makes.
    pub(super) fn user(&self) -> &str {
        self.defaults.user.as_ref().map_or(UserName::DEFAULT, UserName::as_str)
    }
}
