//! At a terminal: nothing can be typed for the caller, keys reach the command, and the terminal comes back.
//!
//! `script` makes the terminal. Its input is typed as soon as it is there, so programs inside read it when they are ready.

use std::io::Write;
use std::process::Stdio;

use crate::fixture::{Place, Who};

/// Runs a shell line at a terminal and types `keys`; all that was shown.
fn at_terminal(place: &Place, line: &str, keys: &[u8]) -> String {
    let mut command = place.bare("script");
    command.args(["-qec", line, "/dev/null"]).env("SHELL", "/bin/bash").env("TERM", "dumb");
    let mut session = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keyboard = session.stdin.take().unwrap();
    keyboard.write_all(keys).unwrap();
    let shown = session.wait_with_output().unwrap();
    drop(keyboard);
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

const TYPE: &str = "import fcntl; [fcntl.ioctl(0, 0x5412, bytes([c])) for c in b'#']; print('ESCA' + 'PED')";

#[test]
fn nothing_can_be_typed_into_the_callers_terminal() {
    for who in Who::BOTH {
        let place = Place::new(who);
        place.write("type.py", TYPE);
        let guarded = at_terminal(&place, &format!("{} -- python3 type.py", place.guard_program().display()), b"");
        assert!(guarded.contains("PermissionError") && !guarded.contains("ESCAPED"), "{who:?}: {guarded}");
        // Newer kernels can refuse it by themselves, except to root.
        if who == Who::Root || std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|on| on.trim() == "1") {
            let bare = at_terminal(&place, "python3 type.py", b"");
            assert!(bare.contains("ESCAPED"), "{who:?}: {bare}");
        }
    }
}

#[test]
fn the_command_reads_the_terminal_and_it_comes_back() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let guard = place.guard_program();
        let line = format!("{} -- sh -c 'read x; echo inside-$x'; read y; echo outside-$y", guard.display());
        let shown = at_terminal(&place, &line, b"one\ntwo\n");
        assert!(shown.contains("inside-one") && shown.contains("outside-two"), "{who:?}: {shown}");
        // With its output in a pipe it still can, when it asks.
        let line = format!("{} -- sh -c 'read x; echo inside-$x' | cat; read y; echo outside-$y", guard.display());
        let shown = at_terminal(&place, &line, b"one\ntwo\n");
        assert!(shown.contains("inside-one") && shown.contains("outside-two"), "{who:?}: {shown}");
    }
}

#[test]
fn the_terminal_can_be_opened_by_the_names_of_the_streams() {
    // An ordinary user may open its own terminal; `script` gives it one.
    for who in Who::BOTH {
        let place = Place::new(who);
        let line = format!(
            "{} -- sh -c 'echo to-err > /dev/stderr; echo to-out > /dev/stdout; read x < /dev/stdin; echo got-$x'",
            place.guard_program().display()
        );
        let shown = at_terminal(&place, &line, b"key\n");
        assert!(["to-err", "to-out", "got-key"].iter().all(|word| shown.contains(word)), "{who:?}: {shown}");
    }
}

#[test]
fn the_interrupt_key_ends_the_command_and_the_loop_around_it() {
    for who in Who::BOTH {
        let place = Place::new(who);
        // The key is pressed by the program itself once it is ready: as the terminal does, to the foreground group.
        place.write("press.sh", "trap 'echo caught; exit 9' INT; kill -INT 0; sleep 60");
        let guard = place.guard_program();
        let shown = at_terminal(&place, &format!("{} -- sh press.sh; echo code-$?", guard.display()), b"");
        assert!(shown.contains("caught") && shown.contains("code-9"), "{who:?}: {shown}");
        let shown = at_terminal(
            &place,
            &format!(
                "bash --norc -ic \"for i in 1 2 3; do {} -- sh -c 'echo round; kill -INT \\$\\$; sleep 60'; done\"; echo code-$?",
                guard.display()
            ),
            b"",
        );
        assert_eq!(shown.matches("round").count(), 1, "{who:?}: {shown}");
    }
}

#[test]
fn a_stopped_command_is_a_stopped_job() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let guard = place.guard_program();
        let line = format!(
            "set -m; {} -- sh -c 'echo first; kill -TSTP $$; echo sec$((1+1))'; jobs; echo between; fg; echo code-$?",
            guard.display()
        );
        let shown = at_terminal(&place, &line, b"");
        let order: Vec<_> = ["first", "Stopped", "between", "sec2", "code-0"].iter().map(|word| shown.find(word)).collect();
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{who:?}: {shown}");
    }
}
