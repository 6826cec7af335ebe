//! Ending a process with all that it started, without cgroups: they are the host's.
//!
//! A program can leave its parent, its process group and its session, so three marks are followed: the session, the chain of parents, and a
//! variable in the environment that children inherit. Whoever rubs out all three is still stopped with the sandbox.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use belljar_linux::mount::FileIdentity;
use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks a process and what it started with its id.
pub(crate) const MARK: &str = "BELLJAR_PROCESS";

const ROUNDS: usize = 20;
const LONGEST_ENVIRONMENT: u64 = 256 << 10;

struct Relative {
    parent: u32,
    session: u32,
    zombie: bool,
}

/// Kills the process, its descendants and its session. All are stopped before any is killed: a family that stands still has no new members,
/// and nobody loses the parent by which it is found. `mark` finds those who had left before.
pub(crate) fn kill_family(root: u32, mark: Option<&str>) {
    let mut stopped = HashSet::new();
    for _ in 0..ROUNDS {
        let new: Vec<u32> = family(root, mark).difference(&stopped).copied().collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            send(pid, Signal::STOP);
            stopped.insert(pid);
        }
    }
    for pid in stopped {
        send(pid, Signal::KILL);
    }
}

/// Tells everybody in the session that the terminal has another size. Linux does so itself; gVisor leaves it out, and being told twice does no harm.
pub(crate) fn tell_window_changed(session: u32) {
    for (pid, relative) in read_processes() {
        if relative.session == session {
            send(pid, Signal::WINCH);
        }
    }
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process(pid, signal);
    }
}

/// Everybody alive who belongs to the process, by session, by parents or by mark; never the agent itself.
fn family(root: u32, mark: Option<&str>) -> HashSet<u32> {
    let me = std::process::id();
    let all = read_processes();
    let mut family: HashSet<u32> = all.iter().filter(|(pid, p)| **pid == root || p.session == root).map(|(pid, _)| *pid).collect();
    if let Some(mark) = mark {
        let strangers = all.iter().filter(|(pid, p)| p.parent == me && !family.contains(pid));
        let marked: Vec<u32> = strangers.map(|(pid, _)| *pid).filter(|pid| has_mark(*pid, mark)).collect();
        family.extend(marked);
    }
    add_descendants(&all, &mut family);
    family.retain(|pid| *pid != me && all.get(pid).is_some_and(|p| !p.zombie));
    family
}

fn add_descendants(all: &HashMap<u32, Relative>, family: &mut HashSet<u32>) {
    loop {
        let children = all.iter().filter(|(pid, p)| family.contains(&p.parent) && !family.contains(pid));
        let new: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        if new.is_empty() {
            return;
        }
        family.extend(new);
    }
}

fn read_processes() -> HashMap<u32, Relative> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// `pid (name) state parent group session …`; the name may hold anything, so the last parenthesis counts.
fn parse_stat(stat: &[u8]) -> Option<Relative> {
    let after = memchr::memrchr(b')', stat)? + 1;
    let text = std::str::from_utf8(stat.get(after..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Relative { parent, session, zombie: matches!(state, "Z" | "X") })
}

/// Reads as the process's own user: an agent without the power to trace others may not look at their environment as root.
fn has_mark(pid: u32, mark: &str) -> bool {
    let directory = format!("/proc/{pid}");
    let Ok(owner) = std::fs::metadata(&directory).map(|metadata| metadata.uid()) else { return false };
    let Ok(_as_owner) = FileIdentity::assume(owner) else { return false };
    let mut environment = Vec::new();
    let Ok(file) = std::fs::File::open(format!("{directory}/environ")) else { return false };
    if file.take(LONGEST_ENVIRONMENT).read_to_end(&mut environment).is_err() {
        return false;
    }
    let wanted = format!("{MARK}={mark}");
    environment.split(|b| *b == 0).any(|variable| variable == wanted.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_its_parents() {
        let p = parse_stat(b"12 (a) S 1 1 1 (x) R 7 8 9 0").unwrap();
        assert_eq!((p.parent, p.session, p.zombie), (7, 9, false));
        assert!(parse_stat(b"12 (a").is_none());
    }
}
