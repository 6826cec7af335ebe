//! What a client wants a sandbox to be. What cannot be done is refused here, never left out in silence.

use std::time::Duration;

use belljar_core::{CreateSandbox, PartialLimits};
use belljar_types::{Invalid, OnTimeout, TemplateName};

use super::{Marks, check_labels, mount_request, named, outgoing};
use crate::dto::NewSandbox;
use crate::errors::ApiError;

const MINUTE: u64 = 60;
/// Minutes after which a sandbox that nobody uses is stopped when its maker does not say.
const AUTO_STOP: u64 = 15;
/// A week: Daytona's own default.
const AUTO_ARCHIVE: u64 = 7 * 24 * 60;

/// The core's request. `longest_lease` is how long a sandbox may run without being told so anew; `filters` says whether the server can hold rules about
/// what goes out.
pub(crate) fn create_request(new: NewSandbox, longest_lease: Duration, filters: bool) -> Result<CreateSandbox, ApiError> {
    refuse_what_is_not_done(&new)?;
    let mut metadata = new.labels.unwrap_or_default();
    check_labels(&metadata)?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(name) = given(&new.name) {
        named(&name, &mut metadata)?;
    }
    let (stop, pause) = (new.auto_stop_interval, new.auto_pause_interval.unwrap_or(0));
    let marks = Marks {
        public: new.public == Some(true),
        user: given(&new.user).map(|user| user.parse()).transpose()?,
        target: given(&new.target),
        auto_archive: new.auto_archive_interval.filter(|minutes| *minutes > 0).unwrap_or(AUTO_ARCHIVE),
        block_all: new.network_block_all == Some(true),
        allow_list: given(&new.network_allow_list),
        domains: given(&new.domain_allow_list),
        links: 0,
    };
    marks.put(&mut metadata);
    let between = || ApiError::unsupported("letting only some outgoing traffic through (networkAllowList, domainAllowList)");
    let way_out = outgoing(marks.block_all, marks.allow_list.as_deref(), marks.domains.as_deref())?;
    let (network, policy) = way_out.slot(filters).ok_or_else(between)?;
    let template = given(&new.snapshot).map(|name| name.parse::<TemplateName>().map_err(|_| no_snapshot(&name))).transpose()?;
    Ok(CreateSandbox {
        template,
        limits: PartialLimits {
            cpu_millis: new
                .cpu
                .map(|cores| times("cpu", u64::from(cores), 1000))
                .transpose()?
                .and_then(|millis| u32::try_from(millis).ok()),
            memory_bytes: new.memory.map(|gib| times("memory", gib, 1 << 30)).transpose()?,
            disk_bytes: new.disk.map(|gib| times("disk", gib, 1 << 30)).transpose()?,
            ..PartialLimits::default()
        },
        network: Some(network),
        policy,
        volumes: new.volumes.unwrap_or_default().into_iter().map(mount_request).collect::<Result<_, _>>()?,
        env: new.env.unwrap_or_default(),
        metadata,
        lease: Some(longest_lease),
        idle_timeout: idle_timeout(if pause > 0 { pause } else { stop.unwrap_or(AUTO_STOP) })?,
        on_timeout: on_timeout(pause > 0, new.auto_delete_interval.unwrap_or(-1))?,
        ..CreateSandbox::default()
    })
}

fn no_snapshot(name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "Snapshot {} not found: no template or snapshot has that name",
        belljar_types::escape_untrusted(name.as_bytes())
    ))
}

fn refuse_what_is_not_done(new: &NewSandbox) -> Result<(), ApiError> {
    let is_said = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let refused = [
        (new.build_info.is_some(), "making a sandbox from an image or a Dockerfile (name a template as its snapshot instead)"),
        (new.gpu.is_some_and(|count| count > 0), "a GPU"),
        (new.kvm == Some(true), "KVM in a sandbox"),
        (new.ttl_minutes.is_some_and(|minutes| minutes > 0), "ending a sandbox whatever its state (ttlMinutes)"),
        (is_said(&new.linked_sandbox), "a linked sandbox"),
        (is_said(&new.outbound_proxy_url), "a proxy of the client's own for outgoing traffic (outboundProxyUrl)"),
        (is_said(&new.otel_endpoint_override), "telemetry to another endpoint (otelEndpointOverride)"),
        (new.secrets.as_ref().is_some_and(|secrets| !secrets.is_empty()), "mounting secrets (use a policy of the native API)"),
        (
            new.auto_stop_interval.unwrap_or(0) > 0 && new.auto_pause_interval.unwrap_or(0) > 0,
            "both of autoStopInterval and autoPauseInterval",
        ),
    ];
    refused.into_iter().find(|(is, _)| *is).map_or(Ok(()), |(_, what)| Err(ApiError::unsupported(what)))
}

