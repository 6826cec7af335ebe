//! How a run ends is told as the command ended, and nothing runs where a sandbox cannot be made.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::{Place, Who, err, out, words};

#[test]
fn exit_codes_are_the_commands_own() {
    for who in Who::BOTH {
        let place = Place::new(who);
        for (script, expected) in [
            ("exit 0", 0),
            ("exit 1", 1),
            ("exit 42", 42),
            ("exit 255", 255),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
            ("kill -SEGV $$", 139),
        ] {
            let ended = place.shell(&[], script);
            assert_eq!(ended.status.code(), Some(expected), "{who:?} {script}: {}", words(&ended));
            assert!(ended.stderr.is_empty() && ended.stdout.is_empty(), "{who:?} {script}: {}", words(&ended));
        }
    }
}

#[test]
fn a_command_that_is_not_there_or_cannot_run_is_told_apart() {
    for who in Who::BOTH {
        let place = Place::new(who);
        place.write("data", "not a program");
        for (program, code, word) in [
            ("no-such-program", 127, "not found"),
            ("./nothing", 127, "not found"),
            ("./data", 126, "cannot be executed"),
            ("/tmp", 126, "cannot be executed"),
        ] {
            let ended = place.guard(&[]).arg(program).output().unwrap();
            assert_eq!(ended.status.code(), Some(code), "{who:?} {program}: {}", words(&ended));
            assert!(err(&ended).contains(word), "{who:?} {program}: {}", words(&ended));
        }
        // One that is on the caller's path but not shown: where it is, is told.
        let elsewhere = place.outside().join("mytool");
        std::fs::write(&elsewhere, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", place.outside().display());
        let ended = place.guard(&[]).env("PATH", path).arg("mytool").output().unwrap();
        assert_eq!(ended.status.code(), Some(127));
        assert!(err(&ended).contains(place.outside().to_str().unwrap()) && err(&ended).contains("--ro"), "{who:?}: {}", words(&ended));
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    for who in Who::BOTH {
        let place = Place::new(who);
        for script in ["exec sleep 1000", "trap '' TERM; while :; do sleep 1; done"] {
            let ended = place.shell(&["--timeout", "0.2"], script);
            assert_eq!(ended.status.code(), Some(124), "{who:?} {script}: {}", words(&ended));
            assert!(err(&ended).contains("--timeout"), "{who:?}: {}", words(&ended));
        }
        assert_eq!(place.shell(&["--timeout", "60"], "exit 3").status.code(), Some(3));
    }
}

#[test]
fn where_user_namespaces_are_forbidden_nothing_runs_and_the_remedy_is_told() {
    for who in Who::BOTH {
        let place = Place::new(who);
        // The setting is one of each user namespace, so it can be made where it harms nobody.
        let forbid = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
        let mut command = place.bare("unshare");
        command.args(["-Ur", "sh", "-c", forbid, "sh"]).arg(place.guard_program()).args(["--rw", "--", "touch", "ran"]);
        let refused = command.output().unwrap();
        assert_eq!(refused.status.code(), Some(125), "{who:?}: {}", words(&refused));
        assert!(err(&refused).contains("user.max_user_namespaces"), "{who:?}: {}", words(&refused));
        assert!(!place.tree().join("ran").exists());
        // The same without the setting runs.
        let mut command = place.bare("unshare");
        command.args(["-Ur"]).arg(place.guard_program()).args(["--rw", "--", "touch", "ran"]);
        let allowed = command.output().unwrap();
        assert!(allowed.status.success() && place.tree().join("ran").exists(), "{who:?}: {}", words(&allowed));
    }
}

#[test]
fn a_sandbox_in_a_sandbox_is_refused_not_run_bare() {
    for who in Who::BOTH {
        let place = Place::new(who);
        std::fs::copy(place.guard_program(), place.tree().join("guard")).unwrap();
        let nested = place.guard(&["--rw"]).args(["./guard", "--rw", "--", "touch", "ran"]).output().unwrap();
        assert_eq!(nested.status.code(), Some(125), "{who:?}: {}", words(&nested));
        assert!(err(&nested).contains("another sandbox"), "{who:?}: {}", words(&nested));
        assert!(!place.tree().join("ran").exists());
    }
}

#[test]
fn directories_that_hold_keys_are_not_shown() {
    for who in Who::BOTH {
        let place = Place::new(who);
        for directory in ["/", "/etc", "/proc", place.home().to_str().unwrap(), place.home().parent().unwrap().to_str().unwrap()] {
            let refused = place.guard(&[]).arg("true").current_dir(directory).output().unwrap();
            assert_eq!(refused.status.code(), Some(125), "{who:?} {directory}: {}", words(&refused));
            let refused = place.guard(&["--ro", directory]).arg("true").output().unwrap();
            assert_eq!(refused.status.code(), Some(125), "{who:?} --ro {directory}: {}", words(&refused));
        }
        assert_eq!(out(&place.shell(&[], "pwd")), place.tree().to_str().unwrap());
    }
}
