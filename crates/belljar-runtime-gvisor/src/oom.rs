//! Which process ends when memory runs out: one of the sandbox's, not its kernel.
//!
//! All of a sandbox's memory is in one file that the sentry maps as well, so the sentry often looks greediest to the host, and its death is the
//! sandbox's. Every stub is a clone of the first one and inherits its score; the agent's stub was cloned before anything is changed here. So it is
//! enough to make the first stub, which runs nothing itself, the preferred victim: whatever is started later is too, and the agent is not.

use std::fs;
use std::io;

use belljar_linux::cgroup::Cgroup;

/// Preferred to whatever has no score, unless that has more memory by the size of the limit.
const PREFERRED_VICTIM: &str = "1000";
const LAST_VICTIM: &str = "-900";

/// Makes everything the sandbox starts from now on die before its sentry and its agent. In one that was restored everything runs already, and which
/// stub is the agent's cannot be told; there all of them are preferred, and of those the kernel takes the largest, which the agent is not.
///
/// Says whether the first stub was found: if not, running out of memory may end the whole sandbox, and is told as that.
pub(crate) fn prefer_stubs(cgroup: &Cgroup, sentry: u32, restored: bool) -> io::Result<bool> {
    let members = fs::read_to_string(cgroup.path().join("cgroup.procs"))?;
    let members = members.lines().filter_map(|member| Some((member, fs::read_to_string(format!("/proc/{member}/stat")).ok()?)));
    let members: Vec<(&str, String)> = members.collect();
    let first = members.iter().find(|(_, stat)| is_first_stub(stat, sentry)).map(|(pid, _)| *pid);
    let mut found = false;
    for (member, stat) in &members {
        let score = format!("/proc/{member}/oom_score_adj");
        if first == Some(*member) || (restored && first.is_some_and(|first| is_in_session(stat, first))) {
            fs::write(score, PREFERRED_VICTIM)?;
            found = true;
        } else {
            // Not every host lets us; then a process that has its memory filled by the sentry, and not by itself, takes the sandbox along.
            let _ = fs::write(score, LAST_VICTIM);
        }
    }
    Ok(found)
}

fn is_in_session(stat: &str, session: &str) -> bool {
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(3)) == Some(session)
}

/// The sentry starts it in a session of its own, in which all other stubs are too.
fn is_first_stub(stat: &str, sentry: u32) -> bool {
    // The name in parentheses may hold anything; what follows the last one are numbers.
    let (Some((pid, _)), Some((_, rest))) = (stat.split_once(' '), stat.rsplit_once(") ")) else { return false };
    let fields: Vec<&str> = rest.split(' ').collect();
    matches!(fields.as_slice(), [_state, parent, _group, session, ..] if *parent == sentry.to_string() && *session == pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stub_is_told_from_its_clones() {
        assert!(is_first_stub("77 (exe) S 50 77 77 0 -1", 50));
        assert!(is_first_stub("77 (a) b) S 50 77 77 0 -1", 50));
        assert!(!is_first_stub("78 (exe) S 50 77 77 0 -1", 50));
        assert!(!is_first_stub("50 (runsc-sandbox) S 1 50 50 0 -1", 50));
        assert!(!is_first_stub("", 50));
        assert!(is_in_session("78 (exe) S 50 77 77 0 -1", "77"));
        assert!(!is_in_session("50 (runsc-sandbox) S 1 50 50 0 -1", "77"));
    }
}
