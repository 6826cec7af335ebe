//! Verbs about the sandbox as a whole.

use belljar_guest_protocol::wire::{Identity as IdentityBody, MetricsBody, PortBody, Renew};
use belljar_types::Secret;
use rustix::time::{ClockId, Timespec, clock_settime};

use super::output::items;
use crate::agent::{Identity, VERSION};
use crate::call::{Call, CallError};
use crate::{boot, metrics, ports, quiet};

const PORTS_AT_ONCE: usize = 1024;

pub(super) async fn hello(call: &mut Call<'_>) -> Result<(), CallError> {
    let identity = call.agent.identity.borrow().clone();
    let body =
        IdentityBody { sandbox: identity.sandbox.to_string(), execution: identity.execution.to_string(), agent_version: VERSION.into() };
    call.respond(&body).await
}

pub(super) async fn ports(call: &mut Call<'_>) -> Result<(), CallError> {
    let found = call.wait(crate::blocking::run(|| Ok(ports::listening()))).await??;
    let bodies: Vec<_> = found.iter().map(PortBody::from).collect();
    for some in bodies.chunks(PORTS_AT_ONCE) {
        items(call, some).await?;
    }
    call.end().await
}

pub(super) async fn metrics(call: &mut Call<'_>) -> Result<(), CallError> {
    let measured = call.wait(crate::blocking::run(|| Ok(metrics::measure()))).await??;
    call.respond(&MetricsBody::from(measured)).await
}

/// After a restore or a fork: the old token is worth nothing from here on.
pub(super) async fn renew(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Renew = call.body()?;
    let gateway = body.gateway.map(|bytes| <[u8; 4]>::from(bytes).into());
    let identity = Identity {
        sandbox: body.sandbox.parse()?,
        execution: body.execution.parse()?,
        token: Secret::new(body.token.into()),
        gateway: gateway.unwrap_or(call.agent.identity.borrow().gateway),
    };
    *call.agent.identity.borrow_mut() = identity;
    if let Some(name) = &body.hostname {
        boot::set_host_name(name);
    }
    if let Some(env) = body.env {
        call.agent.processes.environment.env.replace(env);
    }
    if let Some(nanos) = body.wall_clock_nanos {
        set_clock(nanos);
    }
    if body.quiet == Some(true) {
        quiet::begin().await;
    }
    call.respond(&()).await
}

/// Only a kernel of the sandbox's own lets the agent do this, and only such a one needs it.
fn set_clock(nanos: u64) {
    let seconds = i64::try_from(nanos / 1_000_000_000);
    let rest = i64::try_from(nanos % 1_000_000_000);
    if let (Ok(tv_sec), Ok(tv_nsec)) = (seconds, rest) {
        let _ = clock_settime(ClockId::Realtime, Timespec { tv_sec, tv_nsec });
    }
}
