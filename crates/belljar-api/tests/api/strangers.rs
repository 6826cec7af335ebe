//! Whoever has no key, the wrong key, or the key of another project: every route of the document is tried, so that none is forgotten.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, header};
use belljar_testkit::block_on;
use serde_json::{Value, json};

use crate::scene::{Client, Scene};

struct Route {
    method: Method,
    path: String,
    operation: Value,
    document: Arc<Value>,
}

/// Every route of the document.
fn routes() -> Vec<Route> {
    let document: Arc<Value> = Arc::new(serde_json::from_str(&belljar_api::openapi()).unwrap());
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Ok(method) = method.to_uppercase().parse::<Method>()
                && operation["responses"].is_object()
            {
                all.push(Route { method, path: path.clone(), operation: operation.clone(), document: Arc::clone(&document) });
            }
        }
    }
    all
}

impl Route {
    /// The path with everything in it that the document asks for, about this sandbox.
    fn filled(&self, sandbox: &str) -> String {
        let mut path =
            self.path.replace("{id}", sandbox).replace("{port}", "8000").replace("{process}", "someone").replace("{context}", "c1");
        path = path
            .replace("{snapshot}", "kept")
            .replace("{volume}", "stored")
            .replace("{artifact}", "aabcdefghijkmnpqrstu")
            .replace("{webhook}", "wabcdefghijkmnpqrstu");
        path =
            path.replace("{path}", "x").replace("{name}", "mine").replace("{project}", "theirs").replace("{key}", "kabcdefghijkmnpqrstu");
        assert!(!path.contains('{'), "{path}");
        path
    }

    /// A body with what must be in it, of the document's own examples.
    fn body(&self) -> Option<Value> {
        let reference = self.operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str()?;
        let schema = self.document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        if schema["example"].is_object() {
            return Some(schema["example"].clone());
        }
        let required = schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap());
        Some(
            required.map(|name| (name.to_owned(), schema["properties"][name]["example"].clone())).collect::<serde_json::Map<_, _>>().into(),
        )
    }

    async fn ask(&self, client: &Client, sandbox: &str) -> crate::scene::Answer {
        let builder = client.request(self.method.clone(), &self.filled(sandbox));
        client
            .send(match self.body() {
                Some(body) => builder.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap(),
                None => builder.body(Body::empty()).unwrap(),
            })
            .await
    }
}

#[test]
fn nothing_of_a_project_is_there_for_another() {
    block_on(async {
        let scene = Scene::get().await;
        let sandbox = scene.theirs.sandbox().await;
        let id = sandbox.rsplit('/').next().unwrap();
        let about_sandboxes: Vec<Route> = routes().into_iter().filter(|route| route.path.contains("/sandboxes/{id}")).collect();
        assert!(about_sandboxes.len() >= 40, "{}", about_sandboxes.len());
        for route in &about_sandboxes {
            let answer = route.ask(&scene.ours, id).await;
            assert_eq!(answer.status.as_u16(), 404, "{} {}: {}", route.method, route.path, String::from_utf8_lossy(&answer.body));
            if route.method != Method::HEAD {
                assert_eq!(answer.problem(404)["code"], "sandbox_not_found", "{} {}", route.method, route.path);
            }
        }
        assert!(scene.ours.get("/v1/sandboxes?limit=1000").await.ok().to_string().find(id).is_none());
        assert_eq!(scene.theirs.get(&sandbox).await.ok()["state"], "running", "and nothing was done to it");
        scene.theirs.delete(&sandbox).await.ok();
    });
}

