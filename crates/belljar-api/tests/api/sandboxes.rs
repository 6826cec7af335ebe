//! The life of a sandbox, asked for over HTTP.

use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use belljar_testkit::block_on;
use serde_json::{Value, json};

use crate::scene::Scene;

#[test]
fn a_sandbox_is_made_found_changed_and_ended() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let request = json!({
            "template": "base", "isolation": "container", "metadata": {"job": "life"}, "env": {"TOKEN": "s3cret"}, "lease_seconds": 600,
            "limits": {"pids": 100}
        });
        let answer = ours.post("/v1/sandboxes", &request).await;
        assert_eq!(answer.status, StatusCode::CREATED);
        let made = answer.ok();
        assert_eq!((&made["state"], &made["limits"]["pids"], &made["env"]), (&json!("running"), &json!(100), &json!(["TOKEN"])));
        assert!(!String::from_utf8_lossy(&answer.body).contains("s3cret"), "values of the environment are never given back");
        let path = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap());
        assert_eq!(ours.get(&path).await.ok()["id"], made["id"]);

        let changed = ours.ask(Method::PATCH, &path, Some(&json!({"metadata": {"job": "other"}, "idle_timeout_seconds": 60}))).await.ok();
        assert_eq!((&changed["metadata"], &changed["idle_timeout_seconds"]), (&json!({"job": "other"}), &json!(60)));
        let changed = ours.ask(Method::PATCH, &path, Some(&json!({"idle_timeout_seconds": null}))).await.ok();
        assert_eq!((&changed["metadata"], &changed["idle_timeout_seconds"]), (&json!({"job": "other"}), &Value::Null));
        let longer = ours.post(&format!("{path}/lease"), &json!({"seconds": 3000})).await.ok();
        assert!(longer["expires_at"].as_str().unwrap() > made["expires_at"].as_str().unwrap());
        let kept = ours.post(&format!("{path}/lease"), &json!({"seconds": 10, "at_least": true})).await.ok();
        assert_eq!(kept["expires_at"], longer["expires_at"]);

        assert!(ours.get(&format!("{path}/usage")).await.ok()["memory_bytes"].as_u64().unwrap() > 0);
        assert!(ours.get(&format!("{path}/metrics")).await.ok()["memory_total_bytes"].as_u64().unwrap() > 0);

        let ended = ours.delete(&path).await.ok();
        assert_eq!((&ended["state"], &ended["end"]["cause"]), (&json!("stopped"), &json!("requested")));
        assert_eq!(ours.delete(&path).await.ok()["end"], ended["end"], "ending it twice is ending it once");
        let refused = ours.post(&format!("{path}/exec"), &json!({"command": "true"})).await.problem(409);
        assert_eq!(refused["code"], "sandbox_ended");
    });
}

#[test]
fn the_same_request_with_the_same_key_makes_one_sandbox() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let send = async |body: Value| {
            let request = ours.request(Method::POST, "/v1/sandboxes").header("Idempotency-Key", "once-1");
            let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap();
            ours.send(request).await
        };
        let (first, second) = tokio::join!(send(json!({})), send(json!({})));
        assert_eq!(first.ok()["id"], second.ok()["id"]);
        let other = send(json!({"metadata": {"a": "b"}})).await.problem(409);
        assert_eq!(other["code"], "idempotency_key_reused");
        ours.delete(&format!("/v1/sandboxes/{}", first.ok()["id"].as_str().unwrap())).await.ok();
    });
}

#[test]
fn a_list_is_filtered_and_given_in_pages() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let mut made = Vec::new();
        for n in 0..3 {
            let sandbox = ours.post("/v1/sandboxes", &json!({"metadata": {"list": "pages", "n": n.to_string()}})).await.ok();
            made.push(sandbox["id"].as_str().unwrap().to_owned());
        }
        let page = ours.get("/v1/sandboxes?metadata=list:pages&limit=2&order=oldest&state=running").await.ok();
        assert_eq!(page["sandboxes"].as_array().unwrap().len(), 2);
        let cursor = page["next_cursor"].as_str().unwrap();
        let rest = ours.get(&format!("/v1/sandboxes?metadata.list=pages&limit=2&order=oldest&cursor={cursor}")).await.ok();
        assert_eq!((rest["sandboxes"].as_array().unwrap().len(), &rest["next_cursor"]), (1, &Value::Null));
        let ids = |page: &Value| -> Vec<String> {
            page["sandboxes"].as_array().unwrap().iter().map(|sandbox| sandbox["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!([ids(&page), ids(&rest)].concat(), made);
        let one = ours.get("/v1/sandboxes?metadata=list:pages&metadata=n:1").await.ok();
        assert_eq!(ids(&one), made[1..2]);
        for id in made {
            ours.delete(&format!("/v1/sandboxes/{id}")).await.ok();
        }
        assert_eq!(ours.get("/v1/sandboxes?metadata=list:pages&state=running").await.ok()["sandboxes"], json!([]));
    });
}

#[test]
fn what_is_wrong_is_named() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        for (body, field) in [
            (json!({"tempalte": "base"}), "tempalte"),
            (json!({"limits": {"pids": 1}}), "limits.pids"),
            (json!({"limits": {"pids": "many"}}), "limits.pids"),
            (json!({"isolation": "strong"}), "isolation"),
            (json!({"network": "some"}), "network"),
            (json!({"template": "a/b"}), "template"),
            (json!({"lease_seconds": -1}), "lease_seconds"),
            (json!({"env": {"A=B": "c"}}), "env"),
        ] {
            let problem = ours.post("/v1/sandboxes", &body).await.problem(400);
            assert_eq!((&problem["code"], &problem["field"]), (&json!("invalid"), &json!(field)), "{body}");
        }
        let absent = ours.post("/v1/sandboxes", &json!({"template": "nowhere"})).await.problem(404);
        assert_eq!(absent["code"], "template_not_found");
        let unavailable = ours.post("/v1/sandboxes", &json!({"isolation": "microvm"})).await.problem(422);
        assert_eq!(unavailable["code"], "isolation_unavailable");
    });
}
