//! A sandbox as E2B's clients know it.

use belljar_core::Caller;
use belljar_core::policy::{Format, Policy, parse};
use belljar_http::moment;
use belljar_types::{Limits, Network, OnTimeout, Sandbox, SandboxState, Scope, Timestamp};

use super::network::shown;
use super::{Marks, mount_dto};
use crate::dto::{SandboxDetail, SandboxDto};
use crate::tokens::Tokens;

/// The daemon whose abilities are offered: clients switch features on by this.
pub(crate) const ENVD_VERSION: &str = "0.6.4";
/// Older clients put it into host names; this server does not look at it.
const CLIENT_ID: &str = "belljar";
const MIB: u64 = 1 << 20;

/// With its tokens, for whoever may use it: they run programs in it, and who may only look must not be able to.
pub(crate) fn sandbox_dto(sandbox: &Sandbox, who: &Caller, tokens: &Tokens, domain: Option<&str>) -> SandboxDto {
    let marks = Marks::of(&sandbox.metadata);
    let may_use = who.may(Scope::Use);
    SandboxDto {
        envd_access_token: (may_use && marks.secure).then(|| tokens.daemon(&sandbox.id, &sandbox.project)),
        traffic_access_token: (may_use && !marks.public_ports).then(|| tokens.traffic(&sandbox.id, &sandbox.project)),
        ..without_tokens(sandbox, domain)
    }
}

fn without_tokens(sandbox: &Sandbox, domain: Option<&str>) -> SandboxDto {
    SandboxDto {
        template_id: sandbox.template.to_string(),
        sandbox_id: sandbox.id.to_string(),
        alias: sandbox.template.to_string(),
        client_id: CLIENT_ID,
        envd_version: ENVD_VERSION,
        envd_access_token: None,
        traffic_access_token: None,
        domain: domain.map(str::to_owned),
    }
}

/// Everything about it that the caller may know.
pub(crate) fn detail(sandbox: &Sandbox, who: &Caller, tokens: &Tokens, domain: Option<&str>) -> SandboxDetail {
    let limits = &sandbox.spec.limits;
    let (open, mut network) = going_out(sandbox);
    let marks = Marks::of(&sandbox.metadata);
    network.insert("allowPublicTraffic".to_owned(), marks.public_ports.into());
    SandboxDetail {
        sandbox: sandbox_dto(sandbox, who, tokens, domain),
        started_at: moment(sandbox.started_at.unwrap_or(sandbox.created_at)),
        end_at: moment(sandbox.expires_at.unwrap_or(Timestamp(253_402_300_799_000))),
        cpu_count: cpu_count(limits),
        memory_mb: limits.memory_bytes / MIB,
        disk_size_mb: limits.disk_bytes / MIB,
        metadata: Marks::without(&sandbox.metadata),
        state: if sandbox.state == SandboxState::Running { "running" } else { "paused" },
        allow_internet_access: open,
        network: network.into(),
        lifecycle: serde_json::json!({ "autoResume": sandbox.auto_resume, "onTimeout": on_timeout(sandbox.on_timeout) }),
        volume_mounts: sandbox.spec.volumes.iter().map(mount_dto).collect(),
    }
}

/// Whether anything goes out, and by which rules.
fn going_out(sandbox: &Sandbox) -> (bool, serde_json::Map<String, serde_json::Value>) {
    let policy = sandbox.spec.policy.as_deref().and_then(|text| parse(text, Format::Json).ok());
    match (sandbox.spec.network, policy) {
        (Network::Filtered, Some(policy)) => shown(&policy),
        (Network::Open, _) => (true, serde_json::Map::new()),
        (Network::Filtered | Network::None, _) => shown(&Policy::blank()),
    }
}

fn on_timeout(what: OnTimeout) -> &'static str {
    match what {
        OnTimeout::Kill => "kill",
        OnTimeout::Pause | OnTimeout::PauseFiles => "pause",
    }
}

/// Whole processors, rounded up: clients divide by it.
pub(crate) fn cpu_count(limits: &Limits) -> u32 {
    limits.cpu_millis.div_ceil(1000).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use belljar_http::PortTokens;
    use belljar_types::{IsolationClass, KeyId, LayerDigest, SandboxSpec};

    use super::*;

    fn sandbox() -> Sandbox {
        let layer: LayerDigest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
        let spec = SandboxSpec::on(vec![layer]);
        let mut metadata = BTreeMap::new();
        Marks { secure: true, public_ports: false, program_host: None }.put(&mut metadata);
        Sandbox {
            id: spec.id.clone(),
            project: "default".parse().unwrap(),
            asked_with: None,
            state: SandboxState::Running,
            class: IsolationClass::Container,
            class_reason: String::new(),
            template: "base".parse().unwrap(),
            spec,
            metadata,
            created_at: Timestamp(1),
            started_at: None,
            expires_at: None,
            leased_at: Timestamp(1),
            idle_timeout: None,
            on_timeout: OnTimeout::default(),
            auto_resume: false,
            pause: None,
            stood_still: std::time::Duration::ZERO,
            origin: None,
            begins_with: None,
            last_snapshot: None,
            end: None,
        }
    }

    #[test]
    fn only_who_may_use_a_sandbox_is_told_its_tokens() {
        let (sandbox, tokens) = (sandbox(), Tokens::new(Arc::new(PortTokens::new([3; 32]))));
        for (scope, told) in [(Scope::Read, false), (Scope::Templates, false), (Scope::Use, true), (Scope::Admin, true)] {
            let who = Caller { key: KeyId::random(), project: sandbox.project.clone(), scopes: [scope].into() };
            let answer = serde_json::to_value(detail(&sandbox, &who, &tokens, None)).unwrap();
            for name in ["envdAccessToken", "trafficAccessToken"] {
                assert_eq!(answer.get(name).is_some(), told, "{scope}: {name}");
            }
        }
    }
}
