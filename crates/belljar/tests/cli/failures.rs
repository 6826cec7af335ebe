//! Every failure says what happened and why, and ends with its code.

use std::process::Stdio;

use crate::scene::{Done, Scene};

#[test]
fn failures_say_what_happened_and_end_with_their_code() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let id = sandbox.id.as_str();
    for (arguments, code, words) in [
        (&["show", "saaaaaaaaaaaaaaaaaaa"][..], 1, "there is no sandbox saaaaaaaaaaaaaaaaaaa\nhint: `belljar ls`"),
        (&["show", "x"], 2, "expected 16 to 32 characters"),
        (&["exec", id, "--", "no-such-program"], 125, "there is no program no-such-program in PATH"),
        (&["exec", "--user", "nobody-here", id, "--", "true"], 125, "the sandbox has no user nobody-here"),
        (&["exec", "--cwd", "/nowhere", id, "--", "true"], 125, "could not enter the directory /nowhere"),
        (&["exec", "saaaaaaaaaaaaaaaaaaa", "--", "true"], 125, "there is no sandbox"),
        (&["exec", id], 2, "<COMMAND>"),
        (&["shell", id], 2, "a shell needs a terminal"),
        (&["create", "--memory", "lots"], 2, "as in 512MiB"),
        (&["create", "--memory", "1KiB"], 1, "limits.memory_bytes: expected"),
        (&["create", "--template", "nope"], 1, "there is no template nope"),
        (&["create", "--isolation", "microvm"], 1, "microvm"),
        (&["logs", id, "nope"], 1, "there is no process nope"),
        (&["logs", id], 1, "no process was started"),
        (&["cp", "here", "there"], 2, "neither side is SANDBOX:PATH"),
        (&["cp", "-u", "user", "/etc/hostname", &sandbox.at("/etc/hostname")], 1, "hint: `--user root`"),
        (&["cp", &sandbox.at("/nowhere"), "."], 1, "No such file or directory"),
        (&["ls", "--url", "http://127.0.0.1:1"], 1, "Connection refused (os error 111)\nhint: is the server running?"),
        (&["ls", "--url", "nonsense"], 1, "is not a URL such as"),
        (&["ls", "--key-file", "/nowhere"], 1, "read the API key from /nowhere: No such file"),
        (&["metrics", "--json"], 2, "Prometheus"),
        (&["env", "--data-dir", "/nowhere"], 1, "there is no /nowhere/first-key"),
    ] {
        let done = scene.run(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stdout_text(), "", "{arguments:?}: what went wrong is no output");
    }
}

#[test]
fn a_missing_or_wrong_key_comes_with_what_to_do() {
    let scene = Scene::open();
    for key in [None, Some("bj_0000000000000000000000000000000000000000")] {
        let mut command = scene.command(["ls"]);
        match key {
            Some(key) => command.env("BELLJAR_API_KEY", key),
            None => command.env_remove("BELLJAR_API_KEY"),
        };
        let done = Done::of(command.output().unwrap());
        assert_eq!(done.code, 1);
        assert!(done.stderr.contains(r#"eval "$(belljar env)""#), "{}", done.stderr);
    }
}

#[test]
fn a_key_file_is_as_good_as_the_variable() {
    let scene = Scene::open();
    let mut command = scene.command(["ls", "--key-file"]);
    command.arg(scene.data_dir.join("first-key")).env_remove("BELLJAR_API_KEY");
    Done::of(command.output().unwrap()).ok();
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let scene = Scene::open();
    let mut child = scene.command(["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stderr.as_str()), (141, ""));
}
