//! What a client may cost, what breaks, and how the server looks from outside.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, header};
use belljar_http::{Gate, Listen, Metrics, Rate, ServeLimits, Server};
use belljar_testkit::block_on;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::scene::{Client, Scene};

#[test]
fn every_failure_is_a_problem() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        assert_eq!(ours.get("/nowhere").await.problem(404)["code"], "no_route");
        assert_eq!(ours.get("/v1/sandboxes/x/y/z").await.problem(404)["code"], "no_route");
        let wrong = ours.ask(Method::PUT, "/v1/sandboxes", None).await;
        assert_eq!((wrong.problem(405)["code"].clone(), wrong.headers.contains_key(header::ALLOW)), (json!("method_not_allowed"), true));
        assert_eq!(ours.get("/test/panic").await.problem(500)["code"], "internal");
        let send = async |kind: &str, body: Body| {
            ours.send(ours.request(Method::POST, "/v1/sandboxes").header(header::CONTENT_TYPE, kind).body(body).unwrap()).await
        };
        assert_eq!(send("text/plain", "{}".into()).await.problem(415)["code"], "unsupported_media_type");
        assert_eq!(send("application/json", "{".into()).await.problem(400)["code"], "malformed_json");
        assert_eq!(send("application/json", " ".repeat((1 << 20) + 1).into()).await.problem(413)["code"], "too_large");
        assert_eq!(ours.get("/v1/sandboxes/Not-An-Id").await.problem(404)["code"], "sandbox_not_found");
        assert_eq!(ours.get("/v1/sandboxes?limit=many").await.problem(400)["field"], "limit");
        let request = ours.request(Method::GET, "/v1/whoami").header("X-Request-Id", "my-own.1").body(Body::empty()).unwrap();
        assert_eq!(ours.send(request).await.headers["x-request-id"], "my-own.1");
    });
}

#[test]
fn the_server_says_how_it_is_and_what_it_can() {
    block_on(async {
        let scene = Scene::get().await;
        let stranger = scene.ours.stranger();
        assert_eq!(stranger.get("/healthz").await.ok()["status"], "ok");
        assert_eq!(stranger.get("/readyz").await.ok()["status"], "ok");
        let server = scene.ours.get("/v1/server").await.ok();
        assert_eq!(
            (&server["auto"]["isolation"], &server["default_template"], &server["engines"][0]["works"]),
            (&json!("container"), &json!("base"), &json!(true))
        );
        let templates = scene.ours.get("/v1/templates").await.ok();
        assert!(
            templates["templates"].as_array().unwrap().iter().any(|template| template["name"] == "base" && template["owner"].is_null())
        );
        assert_eq!(scene.ours.get("/v1/templates/base").await.ok()["name"], "base");
        assert_eq!(scene.ours.delete("/v1/templates/base").await.problem(404)["code"], "template_not_found", "it is not ours to remove");
        assert_eq!(scene.ours.delete("/v1/templates/base?shared=true").await.problem(403)["code"], "forbidden");
        assert!(scene.admin.post("/v1/gc", &json!({"dry_run": true})).await.ok()["bytes"].is_u64());
        let text = String::from_utf8(stranger.get("/metrics").await.body.to_vec()).unwrap();
        assert!(text.contains("belljar_sandboxes_created_total") && text.contains(r#"route="/healthz""#), "{text}");
        assert!(!text.contains("sabcdefghijkmnpqrstu"), "no label that a client chooses");
    });
}

#[test]
fn a_template_that_cannot_be_made_says_why_in_its_last_line() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let upload =
            async |bytes: Vec<u8>| ours.send(ours.request(Method::PUT, "/v1/templates/odd/archive").body(Body::from(bytes)).unwrap()).await;
        let lines = upload(b"this is no archive".repeat(1000)).await.lines();
        let last = lines.last().unwrap();
        assert_eq!((&last["type"], &last["problem"]["code"]), (&json!("failed"), &json!("template_failed")), "{lines:?}");
        assert_eq!(upload(vec![0; (1 << 20) + 1]).await.problem(413)["code"], "too_large");
        assert_eq!(upload(Vec::new()).await.problem(400)["code"], "invalid");
        let lines = ours.post("/v1/templates/odd", &json!({"recipe": "not = [toml"})).await.lines();
        assert_eq!(lines.last().unwrap()["type"], "failed", "{lines:?}");
        assert_eq!(ours.post("/v1/templates/odd", &json!({})).await.problem(400)["field"], "recipe");
        assert_eq!(ours.post("/v1/templates/o%20d", &json!({"recipe": ""})).await.problem(400)["field"], "name");
    });
}

/// A server of its own in front of the same routes, with limits that are soon reached.
async fn small(limits: ServeLimits) -> (Client, CancellationToken) {
    let scene = Scene::get().await;
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, behind_proxy: false };
    let server = Server::bind(&[listen], limits).await.unwrap();
    let client = Client { address: server.addresses()[0], ..scene.ours.clone() };
    let stop = CancellationToken::new();
    tokio::spawn(server.serve(scene.router.clone(), Arc::new(Metrics::default()), stop.clone()));
    (client, stop)
}

