//! Sandboxes: requests, views, filters and cursors.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::policy::{Format, Policy};
use belljar_core::{CreateSandbox, Cursor, Lease, Order, PageRequest, PartialLimits, SandboxChange, SandboxFilter};
use belljar_types::{
    GuestMetrics, Invalid, Limits, ListeningPort, Network, OnTimeout, PauseKind, PausedMemory, PrivilegePolicy, Sandbox, SandboxState,
    Timestamp, Usage,
};

use super::{moment, mount, mount_view, origin_view, seconds, word};
use crate::dto::{
    CreateRequest, EndView, GuestMetricsView, LeaseRequest, LimitsRequest, LimitsView, PauseRequest, PauseView, PortView, ResumeRequest,
    SandboxView, UpdateRequest, UsageView,
};

pub(crate) fn create(request: CreateRequest, idempotency_key: Option<String>) -> Result<CreateSandbox, Invalid> {
    let network = [("none", Network::None), ("open", Network::Open)];
    let privilege = [("root-allowed", PrivilegePolicy::RootAllowed), ("user-only", PrivilegePolicy::UserOnly)];
    let on_timeout = [("kill", OnTimeout::Kill), ("pause", OnTimeout::Pause), ("pause-files", OnTimeout::PauseFiles)];
    Ok(CreateSandbox {
        template: request.template.map(|name| name.parse()).transpose().map_err(|error| renamed("template", error))?,
        snapshot: request.snapshot,
        isolation: request.isolation.map(|text| text.parse()).transpose()?,
        limits: partial_limits(&request.limits)?,
        network: request.network.map(|text| word("network", &text, &network)).transpose()?,
        policy: request.policy.as_ref().map(policy).transpose()?,
        privilege: request.privilege.map(|text| word("privilege", &text, &privilege)).transpose()?.unwrap_or_default(),
        env: request.env,
        metadata: request.metadata,
        lease: request.lease_seconds.map(|value| seconds("lease_seconds", value)).transpose()?,
        idle_timeout: request.idle_timeout_seconds.map(|value| seconds("idle_timeout_seconds", value)).transpose()?,
        on_timeout: request.on_timeout.map(|text| word("on_timeout", &text, &on_timeout)).transpose()?.unwrap_or_default(),
        auto_resume: request.auto_resume,
        volumes: request.volumes.into_iter().map(mount).collect::<Result<_, _>>()?,
        hostname: request.hostname,
        idempotency_key,
    })
}

/// A profile by its name, or a document.
fn policy(value: &serde_json::Value) -> Result<Policy, Invalid> {
    let read = match value {
        serde_json::Value::String(name) => belljar_core::policy::profile(name),
        document => belljar_core::policy::parse(&document.to_string(), Format::Json),
    };
    read.map_err(|error| error.as_invalid())
}

/// The same refusal under the name the caller used.
pub(crate) fn renamed(field: &str, invalid: Invalid) -> Invalid {
    Invalid { field: field.to_owned(), ..invalid }
}

fn partial_limits(limits: &LimitsRequest) -> Result<PartialLimits, Invalid> {
    Ok(PartialLimits {
        cpu_millis: limits.cpu_millis,
        memory_bytes: limits.memory_bytes,
        disk_bytes: limits.disk_bytes,
        pids: limits.pids,
        wall_time: limits.wall_time_seconds.map(|value| seconds("limits.wall_time_seconds", value)).transpose()?,
    })
}

pub(crate) fn change(request: UpdateRequest) -> Result<SandboxChange, Invalid> {
    let idle = |value: Option<u64>| value.map(|value| seconds("idle_timeout_seconds", value)).transpose();
    Ok(SandboxChange {
        metadata: request.metadata,
        idle_timeout: request.idle_timeout_seconds.map(idle).transpose()?,
        lease: request.lease_seconds.map(|value| seconds("lease_seconds", value)).transpose()?.map(Lease::FromNow),
        policy: request.policy.as_ref().map(policy).transpose()?.map(Box::new),
        ..SandboxChange::default()
    })
}

