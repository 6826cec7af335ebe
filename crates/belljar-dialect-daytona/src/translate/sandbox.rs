//! A sandbox as Daytona's clients know it.

use std::collections::BTreeMap;

use belljar_http::moment;
use belljar_types::{Network, OnTimeout, PausedMemory, Sandbox, SandboxState, UserName};

use super::{Marks, labels, minutes, mount_dto, name_of};
use crate::dto::SandboxDto;

/// The daemon whose abilities are offered.
pub(crate) const DAEMON_VERSION: &str = "0.218.0";
/// Where a sandbox is when its maker does not say.
const TARGET: &str = "local";
const GIB: u64 = 1 << 30;

/// Where clients find what belongs to a sandbox, as they reached this server themselves.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    pub(crate) toolbox: String,
}

pub(crate) fn sandbox_dto(sandbox: &Sandbox, links: &Links) -> SandboxDto {
    let marks = Marks::of(&sandbox.metadata).unwrap_or_default();
    let (state, desired_state) = states(sandbox);
    let limits = &sandbox.spec.limits;
    let idle = minutes(sandbox.idle_timeout);
    let last = moment(sandbox.started_at.unwrap_or(sandbox.created_at).max(sandbox.leased_at));
    SandboxDto {
        id: sandbox.id.to_string(),
        organization_id: sandbox.project.to_string(),
        name: name_of(&sandbox.metadata).unwrap_or(sandbox.id.as_str()).to_owned(),
        snapshot: sandbox.template.to_string(),
        user: user_of(sandbox).as_ref().map_or(UserName::DEFAULT, UserName::as_str).to_owned(),
        // What is given to a sandbox is not given back: keys are in there, and whoever may only look would read them.
        env: BTreeMap::new(),
        labels: labels(&sandbox.metadata),
        public: marks.public,
        network_block_all: marks.block_all || sandbox.spec.network == Network::None,
        network_allow_list: marks.allow_list,
        domain_allow_list: marks.domains,
        target: marks.target.unwrap_or_else(|| TARGET.to_owned()),
        cpu: limits.cpu_millis.div_ceil(1000).max(1),
        gpu: 0,
        kvm: false,
        memory: limits.memory_bytes.div_ceil(GIB).max(1),
        disk: limits.disk_bytes.div_ceil(GIB).max(1),
        state,
        desired_state,
        error_reason: (sandbox.state == SandboxState::Failed).then(|| sandbox.end.as_ref().map(|end| end.detail.clone())).flatten(),
        auto_stop_interval: if sandbox.on_timeout == OnTimeout::Pause { 0 } else { idle },
        auto_pause_interval: if sandbox.on_timeout == OnTimeout::Pause { idle } else { 0 },
        auto_archive_interval: marks.auto_archive,
        auto_delete_interval: if sandbox.on_timeout == OnTimeout::Kill { 0 } else { -1 },
        volumes: sandbox.spec.volumes.iter().map(mount_dto).collect(),
        created_at: moment(sandbox.created_at),
        updated_at: last.clone(),
        last_activity_at: last,
        sandbox_class: "container",
        daemon_version: DAEMON_VERSION,
        toolbox_proxy_url: links.toolbox.clone(),
    }
}

/// Where it is in its life, in Daytona's word.
pub(crate) fn state_of(sandbox: &Sandbox) -> &'static str {
    states(sandbox).0
}

/// Where it is in its life, and where it is going.
fn states(sandbox: &Sandbox) -> (&'static str, &'static str) {
    // What stopped has its files alone; what is paused has its processes as well.
    let files_alone = sandbox.pause.is_none_or(|pause| pause.memory == PausedMemory::Lost);
    match (sandbox.state, files_alone) {
        (SandboxState::Creating, _) => ("creating", "started"),
        (SandboxState::Running, _) => ("started", "started"),
        (SandboxState::Pausing, true) => ("stopping", "stopped"),
        (SandboxState::Pausing, false) => ("pausing", "stopped"),
        (SandboxState::Paused, true) => ("stopped", "stopped"),
        (SandboxState::Paused, false) => ("paused", "stopped"),
        (SandboxState::Resuming, _) => ("starting", "started"),
        (SandboxState::Stopping, _) => ("destroying", "destroyed"),
        (SandboxState::Stopped, _) => ("destroyed", "destroyed"),
        (SandboxState::Failed, _) => ("error", "started"),
    }
}

/// Who runs a sandbox's processes; the agent's default when nobody says.
pub(crate) fn user_of(sandbox: &Sandbox) -> Option<UserName> {
    Marks::of(&sandbox.metadata).and_then(|marks| marks.user).or_else(|| sandbox.spec.defaults.user.clone())
}
