//! Commands and processes: one answer, streams, and reading on after a cut.

use axum::body::Body;
use axum::http::{Method, header};
use belljar_testkit::block_on;
use serde_json::{Value, json};

use crate::scene::{Client, Lines, Scene, joined};

async fn started(client: &Client, sandbox: &str, accept: &str, body: &Value) -> Lines {
    let request = client.request(Method::POST, &format!("{sandbox}/processes")).header(header::ACCEPT, accept);
    let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap();
    Lines::of(client.open(request).await)
}

#[test]
fn exec_answers_with_what_a_command_wrote() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let exec = async |body: Value| ours.post(&format!("{sandbox}/exec"), &body).await.ok();

        let result = exec(json!({"command": "echo out; echo err >&2; exit 3"})).await;
        assert_eq!((&result["exit_code"], &result["stdout"], &result["stderr"]), (&json!(3), &json!("out\n"), &json!("err\n")));
        assert_eq!((&result["signal"], &result["truncated"]), (&Value::Null, &json!(false)));
        let result = exec(json!({"argv": ["cat"], "stdin": "given"})).await;
        assert_eq!(result["stdout"], "given");
        let result = exec(json!({"argv": ["cat"], "stdin_base64": "/wA="})).await;
        assert_eq!((&result["stdout"], &result["stdout_encoding"]), (&json!("/wA="), &json!("base64")));
        let result = exec(json!({"argv": ["true"], "stdin": "x".repeat(1 << 20)})).await;
        assert_eq!(result["exit_code"], 0, "a command that does not want its input is none the worse");
        let result = exec(json!({"command": "seq 1 100000", "max_output_bytes": 20})).await;
        assert_eq!(result["stdout"], "1\n2\n3\n4\n5\n99\n100000\n");
        assert_eq!((&result["stdout_omitted"]["from"], &result["truncated"]), (&json!(10), &json!(true)));
        let result = exec(json!({"command": "sleep 100", "timeout_seconds": 0.2})).await;
        assert_eq!((&result["signal"], &result["cause"]), (&json!(9), &json!("deadline")));
        let result = exec(json!({"command": "echo $A; pwd", "env": {"A": "b"}, "cwd": "/tmp", "user": "root"})).await;
        assert_eq!(result["stdout"], "b\n/tmp\n");

        let problem = ours.post(&format!("{sandbox}/exec"), &json!({"argv": ["/no/such/program"]})).await.problem(404);
        assert_eq!(problem["code"], "file_not_found");
        let problem = ours.post(&format!("{sandbox}/exec"), &json!({})).await.problem(400);
        assert_eq!(problem["field"], "argv");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_command_that_nobody_waits_for_is_killed() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let body = json!({"command": "echo $$ > /tmp/pid; exec sleep 1000"});
        let request = ours.request(Method::POST, &format!("{sandbox}/exec")).header(header::CONTENT_TYPE, "application/json");
        let waiting = tokio::spawn({
            let (ours, request) = (ours.clone(), request.body(Body::from(body.to_string())).unwrap());
            async move { ours.send(request).await }
        });
        ours.run(&sandbox, "until test -s /tmp/pid; do sleep 0.02; done").await;
        waiting.abort();
        let gone = ours.run(&sandbox, "while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.02; done; echo gone").await;
        assert_eq!(gone["stdout"], "gone\n");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn output_is_streamed_and_read_on_where_it_was_left() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let body = json!({"id": "counter", "command": "echo é1; read go; echo 日2; echo end >&2; exit 7", "stdin": true, "tag": "t"});
        let mut lines = started(ours, &sandbox, "application/x-ndjson", &body).await;
        assert_eq!(lines.json().await["process"]["id"], "counter");
        let first = lines.json().await;
        assert_eq!((&first["type"], &first["text"], &first["offset"]), (&json!("data"), &json!("é1\n"), &json!(0)));
        drop(lines);

        let process = format!("{sandbox}/processes/counter");
        assert_eq!(ours.get(&process).await.ok()["state"], "running");
        assert_eq!(ours.get(&format!("{process}/wait?timeout_seconds=0")).await.ok(), json!({"ended": false, "exit": null}));
        let again = ours.post(&format!("{sandbox}/processes"), &body).await.ok();
        assert_eq!(again["written"]["stdout"], 4, "the same id is the same process");
        let written = ours.request(Method::POST, &format!("{process}/stdin?offset=0")).body(Body::from("go\n")).unwrap();
        assert_eq!(ours.send(written).await.ok()["stdin_offset"], 3);

        let rest = ours.get(&format!("{process}/output?stdout=4")).await.lines();
        assert_eq!((joined(&rest, "stdout", 4).as_str(), joined(&rest, "stderr", 0).as_str()), ("日2\n", "end\n"));
        assert_eq!(rest.last().unwrap(), &json!({"type": "exit", "exit_code": 7, "signal": null, "cause": null}));
        let all = ours.get(&format!("{process}/output")).await.lines();
        assert_eq!(joined(&all, "stdout", 0), "é1\n日2\n", "who comes late sees all of it");
        assert_eq!(ours.get(&format!("{process}/wait")).await.ok()["exit"]["exit_code"], 7);
        assert_eq!(ours.get(&format!("{sandbox}/processes")).await.ok()["processes"].as_array().unwrap().len(), 1);
        assert_eq!(ours.get(&format!("{sandbox}/processes/nobody")).await.problem(404)["code"], "process_not_found");
        assert_eq!(ours.get(&format!("{sandbox}/processes/nobody/output")).await.problem(404)["code"], "process_not_found");
        assert_eq!(ours.get(&format!("{sandbox}/processes/no%20body")).await.problem(404)["code"], "process_not_found");
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn events_carry_ids_from_which_a_browser_goes_on() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let body = json!({"id": "sse", "command": "echo one; sleep 0.1; echo two; sleep 1000"});
        let mut events = started(ours, &sandbox, "text/event-stream", &body).await;
        let mut last = String::new();
        loop {
            let line = events.next().await.unwrap();
            if let Some(id) = line.strip_prefix("id: ") {
                last = id.to_owned();
            }
            if line.contains(r#""text":"one"#) {
                break;
            }
        }
        assert_eq!(last, "4,0");
        let request = ours.request(Method::GET, &format!("{sandbox}/processes/sse/output"));
        let request = request.header(header::ACCEPT, "text/event-stream").header("Last-Event-ID", last).body(Body::empty()).unwrap();
        let mut events = Lines::of(ours.open(request).await);
        assert_eq!(events.next().await.unwrap(), "id: 8,0");
        assert!(events.next().await.unwrap().contains(r#""offset":4,"text":"two\n""#));
        let signalled = ours.post(&format!("{sandbox}/processes/sse/signal"), &json!({"signal": "TERM"})).await;
        assert_eq!(signalled.status.as_u16(), 204);
        assert_eq!(events.next().await.unwrap(), "");
        assert_eq!(events.next().await.unwrap(), "id: 8,0");
        assert!(events.next().await.unwrap().contains(r#""signal":15"#));
        ours.delete(&sandbox).await.ok();
    });
}

#[test]
fn a_stream_says_why_it_ended_with_its_sandbox() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let mut lines = started(ours, &sandbox, "application/x-ndjson", &json!({"command": "echo up; sleep 1000"})).await;
        while lines.json().await["type"] != "data" {}
        ours.delete(&sandbox).await.ok();
        let last = lines.json().await;
        assert_eq!((&last["type"], &last["problem"]["code"]), (&json!("error"), &json!("sandbox_ended")), "{last}");
        assert_eq!(lines.next().await, None);
    });
}

#[test]
fn more_than_fits_flows_through() {
    block_on(async {
        let ours = &Scene::get().await.ours;
        let sandbox = ours.sandbox().await;
        let body = json!({"command": "head -c 20000000 /dev/zero | tr '\\0' x", "spool": {"overflow": "slow"}});
        let mut lines = started(ours, &sandbox, "application/x-ndjson", &body).await;
        let mut at = 0;
        let exit = loop {
            let line = lines.json().await;
            match line["type"].as_str().unwrap() {
                "data" => {
                    assert_eq!(line["offset"], at);
                    at += line["text"].as_str().unwrap().len() as u64;
                }
                "exit" => break line,
                _ => {}
            }
        };
        assert_eq!((at, &exit["exit_code"]), (20_000_000, &json!(0)));
        ours.delete(&sandbox).await.ok();
    });
}