pub(crate) fn lease(request: &LeaseRequest) -> Result<Lease, Invalid> {
    let duration = seconds("seconds", request.seconds)?;
    Ok(if request.at_least { Lease::AtLeast(duration) } else { Lease::FromNow(duration) })
}

pub(crate) fn kept(request: &PauseRequest) -> Result<PauseKind, Invalid> {
    let kinds = [("memory", PauseKind::Memory), ("standby", PauseKind::Standby), ("filesystem", PauseKind::Filesystem)];
    request.keep.as_deref().map_or(Ok(PauseKind::Memory), |text| word("keep", text, &kinds))
}

pub(crate) fn resumed_lease(request: &ResumeRequest) -> Result<Option<Duration>, Invalid> {
    request.lease_seconds.map(|value| seconds("lease_seconds", value)).transpose()
}

fn memory_word(memory: PausedMemory) -> &'static str {
    match memory {
        PausedMemory::Lost => "lost",
        PausedMemory::Resident => "resident",
        PausedMemory::OnDisk => "on-disk",
    }
}

pub(crate) fn limits_view(limits: &Limits) -> LimitsView {
    LimitsView {
        cpu_millis: limits.cpu_millis,
        memory_bytes: limits.memory_bytes,
        disk_bytes: limits.disk_bytes,
        pids: limits.pids,
        wall_time_seconds: limits.wall_time.map(|time| time.as_secs()),
    }
}

pub(crate) fn sandbox_view(sandbox: &Sandbox) -> SandboxView {
    SandboxView {
        id: sandbox.id.to_string(),
        project: sandbox.project.to_string(),
        state: sandbox.state.as_str(),
        isolation: sandbox.class.as_str(),
        isolation_reason: sandbox.class_reason.clone(),
        template: sandbox.template.to_string(),
        execution: sandbox.execution().to_string(),
        limits: limits_view(&sandbox.spec.limits),
        network: match sandbox.spec.network {
            Network::None => "none",
            Network::Open => "open",
            Network::Filtered => "filtered",
        },
        privilege: match sandbox.spec.privilege {
            PrivilegePolicy::RootAllowed => "root-allowed",
            PrivilegePolicy::UserOnly => "user-only",
        },
        policy: sandbox.spec.policy.as_deref().and_then(|text| serde_json::from_str(text).ok()),
        env: sandbox.spec.env.keys().cloned().collect(),
        metadata: sandbox.metadata.clone(),
        volumes: sandbox.spec.volumes.iter().map(mount_view).collect(),
        hostname: sandbox.spec.hostname.clone(),
        created_at: moment(sandbox.created_at),
        started_at: sandbox.started_at.map(moment),
        expires_at: sandbox.expires_at.map(moment),
        idle_timeout_seconds: sandbox.idle_timeout.map(|timeout| timeout.as_secs()),
        on_timeout: match sandbox.on_timeout {
            OnTimeout::Kill => "kill",
            OnTimeout::Pause => "pause",
            OnTimeout::PauseFiles => "pause-files",
        },
        auto_resume: sandbox.auto_resume,
        pause: sandbox.pause.map(|pause| PauseView { since: moment(pause.since), memory: memory_word(pause.memory) }),
        origin: sandbox.origin.as_ref().map(origin_view),
        end: sandbox.end.as_ref().map(|end| EndView { cause: end.cause.as_str(), detail: end.detail.clone(), at: moment(end.at) }),
    }
}

