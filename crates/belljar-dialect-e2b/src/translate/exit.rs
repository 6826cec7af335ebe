//! How a process ended, in the words of E2B's daemon: clients put them into their errors.

use belljar_types::{ExitStatus, Termination};

/// The `end` event.
pub(crate) fn end_event(exit: &ExitStatus) -> serde_json::Value {
    match exit.termination {
        Termination::Exited(0) => serde_json::json!({ "exitCode": 0, "exited": true, "status": "exit status 0" }),
        Termination::Exited(code) => {
            let words = format!("exit status {code}");
            serde_json::json!({ "exitCode": code, "exited": true, "status": words, "error": words })
        }
        Termination::Signaled(signal) => {
            let words = format!("signal: {}", signal_name(signal));
            serde_json::json!({ "exitCode": -1, "exited": false, "status": words, "error": words })
        }
    }
}

fn signal_name(signal: u8) -> String {
    let name = match signal {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        4 => "illegal instruction",
        5 => "trace/breakpoint trap",
        6 => "aborted",
        7 => "bus error",
        8 => "floating point exception",
        9 => "killed",
        10 => "user defined signal 1",
        11 => "segmentation fault",
        12 => "user defined signal 2",
        13 => "broken pipe",
        14 => "alarm clock",
        15 => "terminated",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_the_words_clients_know() {
        let end = |termination| end_event(&ExitStatus { termination, cause: None });
        assert!(end(Termination::Exited(0)).get("error").is_none());
        assert_eq!(end(Termination::Exited(3))["error"], "exit status 3");
        let killed = end(Termination::Signaled(9));
        assert_eq!((killed["error"].as_str(), killed["exited"].as_bool()), (Some("signal: killed"), Some(false)));
    }
}
