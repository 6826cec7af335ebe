//! Snapshots, forks, roll-backs and trees over HTTP, and that they are nobody else's.

use belljar_testkit::block_on;
use serde_json::json;

use crate::scene::Scene;

#[test]
fn a_snapshot_is_taken_found_forked_gone_back_to_and_removed() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let id = sandbox.rsplit('/').next().unwrap();
        ours.run(&sandbox, "echo before > ~/file").await;
        let taken = ours.post(&format!("{sandbox}/snapshots"), &json!({"name": "api-kept", "expires_in_seconds": 3600})).await.ok();
        assert_eq!((&taken["name"], &taken["kind"], &taken["sandbox"]), (&json!("api-kept"), &json!("filesystem"), &json!(id)));
        let snapshot = format!("/v1/snapshots/{}", taken["id"].as_str().unwrap());
        assert_eq!(ours.get(&snapshot).await.ok(), ours.get("/v1/snapshots/api-kept").await.ok());
        let page = ours.get(&format!("/v1/snapshots?sandbox={id}")).await.ok();
        assert_eq!((&page["snapshots"][0]["id"], &page["next_cursor"]), (&taken["id"], &json!(null)));

        ours.run(&sandbox, "echo after > ~/file").await;
        let forks = ours.post(&format!("{snapshot}/forks"), &json!({"count": 2, "all_or_nothing": true, "env": {"A": "1"}})).await.ok();
        let of_sandbox = ours.post(&format!("{sandbox}/forks"), &json!({"metadata": {"branch": "b"}})).await.ok();
        for (fork, content) in [(&forks["forks"][0], "before\n"), (&forks["forks"][1], "before\n"), (&of_sandbox["forks"][0], "after\n")] {
            let made = &fork["sandbox"];
            assert_eq!((&made["state"], &made["origin"]["sandbox"]), (&json!("running"), &json!(id)), "{fork}");
            let path = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap());
            assert_eq!(ours.run(&path, "cat ~/file").await["stdout"], content);
            ours.delete(&path).await.ok();
        }
        assert_eq!(of_sandbox["forks"][0]["sandbox"]["metadata"], json!({"branch": "b"}));
        let created = ours.post("/v1/sandboxes", &json!({"snapshot": "api-kept"})).await.ok();
        let path = format!("/v1/sandboxes/{}", created["id"].as_str().unwrap());
        assert_eq!(ours.run(&path, "cat ~/file").await["stdout"], "before\n");
        ours.delete(&path).await.ok();

        let back = ours.post(&format!("{sandbox}/rollback"), &json!({"snapshot": "api-kept"})).await.ok();
        assert_eq!(back["state"], "running");
        assert_eq!(ours.run(&sandbox, "cat ~/file").await["stdout"], "before\n");
        let tree = ours.get(&format!("{sandbox}/tree")).await.ok();
        assert_eq!((&tree["root"], tree["sandboxes"].as_array().unwrap().len()), (&json!(id), 5));
        assert_eq!(tree["snapshots"][0]["id"], taken["id"]);

        assert_eq!(ours.delete(&snapshot).await.status.as_u16(), 204);
        assert_eq!(ours.delete(&snapshot).await.problem(404)["code"], "snapshot_not_found");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn what_makes_no_sense_is_refused_by_its_name() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        for (path, body, field) in [
            ("snapshots", json!({"name": "a b"}), "name"),
            ("snapshots", json!({"kind": "both"}), "kind"),
            ("forks", json!({"count": 0}), "count"),
            ("forks", json!({"count": 101}), "count"),
            ("forks", json!({"lease_seconds": 0}), "lease"),
        ] {
            let answer = ours.post(&format!("{sandbox}/{path}"), &body).await.problem(400);
            assert_eq!(answer["field"], field, "{answer}");
        }
        let memory = ours.post(&format!("{sandbox}/snapshots"), &json!({"kind": "memory"})).await.problem(422);
        assert_eq!(memory["code"], "unsupported");
        assert_eq!(ours.get("/v1/snapshots?limit=0").await.problem(400)["field"], "limit");
        assert_eq!(
            ours.post(&format!("{sandbox}/rollback"), &json!({"snapshot": "none"})).await.problem(404)["code"],
            "snapshot_not_found"
        );
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_snapshot_of_another_project_is_not_there() {
    block_on(async {
        let scene = Scene::get().await;
        let sandbox = scene.theirs.sandbox().await;
        let taken = scene.theirs.post(&format!("{sandbox}/snapshots"), &json!({"name": "api-theirs"})).await.ok();
        for which in ["api-theirs", taken["id"].as_str().unwrap()] {
            let path = format!("/v1/snapshots/{which}");
            assert_eq!(scene.ours.get(&path).await.problem(404)["code"], "snapshot_not_found");
            assert_eq!(scene.ours.delete(&path).await.problem(404)["code"], "snapshot_not_found");
            assert_eq!(scene.ours.post(&format!("{path}/forks"), &json!({})).await.problem(404)["code"], "snapshot_not_found");
            assert_eq!(scene.ours.post("/v1/sandboxes", &json!({"snapshot": which})).await.problem(404)["code"], "snapshot_not_found");
        }
        assert!(!scene.ours.get("/v1/snapshots").await.ok().to_string().contains("api-theirs"));
        scene.theirs.delete("/v1/snapshots/api-theirs").await.ok();
        scene.theirs.delete(&sandbox).await.ok();
    });
}