#[test]
fn a_key_that_asks_too_often_is_told_to_wait() {
    block_on(async {
        let scene = Scene::get().await;
        let gate = Gate::new(Arc::clone(&scene.service), Some(Rate { per_second: 0.01, burst: 2.0 }));
        let headers = |client: &Client| {
            let value = format!("Bearer {}", client.key.as_deref().unwrap()).parse().unwrap();
            axum::http::HeaderMap::from_iter([(header::AUTHORIZATION, value)])
        };
        assert!(gate.admit(&headers(&scene.ours)).await.is_ok() && gate.admit(&headers(&scene.ours)).await.is_ok());
        let Err(problem) = gate.admit(&headers(&scene.ours)).await else { panic!("the third was let in") };
        let answer = axum::response::IntoResponse::into_response(problem);
        assert_eq!((answer.status().as_u16(), answer.headers().contains_key(header::RETRY_AFTER)), (429, true));
        assert!(gate.admit(&headers(&scene.theirs)).await.is_ok(), "another key has its own rate");
    });
}

async fn said(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection may be cut while it is read; what came before counts.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn too_many_connections_are_turned_away_politely() {
    block_on(async {
        let (client, stop) = small(ServeLimits { connections: 1, ..ServeLimits::default() }).await;
        let mut first = TcpStream::connect(client.address).await.unwrap();
        first.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut some = [0; 15];
        first.read_exact(&mut some).await.unwrap();
        assert_eq!(&some, b"HTTP/1.1 200 OK");
        let text = said(TcpStream::connect(client.address).await.unwrap()).await;
        assert!(text.starts_with("HTTP/1.1 503") && text.contains("Retry-After: 1") && text.contains(r#""code":"busy""#), "{text}");
        drop(first);
        stop.cancel();
    });
}

#[test]
fn slow_and_swollen_heads_are_cut() {
    block_on(async {
        let (client, stop) = small(ServeLimits { header_timeout: Duration::from_millis(300), ..ServeLimits::default() }).await;
        for start in [&b""[..], b"P", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"] {
            let mut stream = TcpStream::connect(client.address).await.unwrap();
            stream.write_all(start).await.unwrap();
            let text = said(stream).await;
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
        }
        for (name, count) in [("many", 101), ("long", 1)] {
            let value = if count == 1 { "v".repeat(100_000) } else { "v".to_owned() };
            let mut stream = TcpStream::connect(client.address).await.unwrap();
            let headers: String = (0..count).map(|n| format!("X-{n}: {value}\r\n")).collect();
            // The server may close before it has read all of it.
            let _ = stream.write_all(format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes()).await;
            assert!(said(stream).await.starts_with("HTTP/1.1 431"), "{name}");
        }
        stop.cancel();
    });
}

#[test]
fn an_answer_under_way_is_finished_before_the_server_ends() {
    block_on(async {
        let (client, stop) = small(ServeLimits::default()).await;
        let sandbox = client.sandbox().await;
        let working = tokio::spawn({
            let (client, sandbox) = (client.clone(), sandbox.clone());
            async move { client.run(&sandbox, "touch /tmp/begun; sleep 0.5; echo done").await }
        });
        let elsewhere = &Scene::get().await.ours;
        elsewhere.run(&sandbox, "until test -e /tmp/begun; do sleep 0.02; done").await;
        stop.cancel();
        assert_eq!(working.await.unwrap()["stdout"], "done\n");
        assert!(TcpStream::connect(client.address).await.is_err(), "nobody listens any more");
        elsewhere.delete(&sandbox).await.ok();
    });
}

#[test]
fn odd_values_are_refused_and_break_nothing() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        ours.post(&format!("{sandbox}/processes"), &json!({"id": "odd", "command": "sleep 1000", "stdin": true})).await.ok();
        let most = u64::MAX;
        let (process, files) = (format!("{sandbox}/processes/odd"), format!("{sandbox}/files"));
        let long = "x".repeat(900_000);
        let (post, get, put, patch) = (Method::POST, Method::GET, Method::PUT, Method::PATCH);
        let asked = [
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"hostname": "a b"}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"hostname": ""}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"hostname": "h\u{0}"}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"hostname": "h".repeat(300)}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"limits": {"memory_bytes": most}}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"limits": {"wall_time_seconds": most}}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"idle_timeout_seconds": most}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"metadata": {"": "x"}}))),
            (&post, "/v1/sandboxes".to_owned(), Some(json!({"env": {"A": "b\u{0}"}}))),
            (&patch, sandbox.clone(), Some(json!({"idle_timeout_seconds": 0}))),
            (&post, format!("{sandbox}/lease"), Some(json!({"seconds": most}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"argv": ["echo", long]}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"argv": vec!["x"; 200_000]}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"command": "true", "user": "nobody-here"}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"command": "true", "cwd": "/nowhere"}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"command": "a\u{0}b"}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"command": "true", "timeout_seconds": 1e300}))),
            (&post, format!("{sandbox}/exec"), Some(json!({"command": "true", "env": {"": "x"}}))),
            (&post, format!("{sandbox}/processes"), Some(json!({"command": "true", "pty": {"columns": 0, "rows": 1}}))),
            (&post, format!("{sandbox}/processes"), Some(json!({"command": "true", "spool": {"capacity_bytes": 1}}))),
            (&post, format!("{sandbox}/processes"), Some(json!({"command": "true", "tag": "t".repeat(300)}))),
            (&get, format!("{process}/output?stdout={most}"), None),
            (&get, format!("{process}/output?stdout=-1"), None),
            (&get, format!("{process}/wait?timeout_seconds=NaN"), None),
            (&get, format!("{process}/wait?timeout_seconds=-1"), None),
            (&post, format!("{process}/signal"), Some(json!({"signal": 65}))),
            (&post, format!("{process}/resize"), Some(json!({"columns": 80, "rows": 24}))),
            (&post, format!("{process}/stdin?offset=5"), Some(json!("x"))),
            (&post, format!("{process}/stdin?offset={most}"), Some(json!("x"))),
            (&get, format!("{files}?path=/tmp"), None),
            (&get, format!("{files}?path=/dev/null/x"), None),
            (&get, format!("{files}?path=/root/x"), None),
            (&get, format!("{files}?path=%00"), None),
            (&get, format!("{files}?path={}", "p".repeat(5000)), None),
            (&put, format!("{files}?path=/tmp/x&offset={most}"), Some(json!("x"))),
            (&put, format!("{files}?path=/tmp/x&offset={}", i64::MAX), Some(json!("x"))),
            (&put, format!("{files}?path=/tmp"), Some(json!("x"))),
            (&put, format!("{files}?path=/tmp/no/such/x"), Some(json!("x"))),
            (&put, format!("{files}/xattr?path=/tmp&name=nope"), Some(json!({"value_base64": "eA=="}))),
            (&put, format!("{files}/xattr?path=/tmp&name=user.%00"), Some(json!({"value_base64": "eA=="}))),
            (&put, format!("{files}/xattr?path=/tmp&name={}", "n".repeat(300)), Some(json!({"value_base64": "eA=="}))),
            (&get, format!("{files}/xattr?path=/tmp&name="), None),
            (&patch, files.clone(), Some(json!({"path": "/tmp/none", "uid": u32::MAX}))),
            (&patch, files.clone(), Some(json!({"path": "/etc/passwd", "uid": 0}))),
            (&patch, files.clone(), Some(json!({"path": "/tmp"}))),
            (&post, format!("{files}/mkdir"), Some(json!({"path": "/proc/x"}))),
            (&post, format!("{files}/move"), Some(json!({"from": "/tmp", "to": "/tmp/in/itself"}))),
            (&get, format!("{files}/list?path=/etc/passwd"), None),
            (&get, format!("{files}/watch?path=/nowhere"), None),
            (&get, format!("{files}/search?path=/nowhere"), None),
            (&get, format!("{files}/search?path=/etc&content="), None),
            (&post, format!("{sandbox}/ports/0/token"), Some(json!({}))),
            (&post, format!("{sandbox}/ports/80/token"), Some(json!({"expires_in_seconds": 0}))),
        ];
        let mut broken = Vec::new();
        for (method, path, body) in asked {
            let shown = format!(
                "{method} {} {}",
                &path[..path.len().min(120)],
                body.as_ref().map_or_else(String::new, |body| body.to_string().chars().take(80).collect())
            );
            let asking = tokio::time::timeout(Duration::from_secs(60), async {
                if body.as_ref().is_some_and(serde_json::Value::is_string) {
                    ours.send(ours.request(method.clone(), &path).body(Body::from("x")).unwrap()).await
                } else {
                    ours.ask(method.clone(), &path, body.as_ref()).await
                }
            });
            match asking.await {
                Err(_) => broken.push(format!("{shown}: no answer")),
                Ok(answer) if answer.status.is_success() => {
                    let last = answer.lines().pop().unwrap_or_default();
                    if last["type"] != "error" && last["type"] != "failed" {
                        broken.push(format!("{shown}: taken, {}", String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)])));
                    }
                }
                Ok(answer) if answer.status.is_client_error() => assert!(answer.json()["code"].is_string(), "{shown}"),
                Ok(answer) => broken.push(format!("{shown}: {}", String::from_utf8_lossy(&answer.body))),
            }
        }
        assert!(broken.is_empty(), "{}", broken.join("\n"));
        assert_eq!(ours.run(&sandbox, "echo well").await["stdout"], "well\n");
        ours.delete(&sandbox).await.ok();
    });
}
