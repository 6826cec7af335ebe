//! What a client wants a sandbox to be. What cannot be done is refused here, never left out in silence.

use std::time::Duration;

use belljar_core::CreateSandbox;
use belljar_types::{OnTimeout, ProjectId, TemplateName};

use super::{Marks, mount_request, outgoing};
use crate::dto::{NetworkDto, NewSandbox};
use crate::errors::ApiError;

/// The core's request. `default_timeout` is in seconds; `filters` says whether the server can hold rules about what goes out.
pub(crate) fn create_request(
    new: NewSandbox,
    default_timeout: u64,
    idempotency_key: Option<String>,
    filters: bool,
) -> Result<CreateSandbox, ApiError> {
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
    let between = || ApiError::unsupported("letting only some outgoing traffic through (network.allowOut, denyOut, rules)");
    let (slot, policy) = outgoing(new.allow_internet_access, network)?.slot(filters).ok_or_else(between)?;
    let mut metadata = new.metadata.unwrap_or_default();
    marks.put(&mut metadata);
    Ok(CreateSandbox {
        template: Some(template_name(&new.template_id)?),
        network: Some(slot),
        policy,
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
    use belljar_types::Network;

    use super::*;

    fn request_to(json: &str, filters: bool) -> Result<CreateSandbox, ApiError> {
        create_request(serde_json::from_str(json).unwrap(), 15, None, filters)
    }

    fn request(json: &str) -> Result<CreateSandbox, ApiError> {
        request_to(json, true)
    }

    #[test]
    fn a_plain_request_has_a_network_and_is_secure() {
        let plain = request(r#"{"templateID":"base"}"#).unwrap();
        assert_eq!(plain.lease, Some(Duration::from_secs(15)));
        assert_eq!((plain.network, plain.policy), (Some(Network::Filtered), None));
        assert_eq!(Marks::of(&plain.metadata), Marks { secure: true, public_ports: true, program_host: None });
    }

    #[test]
    fn without_a_proxy_all_or_nothing_may_go_out_and_what_is_between_is_refused() {
        let network = |json: &str| request_to(&format!(r#"{{"templateID":"base",{json}}}"#), false).map(|request| request.network.unwrap());
        assert_eq!(network(r#""timeout":15"#).unwrap(), Network::Open);
        assert_eq!(network(r#""allow_internet_access":false"#).unwrap(), Network::None);
        assert_eq!(network(r#""network":{"denyOut":["0.0.0.0/0"]}"#).unwrap(), Network::None);
        assert_eq!(network(r#""network":{"denyOut":["0.0.0.0/0"],"allowOut":["0.0.0.0/0"]}"#).unwrap(), Network::Open);
        for refused in [r#""network":{"denyOut":["8.8.8.8/32"]}"#, r#""network":{"denyOut":["0.0.0.0/0"],"allowOut":["1.1.1.1"]}"#] {
            assert!(network(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn with_a_proxy_a_closed_network_can_be_opened_later() {
        let closed = request(r#"{"templateID":"base","allow_internet_access":false}"#).unwrap();
        assert_eq!(closed.network, Some(Network::Filtered));
        assert!(!closed.policy.unwrap().has_network());
        for refused in
            [r#""network":{"egressProxy":{"address":"x:1"}}"#, r#""iam":{"tokens":{}}"#, r#""volumeMounts":[{"name":"v","path":"/proc"}]"#]
        {
            assert!(request(&format!(r#"{{"templateID":"base",{refused}}}"#)).is_err(), "{refused}");
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
