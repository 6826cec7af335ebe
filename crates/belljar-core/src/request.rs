//! What a caller asks for when making or changing a sandbox, and the checks that need nothing but the request and the settings.

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_policy::Policy;
use belljar_types::{Invalid, IsolationRequest, Limits, Network, OnTimeout, PrivilegePolicy, TemplateName};
use sha2::{Digest, Sha256};

use crate::{MountRequest, ServiceConfig};

/// Limits as asked for; what is unset is the server's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartialLimits {
    /// Thousandths of a core.
    pub cpu_millis: Option<u32>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Bytes of disk.
    pub disk_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Life in wall time, whatever happens.
    pub wall_time: Option<Duration>,
}

/// A sandbox to make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateSandbox {
    /// From what; the server's default when unset.
    pub template: Option<TemplateName>,
    /// From which snapshot instead, by its id or name. Limits that are unset are then the snapshot's, and its environment is below this one.
    pub snapshot: Option<String>,
    /// What is to isolate it; the server's default when unset.
    pub isolation: Option<IsolationRequest>,
    /// What it may use.
    pub limits: PartialLimits,
    /// What its slot lets through; what its policy says when unset, and nothing without one. Filtered without any policy is out to all public
    /// addresses.
    pub network: Option<Network>,
    /// What it may do, within what its project and its template may.
    pub policy: Option<Policy>,
    /// Who may become root in it.
    pub privilege: PrivilegePolicy,
    /// Environment for all its processes.
    pub env: BTreeMap<String, String>,
    /// The caller's own words about it.
    pub metadata: BTreeMap<String, String>,
    /// How long it lives from now on; the server's default when unset.
    pub lease: Option<Duration>,
    /// How long nobody may use it before it ends.
    pub idle_timeout: Option<Duration>,
    /// What happens when its lease runs out or nobody uses it.
    pub on_timeout: OnTimeout,
    /// Whether using it while it is paused resumes it.
    pub auto_resume: bool,
    /// Storage that outlives it. What is made from a snapshot with memory has that one's, and can have no other.
    pub volumes: Vec<MountRequest>,
    /// Its host name; its id when unset.
    pub hostname: Option<String>,
    /// The same key and request again answer with the same sandbox.
    pub idempotency_key: Option<String>,
}

/// A new lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Ends so long from now, sooner or later than before.
    FromNow(Duration),
    /// Ends so long from now, unless it already ends later.
    AtLeast(Duration),
}

/// What to change about a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxChange {
    /// Replaces all metadata.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Replaces the idle time-out; the inner `None` removes it.
    pub idle_timeout: Option<Option<Duration>>,
    /// Sets the lease.
    pub lease: Option<Lease>,
    /// Replaces what happens when its lease runs out or nobody uses it.
    pub on_timeout: Option<OnTimeout>,
    /// Replaces what it may do, within what its project and its template may.
    pub policy: Option<Box<Policy>>,
}

const MAX_METADATA: usize = 64;
const MAX_ENV: usize = 512;
const MAX_TEXT: usize = 64 * 1024;

impl CreateSandbox {
    /// Refuses what cannot be right, whatever the host.
    pub(crate) fn validate(&self, config: &ServiceConfig) -> Result<(), Invalid> {
        check_metadata(&self.metadata)?;
        check_env(&self.env)?;
        check_lease(self.lease.unwrap_or(config.default_lease), config)?;
        check_idle(self.idle_timeout)?;
        if let Some(key) = &self.idempotency_key
            && !((1..=128).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()))
        {
            return Err(Invalid::new("idempotency_key", "1 to 128 visible ASCII characters", key));
        }
        Ok(())
    }

    /// The limits it gets: its own, else the server's defaults; within the server's maximum.
    pub(crate) fn limits(&self, config: &ServiceConfig) -> Result<Limits, Invalid> {
        let defaults = &config.default_limits;
        let limits = Limits {
            cpu_millis: self.limits.cpu_millis.unwrap_or(defaults.cpu_millis),
            memory_bytes: self.limits.memory_bytes.unwrap_or(defaults.memory_bytes),
            disk_bytes: self.limits.disk_bytes.unwrap_or(defaults.disk_bytes),
            pids: self.limits.pids.unwrap_or(defaults.pids),
            wall_time: self.limits.wall_time.or(defaults.wall_time),
        };
        limits.validate()?;
        if let Some(max) = &config.max_limits {
            at_most("limits.cpu_millis", u64::from(limits.cpu_millis), u64::from(max.cpu_millis))?;
            at_most("limits.memory_bytes", limits.memory_bytes, max.memory_bytes)?;
            at_most("limits.disk_bytes", limits.disk_bytes, max.disk_bytes)?;
            at_most("limits.pids", u64::from(limits.pids), u64::from(max.pids))?;
            if let Some(wall) = max.wall_time {
                at_most("limits.wall_time", limits.wall_time.map_or(u64::MAX, |time| time.as_secs()), wall.as_secs())?;
            }
        }
        Ok(limits)
    }

    /// A digest of everything asked for: two requests are the same if these are.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(format!("{self:?}").as_bytes()).into()
    }
}