/// Reads the query of a list: states and metadata may come more than once.
pub(crate) fn list_query(query: &str) -> Result<(SandboxFilter, PageRequest), Invalid> {
    let mut filter = SandboxFilter::default();
    let mut page = PageRequest { order: Order::default(), after: None, limit: 100 };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "state" => {
                let states: Result<Vec<SandboxState>, Invalid> = value.split(',').map(str::parse).collect();
                filter.states.extend(states?);
            }
            "metadata" => {
                let (key, value) = value.split_once(':').ok_or_else(|| Invalid::new("metadata", "name:value", value.as_bytes()))?;
                add_metadata(&mut filter.metadata, key, value)?;
            }
            "template" => filter.template = Some(value.parse().map_err(|error| renamed("template", error))?),
            "order" => page.order = word("order", &value, &[("newest", Order::NewestFirst), ("oldest", Order::OldestFirst)])?,
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=1000).contains(limit));
                page.limit = limit.ok_or_else(|| Invalid::new("limit", "1 to 1000", value.as_bytes()))?;
            }
            "cursor" => page.after = Some(read_cursor(&value)?),
            other => match other.strip_prefix("metadata.") {
                Some(key) => add_metadata(&mut filter.metadata, key, &value)?,
                None => return Err(Invalid::new(other, "state, metadata, template, order, limit or cursor", other)),
            },
        }
    }
    Ok((filter, page))
}

fn add_metadata(metadata: &mut BTreeMap<String, String>, key: &str, value: &str) -> Result<(), Invalid> {
    if key.is_empty() || key.contains('\0') || value.contains('\0') {
        return Err(Invalid::new("metadata", "a name and a value without NUL", key));
    }
    match metadata.insert(key.to_owned(), value.to_owned()) {
        Some(before) if before != value => Err(Invalid::new("metadata", "each name once", key)),
        _ => Ok(()),
    }
}

pub(crate) fn write_cursor(cursor: &Cursor) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}.{}", cursor.created_at.0, cursor.id))
}

fn read_cursor(text: &str) -> Result<Cursor, Invalid> {
    let read = || {
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (at, id) = plain.split_once('.')?;
        // The store counts in signed numbers.
        let at = at.parse::<u64>().ok().filter(|at| i64::try_from(*at).is_ok())?;
        Some(Cursor { created_at: Timestamp(at), id: id.parse().ok()? })
    };
    read().ok_or_else(|| Invalid::new("cursor", "what `next_cursor` said", text))
}

pub(crate) fn usage_view(usage: &Usage) -> UsageView {
    let Usage { cpu_micros, memory_bytes, memory_peak_bytes, disk_bytes, pids, oom_kills } = *usage;
    UsageView { cpu_micros, memory_bytes, memory_peak_bytes, disk_bytes, pids, oom_kills }
}

pub(crate) fn metrics_view(metrics: &GuestMetrics) -> GuestMetricsView {
    let GuestMetrics { cpus, cpu_micros, memory_total_bytes, memory_used_bytes, disk_total_bytes, disk_used_bytes, processes } = *metrics;
    GuestMetricsView { cpus, cpu_micros, memory_total_bytes, memory_used_bytes, disk_total_bytes, disk_used_bytes, processes }
}

pub(crate) fn port_view(port: &ListeningPort) -> PortView {
    PortView { port: port.port, address: port.address.to_string(), pid: port.pid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_filtered_by_what_may_come_more_than_once() {
        let (filter, page) = list_query("state=running,paused&state=failed&metadata=a:b:c&metadata.x=y&limit=7&order=oldest").unwrap();
        assert_eq!(filter.states, [SandboxState::Running, SandboxState::Paused, SandboxState::Failed]);
        assert_eq!(filter.metadata, BTreeMap::from([("a".into(), "b:c".into()), ("x".into(), "y".into())]));
        assert_eq!((page.limit, page.order), (7, Order::OldestFirst));
        for (query, field) in [
            ("state=gone", "state"),
            ("metadata=x", "metadata"),
            ("metadata=a:1&metadata=a:2", "metadata"),
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("cursor=x", "cursor"),
            ("template=%20", "template"),
            ("stat=running", "stat"),
        ] {
            assert_eq!(list_query(query).unwrap_err().field, field, "{query}");
        }
    }

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let cursor = Cursor { created_at: Timestamp(1234), id: belljar_types::SandboxId::random() };
        let (_, page) = list_query(&format!("cursor={}", write_cursor(&cursor))).unwrap();
        assert_eq!(page.after, Some(cursor));
        let far = URL_SAFE_NO_PAD.encode(format!("{}.sabcdefghijkmnpqrstu", u64::MAX));
        assert!(list_query(&format!("cursor={far}")).is_err(), "no store holds this");
    }
}
