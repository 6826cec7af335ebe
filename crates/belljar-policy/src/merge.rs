//! Documents above each other: project, template, sandbox. Each may only narrow the one above it. Whatever it leaves out it takes over; a
//! rule that would allow more is an error that names it, never cut down in silence.

use crate::PolicyError;
use crate::document::{Budget, Lifetime, NetworkLimits, Output, Policy, PolicyLimits, Users};
use crate::merge_rules::{narrow_headers, narrow_ingress, narrow_network, narrow_secrets};

/// The first document, narrowed by each that follows. With none at all, nothing is ruled but the server's own limits.
pub fn narrow<'a>(documents: impl IntoIterator<Item = &'a Policy>) -> Result<Policy, PolicyError> {
    let mut documents = documents.into_iter();
    let Some(first) = documents.next() else { return Ok(Policy::blank()) };
    documents.try_fold(first.clone(), |above, below| narrow_one(&above, below))
}

fn narrow_one(above: &Policy, below: &Policy) -> Result<Policy, PolicyError> {
    let title = above.title();
    let context = Context { above: &title };
    Ok(Policy {
        version: above.version,
        name: below.name.clone().or_else(|| above.name.clone()),
        description: below.description.clone().or_else(|| above.description.clone()),
        network: either(&above.network, &below.network, |above, below| narrow_network(&context, above, below))?,
        ingress: either(&above.ingress, &below.ingress, |above, below| narrow_ingress(&context, above, below))?,
        limits: either(&above.limits, &below.limits, |above, below| narrow_limits(&context, above, below))?,
        lifetime: either(&above.lifetime, &below.lifetime, |above, below| narrow_lifetime(&context, above, below))?,
        users: either(&above.users, &below.users, |above, below| narrow_users(&context, *above, *below))?,
        secrets: either(&above.secrets, &below.secrets, |above, below| narrow_secrets(&context, above, below))?,
        headers: either(&above.headers, &below.headers, |above, below| narrow_headers(&context, above, below))?,
        budget: either(&above.budget, &below.budget, |above, below| narrow_budget(&context, above, below))?,
        output: either(&above.output, &below.output, |above, below| narrow_output(&context, *above, *below))?,
        mounts: either(&above.mounts, &below.mounts, |above, below| {
            match below.iter().position(|mount| {
                !above.iter().any(|known| known == mount || (known.writable && known.volume == mount.volume && known.at == mount.at))
            }) {
                Some(index) => Err(context.widening(format!("mounts[{index}]"), "it is not among the mounts above")),
                None => Ok(below.clone()),
            }
        })?,
    })
}

/// Who is above, for errors.
pub(crate) struct Context<'a> {
    above: &'a str,
}

impl Context<'_> {
    pub(crate) fn widening(&self, rule: impl Into<String>, problem: impl Into<String>) -> PolicyError {
        PolicyError::Widening { rule: rule.into(), above: self.above.to_owned(), problem: problem.into() }
    }

    /// The lower of two bounds; a bound that is higher than the one above is refused.
    pub(crate) fn least<T: PartialOrd + Copy + std::fmt::Display>(
        &self,
        field: &str,
        above: Option<T>,
        below: Option<T>,
    ) -> Result<Option<T>, PolicyError> {
        match (above, below) {
            (Some(above), Some(below)) if below > above => Err(self.widening(field, format!("at most {above} there, {below} here"))),
            (above, below) => Ok(below.or(above)),
        }
    }

    /// A restriction that is on above stays on.
    fn keep(&self, field: &str, restricting: bool, above: Option<bool>, below: Option<bool>) -> Result<Option<bool>, PolicyError> {
        match (above, below) {
            (Some(above), Some(below)) if above == restricting && below != restricting => {
                Err(self.widening(field, format!("{above} there, {below} here")))
            }
            (above, below) => Ok(below.or(above)),
        }
    }
}

fn either<T: Clone>(
    above: &Option<T>,
    below: &Option<T>,
    both: impl FnOnce(&T, &T) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    match (above, below) {
        (Some(above), Some(below)) => both(above, below).map(Some),
        (above, below) => Ok(below.clone().or_else(|| above.clone())),
    }
}

pub(crate) fn narrow_network_limits(
    context: &Context<'_>,
    above: &NetworkLimits,
    below: &NetworkLimits,
) -> Result<NetworkLimits, PolicyError> {
    Ok(NetworkLimits {
        connections: context.least("network.limits.connections", above.connections, below.connections)?,
        bytes_per_second: context.least("network.limits.bytes_per_second", above.bytes_per_second, below.bytes_per_second)?,
        sent: context.least("network.limits.sent", above.sent, below.sent)?,
        received: context.least("network.limits.received", above.received, below.received)?,
        names_per_minute: context.least("network.limits.names_per_minute", above.names_per_minute, below.names_per_minute)?,
    })
}

fn narrow_limits(context: &Context<'_>, above: &PolicyLimits, below: &PolicyLimits) -> Result<PolicyLimits, PolicyError> {
    Ok(PolicyLimits {
        cpu_millis: context.least("limits.cpu_millis", above.cpu_millis, below.cpu_millis)?,
        memory: context.least("limits.memory", above.memory, below.memory)?,
        disk: context.least("limits.disk", above.disk, below.disk)?,
        pids: context.least("limits.pids", above.pids, below.pids)?,
    })
}

fn narrow_lifetime(context: &Context<'_>, above: &Lifetime, below: &Lifetime) -> Result<Lifetime, PolicyError> {
    Ok(Lifetime {
        lease: context.least("lifetime.lease", above.lease, below.lease)?,
        idle: context.least("lifetime.idle", above.idle, below.idle)?,
        wall_time: context.least("lifetime.wall_time", above.wall_time, below.wall_time)?,
    })
}

fn narrow_users(context: &Context<'_>, above: Users, below: Users) -> Result<Users, PolicyError> {
    Ok(Users { root: context.keep("users.root", false, above.root, below.root)? })
}

fn narrow_budget(context: &Context<'_>, above: &Budget, below: &Budget) -> Result<Budget, PolicyError> {
    Ok(Budget {
        cpu: context.least("budget.cpu", above.cpu, below.cpu)?,
        running: context.least("budget.running", above.running, below.running)?,
        sent: context.least("budget.sent", above.sent, below.sent)?,
        received: context.least("budget.received", above.received, below.received)?,
        executions: context.least("budget.executions", above.executions, below.executions)?,
    })
}

fn narrow_output(context: &Context<'_>, above: Output, below: Output) -> Result<Output, PolicyError> {
    Ok(Output {
        bytes: context.least("output.bytes", above.bytes, below.bytes)?,
        strip_escapes: context.keep("output.strip_escapes", true, above.strip_escapes, below.strip_escapes)?,
        mask_secrets: context.keep("output.mask_secrets", true, above.mask_secrets, below.mask_secrets)?,
    })
}
