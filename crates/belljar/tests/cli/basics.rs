//! A sandbox from its making to its end, and who may.

use std::process::Command;

use serde_json::json;

use crate::scene::{Scene, keys};

#[test]
fn a_sandbox_is_made_found_measured_and_ended() {
    let scene = Scene::open();
    let made = scene.run([
        "create",
        "--json",
        "--isolation",
        "container",
        "--memory",
        "256MiB",
        "--cpu",
        "0.5",
        "--meta",
        "task=a b",
        "--env",
        "SECRET=x",
    ]);
    let made = made.ok().json();
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["state"], "running");
    assert_eq!(made["isolation"], "container");
    assert_eq!(made["metadata"], json!({ "task": "a b" }));
    assert_eq!(made["env"], json!(["SECRET"]));
    assert_eq!((&made["limits"]["memory_bytes"], &made["limits"]["cpu_millis"]), (&json!(256 << 20), &json!(500)));

    assert!(scene.run(["ls"]).ok().stdout_text().contains(id));
    assert_eq!(scene.run(["ls", "-q", "--meta", "task=a b"]).ok().stdout_text().trim(), id);
    assert_eq!(scene.run(["ls", "-q", "--meta", "task=other"]).ok().stdout_text(), "");
    assert!(scene.run(["ls", "--json"]).ok().json_lines().iter().any(|sandbox| sandbox["id"] == id));

    scene.run(["exec", id, "--", "true"]).ok();
    let shown = scene.run(["show", "--json", id]).ok().json();
    assert_eq!(shown["processes"][0]["argv"], json!(["true"]));
    assert_eq!(shown["processes"][0]["exit"]["exit_code"], 0);
    let shown = scene.run(["show", id]).ok();
    for words in ["running", "cpu 0.5, memory 256MiB", "task=a b", "SECRET", "exit 0"] {
        assert!(shown.stdout_text().contains(words), "{words}: {}", shown.stdout_text());
    }

    let usage = scene.run(["usage", "--json", id]).ok().json();
    assert_eq!(keys(&usage), ["cpu_micros", "disk_bytes", "memory_bytes", "memory_peak_bytes", "oom_kills", "pids"]);
    let metrics = scene.run(["metrics", "--json", id]).ok().json();
    assert!(metrics["cpus"].as_u64().unwrap() > 0, "{metrics}");
    assert!(scene.run(["usage", id]).ok().stdout_text().contains("cpu time"));
    assert!(scene.run(["metrics", id]).ok().stdout_text().contains("processors"));

    let leased = scene.run(["lease", "--json", id, "2h"]).ok().json();
    assert!(leased["expires_at"].as_str() > made["expires_at"].as_str());
    let kept = scene.run(["lease", "--json", id, "1h", "--at-least"]).ok().json();
    assert_eq!(kept["expires_at"], leased["expires_at"]);

    assert_eq!(scene.run(["kill", id]).ok().stdout_text().trim(), id);
    assert!(!scene.run(["ls"]).ok().stdout_text().contains(id));
    assert!(scene.run(["ls", "--all"]).ok().stdout_text().contains(id));
    assert_eq!(scene.run(["show", "--json", id]).ok().json()["end"]["cause"], "requested");
    assert_eq!(scene.run(["kill", id]).ok().stdout_text().trim(), id, "ending what has ended is no failure");
}

#[test]
fn many_are_ended_at_once_and_one_failure_stops_no_other() {
    let scene = Scene::open();
    let sandboxes = [scene.sandbox(), scene.sandbox()];
    let done = scene.run(["kill", &sandboxes[0].id, "saaaaaaaaaaaaaaaaaaa", &sandboxes[1].id]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("there is no sandbox saaaaaaaaaaaaaaaaaaa"), "{}", done.stderr);
    assert!(sandboxes.iter().all(|sandbox| done.stdout_text().contains(&sandbox.id)));
}