#[test]
fn without_a_key_nothing_is_told() {
    block_on(async {
        let scene = Scene::get().await;
        let stranger = scene.ours.stranger();
        let forged = Client { key: Some("bj_ffffffffffffffffffffffffffffffffffffffff".into()), ..stranger.clone() };
        for route in routes() {
            let is_open = route.operation["security"].as_array().is_some_and(|all| all.iter().any(|one| one == &json!({})));
            let is_local = route.path == "/metrics";
            for client in [&stranger, &forged] {
                let answer = route.ask(client, "sabcdefghijkmnpqrstu").await;
                if is_open || is_local {
                    assert_eq!(answer.status.as_u16(), 200, "{} {}", route.method, route.path);
                } else {
                    assert_eq!(answer.status.as_u16(), 401, "{} {}", route.method, route.path);
                    assert!(answer.headers.contains_key(header::WWW_AUTHENTICATE));
                }
            }
        }
    });
}

#[test]
fn a_key_does_what_its_scopes_say_until_it_is_removed() {
    block_on(async {
        let scene = Scene::get().await;
        let request = json!({"project": "ours", "scopes": ["read"], "label": "reader"});
        let made = scene.admin.post("/v1/keys", &request).await.ok();
        let reader = Client { key: made["secret"].as_str().map(str::to_owned), ..scene.ours.clone() };
        assert_eq!(reader.get("/v1/whoami").await.ok()["scopes"], json!(["read"]));
        reader.get("/v1/sandboxes").await.ok();
        assert_eq!(reader.post("/v1/sandboxes", &json!({})).await.problem(403)["code"], "forbidden");
        assert_eq!(scene.ours.get("/v1/projects").await.ok()["projects"].as_array().unwrap().len(), 1, "its own and no other");
        assert_eq!(scene.ours.get("/v1/projects/theirs").await.problem(404)["code"], "project_not_found");
        assert_eq!(scene.ours.get("/v1/keys").await.problem(403)["code"], "forbidden");
        assert_eq!(scene.ours.post("/v1/projects", &json!({"id": "more"})).await.problem(403)["code"], "forbidden");
        assert_eq!(scene.ours.post("/v1/gc", &json!({"dry_run": true})).await.problem(403)["code"], "forbidden");

        let id = made["key"]["id"].as_str().unwrap();
        assert!(scene.admin.get("/v1/keys?project=ours").await.ok().to_string().contains(id));
        scene.admin.delete(&format!("/v1/keys/{id}")).await.ok();
        assert_eq!(reader.get("/v1/whoami").await.problem(401)["code"], "unauthorized");
        assert_eq!(scene.admin.delete(&format!("/v1/keys/{id}")).await.problem(404)["code"], "key_not_found");
    });
}

#[test]
fn projects_are_made_limited_and_removed() {
    block_on(async {
        let admin = &Scene::get().await.admin;
        let made = admin.post("/v1/projects", &json!({"id": "brief", "quota": {"sandboxes": 0}})).await.ok();
        assert_eq!(made["quota"]["sandboxes"], 0);
        assert_eq!(admin.post("/v1/projects", &json!({"id": "brief"})).await.problem(409)["code"], "exists");
        assert_eq!(admin.post("/v1/projects", &json!({"id": "No!"})).await.problem(400)["field"], "id");
        let key = admin.post("/v1/keys", &json!({"project": "brief", "scopes": ["use", "read"]})).await.ok();
        let member = Client { key: key["secret"].as_str().map(str::to_owned), ..admin.clone() };
        assert_eq!(member.post("/v1/sandboxes", &json!({})).await.problem(429)["code"], "quota_exceeded");
        let changed = admin.ask(Method::PATCH, "/v1/projects/brief", Some(&json!({"quota": {"sandboxes": 1}}))).await.ok();
        assert_eq!((&changed["quota"]["sandboxes"], &changed["quota"]["cpu_millis"]), (&json!(1), &made["quota"]["cpu_millis"]));
        let sandbox = member.sandbox().await;
        assert_eq!(admin.delete("/v1/projects/brief").await.status.as_u16(), 409, "it has a sandbox that lives");
        member.delete(&sandbox).await.ok();
        admin.delete("/v1/projects/brief").await.ok();
        assert_eq!(member.get("/v1/whoami").await.status.as_u16(), 401, "its keys went with it");
    });
}
