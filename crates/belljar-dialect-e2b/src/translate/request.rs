//! What a client wants a sandbox to be. What cannot be done is refused here, never left out in silence.

use std::time::Duration;

use belljar_core::CreateSandbox;
use belljar_types::{Network, OnTimeout, ProjectId, TemplateName};

use super::{Marks, mount_request};
use crate::dto::{NetworkDto, NewSandbox};
use crate::errors::ApiError;

const EVERYTHING: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// The core's request. `default_timeout` is in seconds.
pub(crate) fn create_request(new: NewSandbox, default_timeout: u64, idempotency_key: Option<String>) -> Result<CreateSandbox, ApiError> {
    let nothing = NetworkDto::default();
    let network = new.network.as_ref().unwrap_or(&nothing);
    if new.iam.as_ref().is_some_and(|iam| !iam.is_null()) {
        return Err(ApiError::unsupported("identity tokens (iam)"));
    }
    let volumes = new.volume_mounts.unwrap_or_default().into_iter().map(mount_request).collect::<Result<_, _>>()?;
    let program_host = network.mask_request_host.clone().filter(|host| !host.is_empty());
    if program_host.as_ref().is_some_and(|host| host.len() > 512 || !host.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err(ApiError::bad_request("network.maskRequestHost must be a host name, with ${PORT} for the port"));
    }
    let marks = Marks { secure: new.secure != Some(false), public_ports: network.allow_public_traffic != Some(false), program_host };
    let mut metadata = new.metadata.unwrap_or_default();
    marks.put(&mut metadata);
    Ok(CreateSandbox {
        template: Some(template_name(&new.template_id)?),
        network: Some(network_of(new.allow_internet_access, network)?),
        volumes,
        env: new.env_vars.unwrap_or_default(),
        metadata,
        lease: Some(Duration::from_secs(new.timeout.unwrap_or(default_timeout))),
        idempotency_key,
        on_timeout: match (new.auto_pause, new.auto_pause_memory) {
            (Some(true), Some(false)) => OnTimeout::PauseFiles,
            (Some(true), _) => OnTimeout::Pause,
            _ => OnTimeout::Kill,
        },
        auto_resume: new.auto_resume.is_some_and(|resume| resume.enabled),
        ..CreateSandbox::default()
    })
}

/// All or nothing may go out; anything between is refused.
pub(crate) fn network_of(internet: Option<bool>, network: &NetworkDto) -> Result<Network, ApiError> {
    let is_everything = |rule: &String| EVERYTHING.contains(&rule.as_str());
    let allowed = network.allow_out.as_deref().unwrap_or_default();
    let denied = network.deny_out.as_deref().unwrap_or_default();
    let has_rules = network.rules.as_ref().is_some_and(|rules| !rules.is_empty());
    let has_proxy = network.egress_proxy.as_ref().is_some_and(|proxy| !proxy.is_null());
    if has_rules || has_proxy || !allowed.iter().chain(denied).all(is_everything) {
        return Err(ApiError::unsupported("letting only some outgoing traffic through (network.allowOut, denyOut, rules, egressProxy)"));
    }
    let closed = internet.or(network.allow_internet_access) == Some(false) || !denied.is_empty();
    // E2B: what is allowed beats what is denied.
    Ok(if closed && allowed.is_empty() { Network::None } else { Network::Open })
}

/// A template by its id or name. Without a tag, and with the one that stands for none, it is the plain name.
pub(crate) fn template_name(id: &str) -> Result<TemplateName, ApiError> {
    // Projects are what E2B calls teams.
    let name = id.split_once('/').map_or(id, |(team, name)| if team.parse::<ProjectId>().is_ok() { name } else { id });
    let name = match name.split_once(':') {
        Some((plain, "latest" | "default")) => plain,
        _ => name,
    };
    name.parse().map_err(|_| ApiError::no_template(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: &str) -> Result<CreateSandbox, ApiError> {
        create_request(serde_json::from_str(json).unwrap(), 15, None)
    }

    #[test]
    fn a_plain_request_has_a_network_and_is_secure() {
        let plain = request(r#"{"templateID":"base"}"#).unwrap();
        assert_eq!(plain.lease, Some(Duration::from_secs(15)));
        assert_eq!(plain.network, Some(Network::Open));
        assert_eq!(Marks::of(&plain.metadata), Marks { secure: true, public_ports: true, program_host: None });
    }

    #[test]
    fn all_or_nothing_may_go_out_and_what_is_between_is_refused() {
        let network = |json: &str| request(&format!(r#"{{"templateID":"base",{json}}}"#)).map(|request| request.network.unwrap());
        assert_eq!(network(r#""allow_internet_access":false"#).unwrap(), Network::None);
        assert_eq!(network(r#""network":{"denyOut":["0.0.0.0/0"]}"#).unwrap(), Network::None);
        assert_eq!(network(r#""network":{"denyOut":["0.0.0.0/0"],"allowOut":["0.0.0.0/0"]}"#).unwrap(), Network::Open);
        for refused in [
            r#""network":{"denyOut":["8.8.8.8/32"]}"#,
            r#""network":{"denyOut":["0.0.0.0/0"],"allowOut":["1.1.1.1"]}"#,
            r#""network":{"rules":{"x.example":[]}}"#,
            r#""network":{"egressProxy":{"address":"x:1"}}"#,
            r#""volumeMounts":[{"name":"v","path":"/proc"}]"#,
        ] {
            assert!(network(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn what_the_end_of_its_time_does_to_a_sandbox_is_as_asked() {
        let then = |json: &str| request(&format!(r#"{{"templateID":"base"{json}}}"#)).unwrap().on_timeout;
        assert_eq!(then(""), OnTimeout::Kill);
        assert_eq!(then(r#","autoPauseMemory":false"#), OnTimeout::Kill);
        assert_eq!(then(r#","autoPause":true"#), OnTimeout::Pause);
        assert_eq!(then(r#","autoPause":true,"autoPauseMemory":false"#), OnTimeout::PauseFiles);
    }

    #[test]
    fn a_template_has_one_name_however_it_is_written() {
        for id in ["base", "base:latest", "team/base:default"] {
            assert_eq!(template_name(id).unwrap().as_str(), "base", "{id}");
        }
        assert_eq!(template_name("team/base:v2").unwrap().as_str(), "base:v2");
        for id in ["", "base:", "base:v2:v3", "../x", "a b"] {
            assert!(template_name(id).is_err(), "{id}");
        }
    }
}