impl SandboxChange {
    pub(crate) fn validate(&self, config: &ServiceConfig) -> Result<(), Invalid> {
        if let Some(metadata) = &self.metadata {
            check_metadata(metadata)?;
        }
        if let Some(Lease::FromNow(lease) | Lease::AtLeast(lease)) = self.lease {
            check_lease(lease, config)?;
        }
        check_idle(self.idle_timeout.flatten())
    }
}

fn at_most(field: &str, value: u64, max: u64) -> Result<(), Invalid> {
    if value <= max { Ok(()) } else { Err(Invalid::new(field, format!("at most {max}, the server's maximum"), value.to_string())) }
}

pub(crate) fn check_lease(lease: Duration, config: &ServiceConfig) -> Result<(), Invalid> {
    if lease.is_zero() || lease > config.max_lease {
        let expected = format!("more than 0 and at most {} seconds, the server's maximum", config.max_lease.as_secs());
        return Err(Invalid::new("lease", expected, format!("{} seconds", lease.as_secs_f64())));
    }
    Ok(())
}

pub(crate) fn check_idle(timeout: Option<Duration>) -> Result<(), Invalid> {
    match timeout {
        Some(timeout) if timeout < Duration::from_secs(1) => {
            Err(Invalid::new("idle_timeout", "at least 1 second", format!("{} seconds", timeout.as_secs_f64())))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if metadata.len() > MAX_METADATA {
        return Err(Invalid::new("metadata", format!("at most {MAX_METADATA} entries"), metadata.len().to_string()));
    }
    for (name, value) in metadata {
        if name.is_empty() || name.len() > 256 || name.contains('\0') {
            return Err(Invalid::new("metadata", "names of 1 to 256 bytes without NUL", name));
        }
        if value.len() > 4096 || value.contains('\0') {
            return Err(Invalid::new("metadata", "values of at most 4096 bytes without NUL", value));
        }
    }
    Ok(())
}

pub(crate) fn check_env(env: &BTreeMap<String, String>) -> Result<(), Invalid> {
    if env.len() > MAX_ENV {
        return Err(Invalid::new("env", format!("at most {MAX_ENV} variables"), env.len().to_string()));
    }
    let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes > MAX_TEXT {
        return Err(Invalid::new("env", format!("at most {MAX_TEXT} bytes in all"), bytes.to_string()));
    }
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Invalid::new("env", "names without '=' and NUL", name));
        }
        // The value may be a secret: it is not shown.
        if value.contains('\0') {
            return Err(Invalid::new("env", "values without NUL", name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_beyond_the_servers_maximum_is_named() {
        let config = ServiceConfig { max_limits: Some(Limits { pids: 100, ..Limits::default() }), ..ServiceConfig::default() };
        let request = CreateSandbox { limits: PartialLimits { pids: Some(101), ..Default::default() }, ..Default::default() };
        assert_eq!(
            request.limits(&config).unwrap_err().to_string(),
            "limits.pids: expected at most 100, the server's maximum, got \"101\""
        );
    }

    #[test]
    fn a_value_of_the_environment_is_never_repeated_in_an_error() {
        let env = BTreeMap::from([("TOKEN".to_owned(), "s3cret\0".to_owned())]);
        let request = CreateSandbox { env, ..Default::default() };
        let error = request.validate(&ServiceConfig::default()).unwrap_err().to_string();
        assert!(error.contains("TOKEN") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn requests_that_differ_in_anything_have_other_fingerprints() {
        let plain = CreateSandbox::default();
        let named = CreateSandbox { metadata: BTreeMap::from([("a".to_owned(), "b".to_owned())]), ..Default::default() };
        assert_eq!(plain.fingerprint(), plain.clone().fingerprint());
        assert_ne!(plain.fingerprint(), named.fingerprint());
    }

    #[test]
    fn a_lease_of_nothing_or_of_too_much_is_refused() {
        for seconds in [0, 24 * 3600 + 1] {
            let change = SandboxChange { lease: Some(Lease::FromNow(Duration::from_secs(seconds))), ..Default::default() };
            assert_eq!(change.validate(&ServiceConfig::default()).unwrap_err().field, "lease");
        }
    }
}
