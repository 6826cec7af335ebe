//! What the operator's and the caller's policies make of a request: which network a sandbox gets, what it may at most, and who holds each rule.
//!
//! Project, template, sandbox: each may only narrow the one above. The result is stored with the sandbox, so that a server that comes back holds
//! it to the same.

mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{Enforcers, Operator, Policy, PolicyError, enforcement, narrow, profile};
use belljar_ports::{Attached, Runtime};
use belljar_types::{
    Invalid, IsolationClass, Limits, Network, PrivilegePolicy, ProjectId, Sandbox, SandboxId, SandboxState, Secret, TemplateName,
};
use tracing::warn;

pub(crate) use stored::{check_ingress, check_mounts, policy_of};

use crate::metering::Counts;
use crate::shared::Shared;
use crate::{CoreError, CreateSandbox, Service, chain, trust};

/// The profile that lets out to every public address: what a filtered network without any policy is.
const EVERYWHERE: &str = "open";

/// The operator's policies.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// Lists of hosts, and which addresses are closed.
    pub operator: Arc<Operator>,
    /// For projects that have none of their own.
    pub default: Option<Policy>,
    /// By project.
    pub projects: BTreeMap<ProjectId, Policy>,
    /// By template.
    pub templates: BTreeMap<TemplateName, Policy>,
}

impl Policies {
    /// What holds for a sandbox; `None` if nobody rules anything.
    pub(crate) fn effective(
        &self,
        project: &ProjectId,
        template: &TemplateName,
        own: Option<&Policy>,
    ) -> Result<Option<Policy>, PolicyError> {
        let layers = [self.projects.get(project).or(self.default.as_ref()), self.templates.get(template), own];
        let resolved: Vec<Policy> = layers.into_iter().flatten().map(|policy| self.operator.resolve(policy)).collect::<Result<_, _>>()?;
        if resolved.is_empty() { Ok(None) } else { narrow(&resolved).map(Some) }
    }
}

/// What a policy says about the results of commands.
#[derive(Debug)]
pub struct OutputRules {
    /// The most of one result.
    pub bytes: Option<u64>,
    /// Without terminal escapes.
    pub strip_escapes: bool,
    /// Values that must not be in it.
    pub secrets: Vec<Secret<String>>,
}

/// What became of a request.
pub(crate) struct Ruled {
    /// As stored with the sandbox.
    pub(crate) policy: Option<String>,
    pub(crate) network: Network,
    pub(crate) limits: Limits,
    pub(crate) privilege: PrivilegePolicy,
    pub(crate) lease: Duration,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Shared {
    /// Holds a request to the policies above it. A rule that nobody can hold is refused by name.
    pub(crate) fn rule(
        &self,
        request: &CreateSandbox,
        project: &ProjectId,
        template: &TemplateName,
        class: IsolationClass,
        limits: Limits,
    ) -> Result<Ruled, CoreError> {
        let lease = request.lease.unwrap_or(self.config.default_lease);
        let effective = self.config.policies.effective(project, template, request.policy.as_ref()).map_err(|error| error.as_invalid())?;
        let effective = match effective {
            None if request.network == Some(Network::Filtered) => Some(profile(EVERYWHERE).map_err(|error| error.as_invalid())?),
            effective => effective,
        };
        let Some(policy) = effective else {
            let network = request.network.unwrap_or_default();
            return Ok(Ruled {
                policy: None,
                network,
                limits,
                privilege: request.privilege,
                lease,
                idle_timeout: request.idle_timeout,
                env: request.env.clone(),
            });
        };
        self.check_enforced(&policy, class)?;
        let network = match request.network {
            Some(Network::None) => Network::None,
            // Closed, with a cable on which that can be changed.
            Some(Network::Filtered) if self.egress.is_some() => Network::Filtered,
            _ if policy.has_network() => Network::Filtered,
            _ => Network::None,
        };
        let lifetime = policy.lifetime.unwrap_or_default();
        let most = |span: Option<belljar_policy::Span>| span.map(|span| span.0);
        let privilege =
            if policy.users.and_then(|users| users.root) == Some(false) { PrivilegePolicy::UserOnly } else { request.privilege };
        Ok(Ruled {
            network,
            limits: limits_within(request, &limits, &policy)?,
            privilege,
            lease: within("lease", request.lease.is_some(), lease, most(lifetime.lease))?,
            idle_timeout: match (request.idle_timeout, most(lifetime.idle)) {
                (Some(asked), most) => Some(within("idle_timeout", true, asked, most)?),
                (None, most) => most,
            },
            env: trust::variables(&policy, request.env.clone()),
            policy: Some(policy.to_json()),
        })
    }

    /// The policy of a running sandbox after a change, as stored.
    pub(crate) fn rule_again(&self, sandbox: &Sandbox, own: &Policy) -> Result<String, CoreError> {
        let effective =
            self.config.policies.effective(&sandbox.project, &sandbox.template, Some(own)).map_err(|error| error.as_invalid())?;
        let policy = effective.unwrap_or_else(Policy::blank);
        self.check_enforced(&policy, sandbox.class)?;
        if policy.has_network() && sandbox.spec.network != Network::Filtered {
            let expected = "a policy without a network: this sandbox was made without one, and only a new sandbox can have it";
            return Err(Invalid::new("policy.network", expected, policy.title()).into());
        }
        let policy = policy.to_json();
        check_mounts(Some(&policy), &sandbox.spec.volumes)?;
        Ok(policy)
    }

    fn check_enforced(&self, policy: &Policy, class: IsolationClass) -> Result<(), CoreError> {
        enforcement(policy, class, &self.enforcers()).map_err(|error| error.as_invalid())?;
        Ok(())
    }

    /// What this server can hold.
    pub(crate) fn enforcers(&self) -> Enforcers {
        let abilities = self.egress.as_ref().map(|egress| egress.abilities()).unwrap_or_default();
        Enforcers { egress: self.egress.is_some(), inspection: abilities.inspection, secrets: abilities.secrets }
    }

    /// Opens the way out of a sandbox that runs, if its policy has one.
    pub(crate) async fn let_out(&self, runtime: &Arc<dyn Runtime>, sandbox: &Sandbox) -> Result<(), CoreError> {
        match &self.egress {
            Some(egress) if sandbox.spec.network == Network::Filtered => {
                let toll = Arc::new(Counts::new(&self.meters, sandbox.id.clone()));
                let attached = egress.attach(sandbox, toll).await?;
                make_trusted(runtime, sandbox, attached).await
            }
            _ => Ok(()),
        }
    }

    /// The same for one that ran before. Its end must not be in its own hands: one that cannot be let out, or that spoiled the place where
    /// certificates are, runs on with less.
    pub(crate) async fn let_out_again(&self, runtime: &Arc<dyn Runtime>, sandbox: &Sandbox) {
        if let Err(failure) = self.let_out(runtime, sandbox).await {
            warn!(sandbox = %sandbox.id, error = chain(&failure), "a sandbox could not be let out as its policy says; it runs on with less");
        }
    }

    /// Holds a sandbox to its policy as it is now. One that stands still is cut off; it is let out again when it goes on.
    pub(crate) async fn hold(&self, runtime: &Arc<dyn Runtime>, sandbox: &Sandbox) -> Result<(), CoreError> {
        let Some(egress) = &self.egress else { return Ok(()) };
        if sandbox.state != SandboxState::Running {
            egress.detach(&sandbox.id);
            return Ok(());
        }
        match egress.change(sandbox).await {
            Ok(attached) => make_trusted(runtime, sandbox, attached).await,
            Err(failure) => {
                egress.detach(&sandbox.id);
                Err(failure.into())
            }
        }
    }

    /// Closes it. Has to be done before its slot goes to somebody else.
    pub(crate) fn shut_in(&self, id: &SandboxId) {
        if let Some(egress) = &self.egress {
            egress.detach(id);
        }
    }
}

async fn make_trusted(runtime: &Arc<dyn Runtime>, sandbox: &Sandbox, attached: Attached) -> Result<(), CoreError> {
    match attached.certificate {
        Some(certificate) => Ok(trust::install(&runtime.guest(&sandbox.id).await?, &certificate).await?),
        None => Ok(()),
    }
}

impl Service {
    /// Whether sandboxes can be let out through the proxy here.
    pub fn filters(&self) -> bool {
        self.shared.egress.is_some()
    }

