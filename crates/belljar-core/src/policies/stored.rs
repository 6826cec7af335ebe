//! The policy that was stored with a sandbox, and what it says about ports and volumes. It is read once and kept, because every connection and
//! every result is held to it; a policy that cannot be read, of a newer server say, opens nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use belljar_policy::{Format, Policy, parse};
use belljar_types::{Invalid, MountMode, Sandbox, SandboxId, VolumeMount};

/// When this many are kept, all are forgotten: each is read again by the next who asks.
const MOST_KEPT: usize = 4096;

/// By sandbox, with the text that was read: a policy can be changed.
type Kept = HashMap<SandboxId, (String, Arc<Policy>)>;

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// What holds for a sandbox; `None` if nobody rules anything.
pub(crate) fn policy_of(sandbox: &Sandbox) -> Result<Option<Arc<Policy>>, Invalid> {
    let Some(text) = &sandbox.spec.policy else { return Ok(None) };
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, policy)) = kept.get(&sandbox.id)
        && of == text
    {
        return Ok(Some(Arc::clone(policy)));
    }
    let policy = Arc::new(read(text)?);
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(sandbox.id.clone(), (text.clone(), Arc::clone(&policy)));
    Ok(Some(policy))
}

fn read(text: &str) -> Result<Policy, Invalid> {
    parse(text, Format::Json).map_err(|error| {
        let expected =
            "a policy that this server can read; give the sandbox one with `belljar policy apply`, or start the server that wrote it";
        Invalid::new("policy", expected, error.to_string())
    })
}

/// Refuses a volume that a policy does not have, there and in that way.
pub(crate) fn check_mounts(policy: Option<&str>, volumes: &[VolumeMount]) -> Result<(), Invalid> {
    let Some(allowed) = policy.map(read).transpose()?.and_then(|policy| policy.mounts) else { return Ok(()) };
    let is_allowed = |mount: &VolumeMount| {
        allowed.iter().any(|allowed| {
            let names_it = allowed.volume == mount.name.as_str() || allowed.volume == mount.volume.as_str();
            names_it && allowed.at == mount.path.as_str() && (allowed.writable || mount.mode == MountMode::ReadOnly)
        })
    };
    match volumes.iter().find(|mount| !is_allowed(mount)) {
        Some(mount) => {
            let asked = format!("{} at {}, {:?}", mount.name, mount.path, mount.mode);
            Err(Invalid::new("volumes", "volumes that the policy has, where and as it has them (mounts)", asked))
        }
        None => Ok(()),
    }
}

/// Refuses a port that the policy of a sandbox does not open.
pub(crate) fn check_ingress(sandbox: &Sandbox, port: u16) -> Result<(), Invalid> {
    let policy = policy_of(sandbox)?;
    match policy.as_ref().and_then(|policy| policy.ingress.as_ref()) {
        Some(ingress) if !ingress.ports.iter().any(|range| range.contains(port)) => {
            Err(Invalid::new("port", "a port that the sandbox's policy opens (ingress.ports)", port.to_string()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_cannot_be_read_opens_nothing() {
        assert!(check_mounts(Some(r#"{"version":1}"#), &[]).is_ok(), "a policy that rules nothing");
        for text in ["", "{", r#"{"version":99}"#, r#"{"version":1,"rule_of_tomorrow":true}"#] {
            let refused = check_mounts(Some(text), &[]).unwrap_err();
            assert_eq!(refused.field, "policy", "{text}");
        }
    }
}
