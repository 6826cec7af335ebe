//! Projects, keys and templates.

use belljar_core::{NewKeyRequest, OwnedTemplate};
use belljar_types::{ApiKey, Invalid, Project, ProjectId, Quota, ReadyCheck, Scope, StartUp, Template, Timestamp};

use super::{moment, renamed, seconds};
use crate::dto::{KeyRequest, KeyView, ProjectView, QuotaRequest, QuotaView, StartView, TemplateView};

/// The numbers that are given, over those that were there.
pub(crate) fn quota(request: &QuotaRequest, before: Quota) -> Result<Quota, Invalid> {
    // Stores count in signed numbers.
    let stored = |field: &str, value: Option<u64>, before: u64| match value {
        Some(value) if i64::try_from(value).is_err() => Err(Invalid::new(field, format!("at most {}", i64::MAX), value.to_string())),
        value => Ok(value.unwrap_or(before)),
    };
    Ok(Quota {
        sandboxes: request.sandboxes.unwrap_or(before.sandboxes),
        cpu_millis: stored("quota.cpu_millis", request.cpu_millis, before.cpu_millis)?,
        memory_bytes: stored("quota.memory_bytes", request.memory_bytes, before.memory_bytes)?,
        disk_bytes: stored("quota.disk_bytes", request.disk_bytes, before.disk_bytes)?,
    })
}

pub(crate) fn project_view(project: &Project) -> ProjectView {
    let Quota { sandboxes, cpu_millis, memory_bytes, disk_bytes } = project.quota;
    ProjectView {
        id: project.id.to_string(),
        quota: QuotaView { sandboxes, cpu_millis, memory_bytes, disk_bytes },
        created_at: moment(project.created_at),
    }
}

pub(crate) fn new_key(request: KeyRequest) -> Result<NewKeyRequest, Invalid> {
    let scopes: Result<_, Invalid> = request.scopes.iter().map(|scope| scope.parse::<Scope>()).collect();
    if request.scopes.is_empty() {
        return Err(Invalid::new("scopes", "at least one of read, use, templates and admin", ""));
    }
    if request.label.len() > 256 || request.label.contains('\0') {
        return Err(Invalid::new("label", "at most 256 bytes without NUL", request.label));
    }
    Ok(NewKeyRequest {
        project: request.project.parse::<ProjectId>()?,
        scopes: scopes.map_err(|error| renamed("scopes", error))?,
        label: request.label,
        lifetime: request.expires_in_seconds.map(|value| seconds("expires_in_seconds", value)).transpose()?,
    })
}

pub(crate) fn key_view(key: &ApiKey) -> KeyView {
    KeyView {
        id: key.id.to_string(),
        project: key.project.to_string(),
        scopes: key.scopes.iter().map(|scope| scope.as_str()).collect(),
        label: key.label.clone(),
        created_at: moment(key.created_at),
        expires_at: key.expires_at.map(moment),
    }
}

pub(crate) fn template_view(template: &Template, owner: Option<&ProjectId>, bytes: Option<u64>) -> TemplateView {
    TemplateView {
        name: template.name.to_string(),
        owner: owner.map(ToString::to_string),
        origin: template.origin.clone(),
        layers: template.layers.iter().map(ToString::to_string).collect(),
        bytes,
        env: template.defaults.env.clone(),
        user: template.defaults.user.as_ref().map(ToString::to_string),
        workdir: template.defaults.workdir.clone(),
        start: template.defaults.start.as_ref().map(start_view),
        created_at: moment(Timestamp(template.created_at.saturating_mul(1000))),
    }
}

fn start_view(start: &StartUp) -> StartView {
    let (ready_port, ready_command) = match &start.ready {
        Some(ReadyCheck::Port(port)) => (Some(*port), None),
        Some(ReadyCheck::Command(command)) => (None, Some(command.clone())),
        None => (None, None),
    };
    StartView { command: start.command.clone(), ready_port, ready_command, within_seconds: start.within().as_secs(), warm: start.warm }
}

pub(crate) fn owned_view(owned: &OwnedTemplate) -> TemplateView {
    template_view(&owned.template, owned.owner.as_ref(), Some(owned.bytes))
}
