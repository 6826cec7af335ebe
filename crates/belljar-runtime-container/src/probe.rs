//! Tries the container class out on this host: the only proof that it works is a sandbox that answered.

use std::error::Error;
use std::os::fd::AsFd;
use std::sync::Arc;

use belljar_linux::landlock;
use belljar_linux::mount::{self, Restrictions};
use belljar_types::{Check, CheckOutcome, EngineReport, IsolationClass, SandboxSpec};

use crate::create;
use crate::lifecycle::Inner;

mod kernel;

/// Landlock's interface with scoped signals and sockets.
const LANDLOCK_SCOPES: u32 = 6;
const LANDLOCK_USABLE: u32 = 2;
const SYS_RESOURCE: u32 = 24;

pub(crate) async fn probe(inner: &Arc<Inner>) -> EngineReport {
    let kernel = kernel::Kernel::of_this_host();
    let mut checks = vec![kernel.check(), users(), landlock_version(), owners(inner), oom_floor()];
    checks.extend(inner.host.checks().into_iter().filter(|check| check.name == "cgroups"));
    checks.push(trial(inner).await);
    EngineReport { class: IsolationClass::Container, version: format!("Linux {}", kernel.release), age_days: kernel.age_days, checks }
}

fn users() -> Check {
    const NAME: &str = "user namespaces";
    match belljar_linux::idmap::user_namespace(TRIAL_IDS, 65_536) {
        Ok(_) => Check::pass(NAME, "can be made and mapped"),
        Err(error) => Check::fail(
            NAME,
            format!("cannot be made: {error}"),
            "run as root with CAP_SYS_ADMIN and CAP_SETUID, and set sysctl user.max_user_namespaces above 0",
        ),
    }
}

/// Ids of no slot.
const TRIAL_IDS: u32 = 4_000_000_000;

fn owners(inner: &Arc<Inner>) -> Check {
    const NAME: &str = "mapped owners";
    let attempt = || {
        let users = belljar_linux::idmap::user_namespace(TRIAL_IDS, 65_536)?;
        let tree = mount::copy_tree(inner.host.pool_directory())?;
        mount::map_owners(tree.as_fd(), users.as_fd(), Restrictions::NONE)
    };
    match attempt() {
        Ok(()) => Check::pass(NAME, "the pool can be shown with a sandbox's own ids"),
        Err(error) => Check::fail(NAME, format!("the pool cannot be shown with other owners: {error}"), "use Linux 5.19 or later"),
    }
}

fn landlock_version() -> Check {
    const NAME: &str = "landlock";
    match landlock::version() {
        version if version < LANDLOCK_USABLE => Check::warn(
            NAME,
            "not there; the other fences stand without it",
            "add landlock to the kernel's list of security modules (boot parameter lsm=landlock,...), with Linux 5.19 or later",
        ),
        version if version < LANDLOCK_SCOPES => {
            Check::warn(NAME, format!("version {version}, without scopes for signals and sockets"), "use Linux 6.12 or later")
        }
        version => Check::pass(NAME, format!("version {version}")),
    }
}

/// Sandboxes must not be spared by the kernel because their server is.
fn oom_floor() -> Check {
    const NAME: &str = "out-of-memory score";
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").ok().and_then(|score| score.trim().parse::<i32>().ok()).unwrap_or(0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let effective = u64::from_str_radix(effective.trim(), 16).unwrap_or(0);
    if own >= 0 || effective >> SYS_RESOURCE & 1 == 1 {
        Check::pass(NAME, "sandboxes are chosen like anybody when memory runs out")
    } else {
        let fix = "start the server with CAP_SYS_RESOURCE, or without a negative oom_score_adj";
        Check::warn(NAME, format!("sandboxes can take the server's own score of {own}"), fix)
    }
}

/// A sandbox of nothing but the agent goes through every step: reserve, namespaces, mounts, filter, agent's answer, removal.
async fn trial(inner: &Arc<Inner>) -> Check {
    const NAME: &str = "a sandbox";
    let Some(agent) = inner.host.agent_layer() else {
        return Check::fail(
            NAME,
            "the host was not told which layer holds the agent",
            "build the agent (make guest) and start the server with it",
        );
    };
    let spec = SandboxSpec::on(vec![agent]);
    let made = create::make(Arc::clone(inner), spec.clone(), None).await;
    let removed = inner.destroy(&spec.id).await;
    match (made, removed) {
        (Ok(_), Ok(())) => Check::pass(NAME, "was made, answered and is gone"),
        (Err(error), _) => failed(NAME, "could not be made", &error),
        (Ok(_), Err(error)) => failed(NAME, "could not be removed", &error),
    }
}

fn failed(name: &str, what: &str, error: &dyn Error) -> Check {
    let mut found = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        found.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Check { name: name.to_owned(), outcome: CheckOutcome::Fail, found, fix: "the last words say which step failed and why".to_owned() }
}