fn times(field: &'static str, count: u64, unit: u64) -> Result<u64, ApiError> {
    let product =
        if count == 0 { None } else { count.checked_mul(unit).filter(|product| u32::try_from(count).is_ok() && *product <= 1 << 50) };
    product.ok_or_else(|| Invalid::new(field, "a number above 0 that some machine could have", count.to_string()).into())
}

/// How long nobody may use a sandbox; 0 minutes are for ever.
pub(crate) fn idle_timeout(minutes: u64) -> Result<Option<Duration>, ApiError> {
    let seconds = minutes.checked_mul(MINUTE).filter(|seconds| *seconds <= 10 * 365 * 86_400);
    let seconds = seconds.ok_or_else(|| Invalid::new("interval", "at most ten years of minutes", minutes.to_string()))?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds)))
}

/// The minutes of an idle time-out.
pub(crate) fn minutes(timeout: Option<Duration>) -> u64 {
    timeout.map_or(0, |timeout| timeout.as_secs().div_ceil(MINUTE))
}

/// What happens when a sandbox was not used: it stands still, or ends if it is to be deleted as soon as it stops.
pub(crate) fn on_timeout(with_memory: bool, auto_delete: i64) -> Result<OnTimeout, ApiError> {
    match auto_delete {
        ..0 if with_memory => Ok(OnTimeout::Pause),
        ..0 => Ok(OnTimeout::PauseFiles),
        0 if with_memory => Err(ApiError::bad_request("a sandbox that is deleted as soon as it stops cannot be paused")),
        0 => Ok(OnTimeout::Kill),
        _ => Err(ApiError::unsupported(
            "deleting a sandbox some time after it stopped (autoDeleteInterval above 0; 0 deletes it at once, -1 never)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::Network;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn request(json: &str) -> Result<CreateSandbox, ApiError> {
        create_request(serde_json::from_str(json).unwrap(), DAY, true)
    }

    #[test]
    fn a_plain_request_lives_as_long_as_may_be_and_is_stopped_when_nobody_uses_it() {
        let plain = request(r#"{"labels":{"code-toolbox-language":"python"},"volumes":[],"spot":false,"kvm":false,"name":null}"#).unwrap();
        assert_eq!((plain.template, plain.lease, plain.idle_timeout), (None, Some(DAY), Some(Duration::from_secs(900))));
        assert_eq!((plain.on_timeout, plain.network, plain.policy), (OnTimeout::PauseFiles, Some(Network::Filtered), None));
        assert_eq!(super::super::labels(&plain.metadata).len(), 1);
    }

    #[test]
    fn intervals_say_what_becomes_of_it() {
        let of = |json: &str| request(json).map(|request| (request.idle_timeout.map(|time| time.as_secs()), request.on_timeout)).unwrap();
        assert_eq!(of(r#"{"autoStopInterval":0}"#), (None, OnTimeout::PauseFiles));
        assert_eq!(of(r#"{"autoStopInterval":0,"autoPauseInterval":2}"#), (Some(120), OnTimeout::Pause));
        assert_eq!(of(r#"{"autoStopInterval":1,"autoDeleteInterval":0}"#), (Some(60), OnTimeout::Kill));
        assert_eq!(minutes(Some(Duration::from_secs(61))), 2);
    }

    #[test]
    fn resources_are_counted_in_cores_and_gib() {
        let limits = request(r#"{"cpu":2,"memory":4,"disk":8}"#).unwrap().limits;
        assert_eq!((limits.cpu_millis, limits.memory_bytes, limits.disk_bytes), (Some(2000), Some(4 << 30), Some(8 << 30)));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for refused in [
            r#"{"buildInfo":{"dockerfileContent":"FROM x"}}"#,
            r#"{"gpu":1}"#,
            r#"{"ttlMinutes":5}"#,
            r#"{"autoDeleteInterval":5}"#,
            r#"{"autoStopInterval":5,"autoPauseInterval":5}"#,
            r#"{"secrets":[{"A":"b"}]}"#,
            r#"{"cpu":0}"#,
            r#"{"memory":18446744073709551615}"#,
            r#"{"labels":{"belljar.daytona":"{}"}}"#,
            r#"{"user":"a b"}"#,
            r#"{"snapshot":"a b"}"#,
            r#"{"volumes":[{"volumeId":"v","mountPath":"/x","subpath":"y"}]}"#,
        ] {
            assert!(request(refused).is_err(), "{refused}");
        }
        let between = create_request(serde_json::from_str(r#"{"networkAllowList":"1.1.1.1"}"#).unwrap(), DAY, false);
        assert_eq!(between.unwrap_err().status().as_u16(), 501);
    }
}
