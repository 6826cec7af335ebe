//! Whom to kill in the middle of something: the engine's own processes, found by the control group and the records of the sandbox and by nothing else.

use std::time::Duration;

use belljar_types::{IsolationClass, SandboxId};
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::host_pids;

/// How often a sandbox that is only coming to be is looked for.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 20_000;

/// What was killed.
#[derive(Debug)]
pub enum Killed {
    /// The first process of a container.
    First,
    /// gVisor's kernel.
    Sentry,
    /// Who opens files for it.
    Gofer,
}

/// Waits until the sandbox has processes and then `delay` longer, and kills one of the engine's; says which, if there was one left.
pub async fn kill_engine(class: IsolationClass, id: &SandboxId, delay: Duration, gofer: bool) -> Option<Killed> {
    let mut looks = 0;
    while host_pids(id).is_empty() && looks < LOOKS {
        looks += 1;
        tokio::time::sleep(LOOK).await;
    }
    tokio::time::sleep(delay).await;
    let (pid, killed) = choose(class, id, gofer)?;
    kill_process(Pid::from_raw(i32::try_from(pid).ok()?)?, Signal::KILL).ok()?;
    Some(killed)
}

fn choose(class: IsolationClass, id: &SandboxId, gofer: bool) -> Option<(u32, Killed)> {
    let mut members = host_pids(id);
    members.sort_unstable();
    if class == IsolationClass::Container {
        return members.first().map(|pid| (*pid, Killed::First));
    }
    let called = |pid: u32, name: &str| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(name.as_bytes()));
    if gofer && let Some(pid) = members.iter().copied().find(|pid| called(*pid, "runsc-gofer")) {
        return Some((pid, Killed::Gofer));
    }
    members.into_iter().find(|pid| called(*pid, "runsc-sandbox")).map(|pid| (pid, Killed::Sentry))
}
