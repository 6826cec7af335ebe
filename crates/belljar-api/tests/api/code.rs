//! Code in contexts, with a program in the sandbox that does not mean well: whatever it says, the server answers with a problem and goes on.
//! What real kernels do is tried with the template that has them, by `scripts/test-e2b`.

use axum::body::Body;
use axum::http::{Method, header};
use belljar_testkit::block_on;
use serde_json::{Value, json};

use crate::scene::{Client, Lines, Scene};

/// Listens where kernels do, and answers as the code says.
const HOSTILE: &str = r#"#!/usr/bin/python3
import json, socket, sys, threading, time

def attend(client):
    request = json.loads(client.makefile().readline())
    send = lambda text: client.sendall(text if isinstance(text, bytes) else text.encode())
    accepted, end = '{"accepted":true}\n', '{"event":"end"}\n'
    answers = {
        "good": [accepted, '{"event":"began","count":1}\n{"event":"stdout","text":"o","at":1}\n', '{"event":"result","main":true,"data":{"text/plain":"1"}}\n', end],
        "garbage": [accepted, b"\xff\xfe no JSON\n"],
        "torn": [accepted, '{"event":"std'],
        "nothing": [],
        "neither": ['{}\n'],
        "early": [accepted],
        "strange": [accepted, '{"event":"dance"}\n'],
        "deep": [accepted, '{"event":"result","data":{"a":' + '[' * 100000 + '\n'],
        "many": [accepted, json.dumps({"event": "result", "data": {str(n): n for n in range(1000)}}) + "\n"],
        "refused": ['{"refused":{"code":"no_context","message":"there is no context \\u001b[2J"}}\n'],
    }
    code = request.get("code")
    try:
        if request["do"] != "execute":
            send('{"contexts":[{"id":"../../etc","language":"x","cwd":"y"}]}\n')
        elif code == "endless":
            send(accepted)
            while True:
                send(b"x" * 1048576)
        elif code == "long":
            send(accepted)
            client.recv(1)
            open("/tmp/interrupted", "w").close()
        else:
            for piece in answers[code]:
                send(piece)
    except OSError:
        pass
    client.close()

listener = socket.create_server(("127.0.0.1", 49999))
print("ready", flush=True)
while True:
    threading.Thread(target=attend, args=[listener.accept()[0]], daemon=True).start()
"#;

async fn with_program(client: &Client, program: &str) -> String {
    let sandbox = client.sandbox().await;
    let path = format!("{sandbox}/files?path=/usr/bin/belljar-kernels&user=root&mode=0755");
    let body = Body::from(program.to_owned());
    let request = client.request(Method::PUT, &path).header(header::CONTENT_TYPE, "application/octet-stream").body(body).unwrap();
    client.send(request).await.ok();
    sandbox
}

#[test]
fn whatever_a_hostile_program_says_is_a_problem_and_no_more() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = with_program(ours, HOSTILE).await;
        let path = format!("{sandbox}/code");
        let run = async |code: &str| ours.post(&path, &json!({"code": code})).await;

        // The program was not there: the first run has started it.
        let outcome = run("good").await.ok();
        assert_eq!((&outcome["count"], &outcome["stdout"], &outcome["error"]), (&json!(1), &json!("o"), &Value::Null));
        assert_eq!(outcome["results"][0], json!({"main": true, "formats": {"text/plain": "1"}}));
        for code in ["garbage", "torn", "nothing", "neither", "early", "strange", "deep", "many", "endless"] {
            let problem = run(code).await.problem(500);
            assert_eq!(problem["code"], "guest_misbehaved", "{code}");
        }
        let problem = run("refused").await.problem(404);
        assert_eq!(problem["code"], "context_not_found");
        assert!(!problem["detail"].as_str().unwrap().contains('\u{1b}'), "{problem}");
        let problem = ours.get(&format!("{path}/contexts")).await.problem(500);
        assert_eq!(problem["code"], "guest_misbehaved");
        assert_eq!(run("good").await.ok()["stdout"], "o", "and the server goes on");

        let stream = |code: &str| {
            let request = ours.request(Method::POST, &path).header(header::ACCEPT, "application/x-ndjson");
            request.header(header::CONTENT_TYPE, "application/json").body(Body::from(json!({"code": code}).to_string())).unwrap()
        };
        let mut lines = Lines::of(ours.open(stream("strange")).await);
        let failed = lines.json().await;
        assert_eq!((&failed["type"], &failed["problem"]["code"]), (&json!("failed"), &json!("guest_misbehaved")));
        let mut lines = Lines::of(ours.open(stream("good")).await);
        for kind in ["began", "stdout", "result", "end"] {
            assert_eq!(lines.json().await["type"], kind);
        }
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn code_that_nobody_waits_for_is_told_so() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = with_program(ours, HOSTILE).await;
        let request = ours.request(Method::POST, &format!("{sandbox}/code")).header(header::CONTENT_TYPE, "application/json");
        let request = request.header(header::ACCEPT, "application/x-ndjson").body(Body::from(json!({"code": "long"}).to_string())).unwrap();
        let following = ours.open(request).await;
        assert!(following.status().is_success());
        drop(following);
        let seen = ours.run(&sandbox, "until test -e /tmp/interrupted; do sleep 0.05; done; echo yes").await;
        assert_eq!(seen["stdout"], "yes\n");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_template_without_kernels_says_so_and_what_is_wrong_is_named() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let path = format!("{sandbox}/code");
        let problem = ours.post(&path, &json!({"code": "1"})).await.problem(422);
        assert_eq!(problem["code"], "no_interpreter");
        let dying = with_program(ours, "#!/bin/sh\necho no kernels today\nexit 1\n").await;
        let problem = ours.post(&format!("{dying}/code"), &json!({"code": "1"})).await.problem(409);
        assert!(problem["detail"].as_str().unwrap().contains("no kernels today"), "{problem}");
        for (body, field) in [
            (json!({"code": "1", "language": "a", "context": "b"}), "language"),
            (json!({"code": "1", "context": "../b"}), "context"),
            (json!({"code": "1", "env": {"A=B": "c"}}), "env"),
            (json!({"code": "1", "timeout_seconds": -1.0}), "timeout_seconds"),
            (json!({"code": "1", "language": ""}), "language"),
        ] {
            assert_eq!(ours.post(&path, &body).await.problem(400)["field"], field, "{body}");
        }
        assert_eq!(ours.delete(&format!("{path}/contexts/a%20b")).await.problem(404)["code"], "context_not_found");
        ours.delete(&sandbox).await.ok();
        ours.delete(&dying).await.ok();
    });
}
