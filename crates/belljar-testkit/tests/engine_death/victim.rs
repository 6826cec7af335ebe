//! Whom to kill: the engine's own processes, found by the control group and the records of the sandbox and by nothing else.

use std::time::Duration;

use belljar_testkit::Lab;
use belljar_types::{IsolationClass, SandboxId};
use rustix::process::{Pid, Signal, kill_process};

/// How often a sandbox that is only coming to be is looked for.
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: u32 = 20_000;

/// What was killed.
#[derive(Debug)]
pub(crate) enum Killed {
    First,
    Sentry,
    Gofer,
}

/// Waits until the sandbox has processes and then `delay` longer, and kills one of the engine's; says which, if there was one left.
pub(crate) async fn kill(lab: &Lab, class: IsolationClass, id: &SandboxId, delay: Duration, gofer: bool) -> Option<Killed> {
    let mut looks = 0;
    while lab.host_pids(id).is_empty() && looks < LOOKS {
        looks += 1;
        tokio::time::sleep(LOOK).await;
    }
    tokio::time::sleep(delay).await;
    let (pid, killed) = choose(lab, class, id, gofer)?;
    kill_process(Pid::from_raw(i32::try_from(pid).ok()?)?, Signal::KILL).ok()?;
    Some(killed)
}

fn choose(lab: &Lab, class: IsolationClass, id: &SandboxId, gofer: bool) -> Option<(u32, Killed)> {
    let mut members = lab.host_pids(id);
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

/// The state and the words of every child of this process, for whoever has to find out which one is left.
pub(crate) fn children() -> Vec<String> {
    let me = format!("PPid:\t{}\n", std::process::id());
    let describe = |entry: std::fs::DirEntry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok().filter(|status| status.contains(&me))?;
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let about: Vec<&str> = status.lines().filter(|line| line.starts_with("Name:") || line.starts_with("State:")).collect();
        Some(format!("{about:?} {}", String::from_utf8_lossy(&words).replace('\0', " ")))
    };
    std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok).filter_map(describe).collect()
}
