//! The audit log over HTTP, and output that is fit to be read.

use axum::body::Body;
use axum::http::{Method, header};
use belljar_testkit::{block_on, pattern, sha256};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::files::put;
use crate::scene::{Client, Scene};

fn name_of(sandbox: &str) -> &str {
    sandbox.rsplit('/').next().unwrap()
}

/// What the log has of these kinds, when it is so many: an end is handed over before it is answered, and may still be on its way to the disk.
async fn told(client: &Client, sandbox: &str, kinds: &str, events: usize) -> Value {
    let mut list = json!(null);
    for _ in 0..500 {
        list = client.get(&format!("/v1/audit?sandbox={}&kinds={kinds}", name_of(sandbox))).await.ok();
        if list["events"].as_array().unwrap().len() == events {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    list
}

#[test]
fn what_was_done_is_read_checked_and_taken_away() {
    block_on(async {
        let scene = Scene::get().await;
        let sandbox = scene.theirs.sandbox().await;
        let id = name_of(&sandbox);
        scene.theirs.post(&format!("{sandbox}/exec"), &json!({"argv": ["echo", "hi"], "env": {"A": "value-of-a"}})).await.ok();
        let list = told(&scene.theirs, &sandbox, "exec_started,exec_ended", 2).await;
        let events = list["events"].as_array().unwrap();
        assert_eq!((events.len(), &events[0]["argv"]), (2, &json!(["echo", "hi"])));
        assert_eq!((&events[0]["env_names"], &events[1]["exit_code"]), (&json!(["A"]), &json!(0)));
        assert!(events[0]["request"].is_string() && events[0]["key"].is_string());
        assert!(!list.to_string().contains("value-of-a"));
        let after = list["next_after"].as_u64().unwrap();
        let nothing = scene.theirs.get(&format!("/v1/audit?sandbox={id}&after={after}")).await.ok();
        assert_eq!(nothing["events"], json!([]));

        let verdict = scene.theirs.get("/v1/audit/verify").await.ok();
        assert_eq!((&verdict["whole"], &verdict["faults"]), (&json!(true), &json!([])));
        let export = scene.theirs.get("/v1/audit/export").await;
        let lines = export.lines();
        let last = lines.last().unwrap();
        assert_eq!(last["checkpoint"]["seq"].as_u64().unwrap(), lines.len() as u64 - 1);

        scene.ours.get("/v1/audit?project=theirs").await.problem(404);
        scene.ours.get("/v1/audit/verify?project=theirs").await.problem(404);
        scene.ours.get("/v1/audit/export?project=theirs").await.problem(404);
        let ours = scene.ours.get("/v1/audit?limit=1000").await.ok();
        assert!(!ours.to_string().contains(id));
        assert_eq!(scene.ours.get("/v1/audit?kinds=gossip").await.problem(400)["field"], "kinds");
        scene.theirs.delete(&sandbox).await.ok();
    });
}

#[test]
fn what_was_read_is_told_with_its_digest_and_what_was_broken_off_with_how_much_of_it_went() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let (content, huge) = (pattern(3_000_000), 64 << 20);
        put(ours, &format!("{sandbox}/files?path=/tmp/large"), content.clone()).await.ok();
        ours.run(&sandbox, &format!("truncate -s {huge} /tmp/huge; printf hello > /tmp/small")).await;
        let read = |name: &str| ours.request(Method::GET, &format!("{sandbox}/files?path=/tmp/{name}"));
        for request in [read("small"), read("large"), read("large").header(header::RANGE, "bytes=10-19")] {
            assert!(ours.send(request.body(Body::empty()).unwrap()).await.status.is_success());
        }
        let mut broken_off = ours.open(read("huge").body(Body::empty()).unwrap()).await.into_body();
        assert!(broken_off.frame().await.unwrap().is_ok());
        drop(broken_off);

        // One write and four reads, each with its intent and its end.
        let list = told(ours, &sandbox, "file", 10).await;
        let ends = list["events"].as_array().unwrap().iter().filter(|event| event["verb"] == "read" && event["phase"] != "intent");
        let ends: Vec<_> = ends.collect();
        assert_eq!(ends.len(), 4, "{list}");
        let done = |path: &str, bytes: &[u8]| {
            let content = json!({"bytes": bytes.len(), "sha256": sha256(bytes)});
            ends.iter().any(|event| event["path"] == path && event["phase"] == "done" && event["content"] == content)
        };
        assert!(done("/tmp/small", b"hello") && done("/tmp/large", &content) && done("/tmp/large", &content[10..20]), "{ends:?}");
        let failed = ends.iter().find(|event| event["phase"] == "failed").unwrap();
        let went = failed["content"]["bytes"].as_u64().unwrap();
        assert!(failed["path"] == "/tmp/huge" && went > 0 && went < huge, "{failed}");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn output_is_made_fit_to_be_read_on_request_and_always_says_where_it_is_from() {
    block_on(async {
        let scene = Scene::get().await;
        let sandbox = scene.ours.sandbox().await;
        let command = r"printf '\033[31mred\033[0m hun\033[1mter2-secret \377'";
        let exec = format!("{sandbox}/exec");
        let raw = scene.ours.post(&exec, &json!({"command": command})).await.ok();
        assert_eq!((&raw["stdout_encoding"], &raw["stdout_cleaning"]), (&json!("base64"), &json!(null)));
        assert_eq!(raw["provenance"]["trust"], "untrusted");
        assert_eq!(raw["provenance"]["sandbox"].as_str().unwrap(), name_of(&sandbox));
        let clean = scene.ours.post(&exec, &json!({"command": command, "output": {"mask": ["hunter2-secret"]}})).await.ok();
        assert_eq!((&clean["stdout"], &clean["stdout_encoding"]), (&json!("red *** \u{fffd}"), &json!("utf-8")));
        assert_eq!(clean["stdout_cleaning"], json!({"bytes": 33, "escapes": 3, "masked": 1, "invalid": 1}));
        let shown = scene.ours.post(&exec, &json!({"command": command, "output": {"escapes": "show"}})).await.ok();
        assert!(shown["stdout"].as_str().unwrap().starts_with("\\u{1b}[31mred"));
        let refused = scene.ours.post(&exec, &json!({"command": command, "output": {"escapes": "eat"}})).await;
        assert_eq!(refused.problem(400)["field"], "output.escapes");
        scene.ours.delete(&sandbox).await.ok();
    });
}