    /// How the results of commands are to be handed on, by the sandbox's policy; `None` as whoever asks wants it.
    pub fn output_rules(&self, sandbox: &Sandbox) -> Result<Option<OutputRules>, CoreError> {
        let Some(output) = policy_of(sandbox)?.and_then(|policy| policy.output) else { return Ok(None) };
        let secrets = match &self.shared.secrets {
            Some(secrets) if output.mask_secrets == Some(true) => secrets.values(&sandbox.project)?,
            _ => Vec::new(),
        };
        let bytes = output.bytes.map(|size| size.0);
        Ok(Some(OutputRules { bytes, strip_escapes: output.strip_escapes == Some(true), secrets }))
    }

    /// The most that a sandbox may be let out to: what its project and its template may, or everywhere.
    pub fn widest(&self, sandbox: &Sandbox) -> Result<Policy, CoreError> {
        let above = self.shared.config.policies.effective(&sandbox.project, &sandbox.template, None).map_err(|error| error.as_invalid())?;
        match above {
            Some(policy) => Ok(policy),
            None => profile(EVERYWHERE).map_err(|error| error.as_invalid().into()),
        }
    }
}

fn limits_within(request: &CreateSandbox, limits: &Limits, policy: &Policy) -> Result<Limits, CoreError> {
    let most = policy.limits.unwrap_or_default();
    let asked = &request.limits;
    let wall_time = match (limits.wall_time, policy.lifetime.and_then(|lifetime| lifetime.wall_time)) {
        (Some(wall), most) => Some(within("limits.wall_time", asked.wall_time.is_some(), wall, most.map(|span| span.0))?),
        (None, most) => most.map(|span| span.0),
    };
    let limits = Limits {
        cpu_millis: within("limits.cpu_millis", asked.cpu_millis.is_some(), limits.cpu_millis, most.cpu_millis)?,
        memory_bytes: within("limits.memory_bytes", asked.memory_bytes.is_some(), limits.memory_bytes, most.memory.map(|size| size.0))?,
        disk_bytes: within("limits.disk_bytes", asked.disk_bytes.is_some(), limits.disk_bytes, most.disk.map(|size| size.0))?,
        pids: within("limits.pids", asked.pids.is_some(), limits.pids, most.pids)?,
        wall_time,
    };
    limits.validate()?;
    Ok(limits)
}

/// A value within its bound. One that was asked for is refused beyond it; a default gives way.
fn within<T: PartialOrd + std::fmt::Debug>(field: &str, asked: bool, value: T, most: Option<T>) -> Result<T, CoreError> {
    match most {
        Some(most) if value > most && asked => {
            Err(Invalid::new(field, format!("at most {most:?}, by the policy"), format!("{value:?}")).into())
        }
        Some(most) if value > most => Ok(most),
        _ => Ok(value),
    }
}
