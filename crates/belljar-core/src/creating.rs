//! Making a sandbox: what was asked for is checked against what there is and what is allowed, before anything is done for it.

use std::sync::Arc;
use std::time::Duration;

use belljar_ports::{Once, Runtime};
use belljar_types::{AuditAction, ExecutionId, Phase, Sandbox, SandboxId, SandboxSpec, SandboxState, Scope, Template, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::admission::Place;
use crate::owner::{Birth, Owner};
use crate::policies::check_mounts;
use crate::recording::{actor, event};
use crate::request::CreateSandbox;
use crate::{Caller, CoreError, NoClass, Service, choose_class, volumes};

impl Service {
    /// Makes a sandbox and answers when its agent does.
    pub async fn create(&self, caller: &Caller, request: CreateSandbox) -> Result<Arc<Sandbox>, CoreError> {
        caller.require(Scope::Use)?;
        let name = request.template.clone().unwrap_or_else(|| self.shared.config.default_template.clone());
        let template = self.shared.templates.find(&caller.project, &name).await?.ok_or(CoreError::NoTemplate { name: name.clone() })?;
        let _not_swept = self.shared.builds.want(&template.layers);
        self.create_of(caller, request, Template { name, ..template }).await
    }

    /// Makes a sandbox from a template, or from the snapshot of that id or name if there is no such template: vendors have one word for both.
    pub async fn create_of_either(&self, caller: &Caller, request: CreateSandbox) -> Result<Arc<Sandbox>, CoreError> {
        match self.create(caller, request.clone()).await {
            Err(CoreError::NoTemplate { name }) => {
                let from = CreateSandbox { template: None, snapshot: Some(name.to_string()), ..request };
                match self.create(caller, from).await {
                    Err(CoreError::NoSnapshot { .. }) => Err(CoreError::NoTemplate { name }),
                    made => made,
                }
            }
            made => made,
        }
    }

    /// The same from a template that need not be written down.
    pub(crate) async fn create_of(&self, caller: &Caller, request: CreateSandbox, template: Template) -> Result<Arc<Sandbox>, CoreError> {
        self.shared.refuse_if_stopping()?;
        let config = &self.shared.config;
        request.validate(config)?;
        if let Some(which) = request.snapshot.clone() {
            return Box::pin(self.create_from(caller, request, &which)).await;
        }
        let limits = request.limits(config)?;
        let choice = choose_class(request.isolation.unwrap_or(config.default_isolation), &self.reports(), config.shared_kernel)?;
        let engine = self.shared.engine(choice.class).ok_or(NoClass::Absent { class: choice.class })?;
        let ruled = self.shared.rule(&request, &caller.project, &template.name, choice.class, limits)?;
        if !request.volumes.is_empty() && !engine.runtime.capabilities().volumes {
            return Err(volumes::unsupported(choice.class));
        }
        let volumes = self.find_mounts(caller, &request.volumes).await?;
        check_mounts(ruled.policy.as_deref(), &volumes)?;
        let once = request.idempotency_key.clone().map(|key| Once { key, fingerprint: request.fingerprint() });
        let (id, now) = (SandboxId::random(), Timestamp::now());
        let sandbox = Sandbox {
            id: id.clone(),
            project: caller.project.clone(),
            asked_with: None,
            state: SandboxState::Creating,
            class: choice.class,
            class_reason: choice.why,
            template: template.name,
            spec: SandboxSpec {
                id,
                execution: ExecutionId::random(),
                layers: template.layers,
                defaults: template.defaults,
                limits: ruled.limits,
                network: ruled.network,
                privilege: ruled.privilege,
                env: ruled.env,
                hostname: request.hostname,
                policy: ruled.policy,
                volumes,
            },
            metadata: request.metadata,
            created_at: now,
            started_at: None,
            expires_at: Some(now.plus(ruled.lease)),
            leased_at: now,
            idle_timeout: ruled.idle_timeout,
            on_timeout: request.on_timeout,
            auto_resume: request.auto_resume,
            pause: None,
            stood_still: Duration::ZERO,
            origin: None,
            begins_with: None,
            last_snapshot: None,
            end: None,
        };
        let begins_with = self.shared.warm.for_new(&sandbox, engine.runtime.capabilities());
        Box::pin(self.make(caller, Arc::clone(&engine.runtime), Sandbox { begins_with, ..sandbox }, once)).await
    }

    /// Gives a sandbox that is to be made to an owner of its own, and waits for it.
    pub(crate) async fn make(
        &self,
        caller: &Caller,
        runtime: Arc<dyn Runtime>,
        sandbox: Sandbox,
        once: Option<Once>,
    ) -> Result<Arc<Sandbox>, CoreError> {
        let (place, turn) = match self.admit(&sandbox).await {
            Ok(admitted) => admitted,
            Err(full) => return self.answer_again_or(full, &sandbox.project, once.as_ref()).await,
        };
        if let Err(over) = self.refuse_without_budget(caller, sandbox.spec.network) {
            return self.answer_again_or(over, &sandbox.project, once.as_ref()).await;
        }
        let sandbox = Sandbox { asked_with: Some(caller.key.clone()), ..sandbox };
        let about = [("template", sandbox.template.to_string()), ("class", sandbox.class.to_string())];
        let intent = AuditAction::lifecycle("create", Phase::Intent, about);
        self.shared.audit.intend(event(caller, Some(&sandbox.id), intent)).await?;
        let mut owner = Owner::new(&self.shared, runtime, sandbox, place);
        owner.actor = actor(caller);
        let (reply, answer) = oneshot::channel();
        tokio::spawn(owner.make_and_own(once, turn, reply));
        match answer.await.map_err(|_owner_died| CoreError::Stopping)?? {
            Birth::Made(sandbox) => Ok(sandbox),
            Birth::Before(sandbox) => self.follow(&sandbox).await,
        }
    }

    async fn admit(&self, sandbox: &Sandbox) -> Result<(Place, OwnedSemaphorePermit), CoreError> {
        let place = self.shared.admission.admit(&sandbox.spec.limits)?;
        let turn = self.shared.admission.turn().await?;
        Ok((place, turn))
    }
}