#[test]
fn the_same_idempotency_key_is_the_same_sandbox() {
    let scene = Scene::open();
    let make = || scene.run(["create", "--isolation", "container", "--idempotency-key", "cli-once"]).ok();
    let first = make().stdout_text().trim().to_owned();
    assert_eq!(make().stdout_text().trim(), first);
    scene.run(["kill", &first]).ok();
}

#[test]
fn what_guests_and_strangers_wrote_does_not_move_the_cursor() {
    let scene = Scene::open();
    let evil = "title=\u{1b}]0;owned\u{7}\u{1b}[2J\r\u{202e}";
    let id = scene.run(["create", "--isolation", "container", "--meta", evil]).ok().stdout_text().trim().to_owned();
    scene.run(["exec", &id, "--", "sh", "-c", ": \u{1b}[2J"]).ok();
    for command in [&["ls"][..], &["show", &id]] {
        let text = scene.run(command).ok();
        assert!(text.stdout_text().contains("\\u{1b}"), "{}", text.stdout_text());
        assert!(!text.stdout_text().contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{}", text.stdout_text());
    }
    scene.run(["kill", &id]).ok();
}

#[test]
fn env_tells_a_shell_what_it_needs() {
    let scene = Scene::open();
    let script = r#"eval "$("$0" env --data-dir "$1")" && printf '%s %s' "$BELLJAR_URL" "$BELLJAR_API_KEY""#;
    let output = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_belljar")]).arg(&scene.data_dir).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{} {}", scene.url, scene.key));
}

#[test]
fn a_key_is_good_for_its_project_and_until_it_is_removed() {
    let scene = Scene::open();
    let sandbox = scene.sandbox();
    scene.run(["project", "add", "cli-team", "--sandboxes", "3"]).ok();
    let made = scene.run(["key", "add", "--json", "--project", "cli-team", "--label", "test", "--expires", "1h"]).ok().json();
    let (id, secret) = (made["key"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let with_key = |arguments: &[&str]| crate::scene::Done::of(scene.command(arguments).env("BELLJAR_API_KEY", secret).output().unwrap());

    assert_eq!(with_key(&["ls", "-q"]).ok().stdout_text(), "", "it sees nothing of other projects");
    let stranger = with_key(&["show", &sandbox.id]);
    assert!(stranger.code == 1 && stranger.stderr.contains("there is no sandbox"), "{stranger:?}");
    let refused = with_key(&["key", "ls"]);
    assert!(refused.code == 1 && refused.stderr.contains("admin"), "{refused:?}");

    assert!(scene.run(["key", "ls", "--project", "cli-team"]).ok().stdout_text().contains(id));
    let quota = scene.run(["project", "quota", "--json", "cli-team", "--memory", "2GiB"]).ok().json();
    assert_eq!((&quota["quota"]["sandboxes"], &quota["quota"]["memory_bytes"]), (&json!(3), &json!(2_u64 << 30)));
    scene.run(["key", "rm", id]).ok();
    let gone = with_key(&["ls"]);
    assert!(gone.code == 1 && gone.stderr.contains("hint:"), "{gone:?}");
    scene.run(["project", "rm", "cli-team"]).ok();
    assert!(!scene.run(["project", "ls"]).ok().stdout_text().contains("cli-team"));
}

#[test]
fn templates_counters_and_clean_up_are_shown() {
    let scene = Scene::open();
    assert!(scene.run(["template", "ls"]).ok().stdout_text().contains("base"));
    assert_eq!(scene.run(["template", "ls", "--json"]).ok().json()[0]["name"], "base");
    assert!(scene.run(["metrics"]).ok().stdout_text().contains("belljar_http_requests"));
    assert_eq!(scene.run(["gc", "--dry-run", "--json"]).ok().json()["dry_run"], true);
    for shell in ["bash", "zsh", "fish"] {
        assert!(scene.run(["completions", shell]).ok().stdout_text().contains("belljar"));
    }
}
