//! Commands in a sandbox: streams, codes, signals.

use std::io::{Read, Write};

use serde_json::json;

use crate::scene::Scene;

#[test]
fn a_command_ends_with_its_code_and_streams_stay_apart() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let done = sandbox.sh("echo out; echo err >&2; exit 42");
    assert_eq!((done.code, done.stdout_text(), done.stderr.as_str()), (42, "out\n", "err\n"));
    assert_eq!(sandbox.sh("kill -9 $$").code, 137);
    assert_eq!(sandbox.sh("kill -TERM $$").code, 143);
    let late = scene.run(["exec", "--timeout", "500ms", &sandbox.id, "--", "sleep", "1000"]);
    assert_eq!(late.code, 137);
    assert!(late.stderr.contains("--timeout"), "{}", late.stderr);
}

#[test]
fn who_where_and_with_what() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let options = ["exec", "--user", "root", "--cwd", "/etc", "--env", "A=b c", &sandbox.id, "--", "sh", "-c", "id -un; pwd; echo $A"];
    assert_eq!(scene.run(options).ok().stdout_text(), "root\n/etc\nb c\n");
    assert_eq!(sandbox.sh("id -un; cat").ok().stdout_text(), "user\n", "without -i, input is at its end");
    let terminal = scene.run(["exec", "-t", &sandbox.id, "--", "sh", "-c", "test -t 1 && stty size"]).ok();
    assert_eq!(terminal.stdout_text(), "24 80\r\n");
}

#[test]
fn binary_input_and_output_arrive_whole() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let input = belljar_testkit::pattern(5 << 20);
    let done = scene.run_with(["exec", "-i", &sandbox.id, "--", "cat"], input.clone()).ok();
    assert!(done.stdout == input, "{} of {} bytes", done.stdout.len(), input.len());
    let unread = scene.run_with(["exec", "-i", &sandbox.id, "--", "sh", "-c", "exit 3"], input);
    assert_eq!(unread.code, 3, "a command that does not read its input is no failure: {}", unread.stderr);
}

#[test]
fn fifty_megabytes_of_output_arrive_whole() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let done = scene.run(["exec", &sandbox.id, "--", "seq", "1", "6300000"]).ok();
    let mut expected = String::with_capacity(50 << 20);
    for number in 1..=6_300_000_u32 {
        std::fmt::Write::write_fmt(&mut expected, format_args!("{number}\n")).unwrap();
    }
    assert!(expected.len() > 48_000_000);
    assert!(done.stdout == expected.as_bytes(), "{} of {} bytes", done.stdout.len(), expected.len());
}

#[test]
fn json_is_one_document_a_line() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let done = scene.run(["exec", "--json", &sandbox.id, "--", "sh", "-c", "printf 'a\\377'; exit 5"]);
    assert_eq!(done.code, 5);
    assert_eq!(
        done.json_lines(),
        [
            json!({ "type": "data", "stream": "stdout", "offset": 0, "base64": "Yf8=" }),
            json!({ "type": "exit", "exit_code": 5, "signal": null, "cause": null }),
        ]
    );
}

#[test]
fn the_first_interrupt_goes_to_the_command_and_the_second_kills_it() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut polite = sandbox.start(&[], "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done");
    assert_eq!(polite.line(), "ready");
    polite.signal("-INT");
    assert_eq!(polite.line(), "caught");
    assert_eq!(polite.code(), 7);

    let mut deaf = sandbox.start(&[], "trap 'echo no' INT TERM; echo ready; while :; do sleep 0.05; done # deaf");
    assert_eq!(deaf.line(), "ready");
    deaf.signal("-TERM");
    assert_eq!(deaf.line(), "no");
    deaf.signal("-INT");
    assert_eq!(deaf.code(), 130);
    assert_eq!(sandbox.sh("pgrep -f '[#] deaf'").code, 1, "it was killed");
}

#[test]
fn when_the_reader_leaves_the_command_is_told() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut endless = sandbox.start(&[], "exec yes");
    assert_eq!(endless.line(), "y");
    endless.stop_reading();
    assert_eq!(endless.code(), 141);
    assert_eq!(sandbox.sh("pgrep -x yes").code, 1, "it has ended");
}

#[test]
fn a_detached_command_goes_on_and_its_output_is_kept() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let script = "echo one; echo oops >&2; cat /tmp/go; echo two";
    sandbox.sh("mkfifo /tmp/go").ok();
    let process = scene.run(["exec", "--detach", &sandbox.id, "--", "sh", "-c", script]).ok().stdout_text().trim().to_owned();
    let mut following = scene.command(["logs", "-f", &sandbox.id, &process]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    sandbox.sh("echo go > /tmp/go").ok();
    let mut text = String::new();
    following.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(following.wait().unwrap().code(), Some(0));
    assert_eq!(text, "one\ngo\ntwo\n");
    let all = scene.run(["logs", &sandbox.id, &process]).ok();
    assert_eq!((all.stdout_text(), all.stderr.as_str()), ("one\ngo\ntwo\n", "oops\n"));
}

#[test]
fn output_so_far_is_printed_without_waiting_for_more() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    let mut running = sandbox.start(&["-i"], "echo so far; read line; echo $line");
    assert_eq!(running.line(), "so far");
    assert_eq!(scene.run(["logs", &sandbox.id]).ok().stdout_text(), "so far\n");
    running.child.stdin.take().unwrap().write_all(b"and on\n").unwrap();
    assert_eq!(running.line(), "and on");
    assert_eq!(running.code(), 0);
}

#[test]
fn a_sandbox_made_for_a_command_ends_with_it() {
    let scene = Scene::open();
    let done = scene.run(["exec", "--new", "--isolation", "container", "--", "sh", "-c", "hostname; exit 9"]);
    assert_eq!(done.code, 9, "{}", done.stderr);
    let id = done.stdout_text().trim();
    assert_eq!(scene.run(["show", "--json", id]).ok().json()["state"], "stopped");
}
