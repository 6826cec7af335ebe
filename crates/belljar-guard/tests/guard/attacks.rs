//! Ways out over files and kernel interfaces. Each is a shell script that prints `ESCAPED` if it got what it wanted.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::fixture::{Place, Who, words};

/// A way out: its name, how the guard is called, and the script. `{out}` is the directory that must stay out of reach.
const ATTACKS: &[(&str, &[&str], &str)] = &[
    ("read outside", &[], "cat {out}/secret && echo ESCAPED"),
    ("read outside, writable tree", &["--rw"], "cat {out}/secret && echo ESCAPED"),
    ("write outside", &["--rw"], "echo x > {out}/written && echo ESCAPED"),
    ("list outside", &["--rw"], "ls {out} && echo ESCAPED"),
    ("write in a read-only tree", &[], "echo x > new && echo ESCAPED"),
    ("remove in a read-only tree", &[], "rm -f file && ! test -e file && echo ESCAPED"),
    ("change modes in a read-only tree", &[], "chmod 777 file && echo ESCAPED"),
    ("go up", &["--rw"], "cat ../outside/secret && echo ESCAPED"),
    ("go up far", &["--rw"], "cat ../../../../../../../..{out}/secret && echo ESCAPED"),
    ("link that was there", &[], "cat link && echo ESCAPED"),
    ("link made inside", &["--rw"], "ln -s {out} way && cat way/secret && echo ESCAPED"),
    ("hard link", &["--rw"], "ln {out}/secret hard && echo ESCAPED"),
    ("root of another process", &[], "for p in /proc/[0-9]*; do cat $p/root{out}/secret 2>/dev/null && echo ESCAPED && break; done"),
    (
        "directory of another process",
        &[],
        "for p in /proc/[0-9]*; do cat $p/cwd/../outside/secret 2>/dev/null && echo ESCAPED && break; done",
    ),
    ("the guard's own program", &[], "head -c 4 /proc/$PPID/exe | grep -q ELF && echo ESCAPED"),
    ("the guard's memory", &[], "head -c 1 /proc/$PPID/maps | grep -q . && echo ESCAPED"),
    ("the guard's environment", &[], "tr '\\0' '\\n' < /proc/$PPID/environ | grep -q . && echo ESCAPED"),
    ("secrets in variables", &[], "env | grep -q TOPSECRET && echo ESCAPED"),
    ("the machine's users", &[], "grep -q daemon /etc/passwd && echo ESCAPED"),
    ("the machine's password file", &[], "test -e /etc/shadow && echo ESCAPED"),
    ("the machine's state", &[], "test -e /var/lib/dpkg && echo ESCAPED"),
    ("home", &["--rw"], "test -e $HOME/.netrc && echo ESCAPED"),
    ("kernel settings", &[], "test -r /sys/kernel/notes && echo ESCAPED"),
    ("namespaces", &["--rw"], "unshare -Ur true && echo ESCAPED"),
    ("mounts", &["--rw"], "unshare -Urm mount -t tmpfs none /tmp && echo ESCAPED"),
    ("disks", &[], "test -e /dev/loop-control -o -e /dev/vda -o -e /dev/sda -o -e /dev/kmsg && echo ESCAPED"),
];

#[test]
fn every_way_out_is_shut_and_works_without_the_guard() {
    for who in Who::BOTH {
        for (name, options, script) in ATTACKS {
            let place = Place::new(who);
            place.write("file", "x");
            symlink(place.outside().join("secret"), place.tree().join("link")).unwrap();
            fs::write(place.home().join(".netrc"), "x").unwrap();
            let script = script.replace("{out}", place.outside().to_str().unwrap());
            let guarded = place.shell(options, &script);
            assert!(!words(&guarded).contains("ESCAPED") && guarded.status.code() != Some(125), "{name}, {who:?}: {}", words(&guarded));
            let bare = place.bare_shell(&script);
            assert!(words(&bare).contains("ESCAPED"), "{name}, {who:?}: the attack does not work at all: {}", words(&bare));
        }
        let place = Place::new(who);
        place.shell(&["--rw"], "echo x > ../outside/secret; echo x > /tmp/guard-was-here; true");
        assert_eq!(fs::read_to_string(place.outside().join("secret")).unwrap(), "TOPSECRET");
        assert!(!std::path::Path::new("/tmp/guard-was-here").exists());
    }
}

#[test]
fn a_set_user_id_program_gains_nothing() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let program = place.tree().join("other");
        fs::copy("/usr/bin/id", &program).unwrap();
        std::os::unix::fs::chown(&program, Some(777), Some(777)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
        let guarded = place.shell(&["--rw"], "./other");
        assert!(guarded.status.success() && !words(&guarded).contains("777"), "{who:?}: {}", words(&guarded));
        assert!(words(&place.bare_shell("./other")).contains("euid=777"), "{who:?}");
    }
}

#[test]
fn descriptors_that_the_caller_left_open_do_not_go_along() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let script = "cat /proc/self/fd/9/secret /dev/fd/8 2>&1 | grep -q TOPSECRET && echo ESCAPED";
        let outside = place.outside();
        let open = format!("exec 9<{0}; exec 8<{0}/secret; exec \"$@\"", outside.display());
        let mut with_guard = place.bare("bash");
        with_guard.args(["-c", &open, "bash"]).arg(place.guard_program()).args(["--", "sh", "-c", script]);
        let guarded = with_guard.output().unwrap();
        assert!(!words(&guarded).contains("ESCAPED"), "{who:?}: {}", words(&guarded));
        let bare = place.bare("bash").args(["-c", &open, "bash", "sh", "-c", script]).output().unwrap();
        assert!(words(&bare).contains("ESCAPED"), "{who:?}: {}", words(&bare));
    }
}

#[test]
fn a_stream_is_good_for_what_it_was_opened_for_and_no_more() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let secret = || fs::File::open(place.outside().join("secret")).unwrap();
        let script = "cat /dev/stdin; echo x >> /proc/self/fd/0 && echo ESCAPED";
        let guarded = place.guard(&["--rw"]).args(["sh", "-c", script]).stdin(secret()).output().unwrap();
        assert!(words(&guarded).contains("TOPSECRET") && !words(&guarded).contains("ESCAPED"), "{who:?}: {}", words(&guarded));
        let bare = place.bare("sh").args(["-c", script]).stdin(secret()).output().unwrap();
        assert!(words(&bare).contains("ESCAPED"), "{who:?}: {}", words(&bare));
    }
}

#[test]
fn a_directory_as_a_stream_is_refused() {
    for who in Who::BOTH {
        let place = Place::new(who);
        let directory = fs::File::open(place.outside()).unwrap();
        let guarded = place.guard(&[]).args(["cat", "/proc/self/fd/0/secret"]).stdin(directory.try_clone().unwrap()).output().unwrap();
        assert_eq!(guarded.status.code(), Some(125), "{who:?}: {}", words(&guarded));
        let bare = place.bare("cat").arg("/proc/self/fd/0/secret").stdin(directory).output().unwrap();
        assert!(words(&bare).contains("TOPSECRET"), "{who:?}: {}", words(&bare));
    }
}
