//! The audit log over HTTP, and output that is fit to be read.

use belljar_testkit::block_on;
use serde_json::json;

use crate::scene::Scene;

#[test]
fn what_was_done_is_read_checked_and_taken_away() {
    block_on(async {
        let scene = Scene::get().await;
        let sandbox = scene.theirs.sandbox().await;
        let id = sandbox.rsplit('/').next().unwrap();
        scene.theirs.post(&format!("{sandbox}/exec"), &json!({"argv": ["echo", "hi"], "env": {"A": "value-of-a"}})).await.ok();
        // The end is handed over before it is answered, and may still be on its way to the disk.
        let mut list = json!(null);
        for _ in 0..500 {
            list = scene.theirs.get(&format!("/v1/audit?sandbox={id}&kinds=exec_started,exec_ended")).await.ok();
            if list["events"].as_array().unwrap().len() == 2 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
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
fn output_is_made_fit_to_be_read_on_request_and_always_says_where_it_is_from() {
    block_on(async {
        let scene = Scene::get().await;
        let sandbox = scene.ours.sandbox().await;
        let command = r"printf '\033[31mred\033[0m hun\033[1mter2-secret \377'";
        let exec = format!("{sandbox}/exec");
        let raw = scene.ours.post(&exec, &json!({"command": command})).await.ok();
        assert_eq!((&raw["stdout_encoding"], &raw["stdout_cleaning"]), (&json!("base64"), &json!(null)));
        assert_eq!(raw["provenance"]["trust"], "untrusted");
        assert_eq!(raw["provenance"]["sandbox"].as_str().unwrap(), sandbox.rsplit('/').next().unwrap());
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
