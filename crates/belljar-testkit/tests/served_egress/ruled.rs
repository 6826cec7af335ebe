//! What a policy says beside the network: how much may be used, which volumes may be had, and how results are handed on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use belljar_client::{Change, ClientError, CreateSandbox, NewVolume, StartProcess, VolumeMount};
use belljar_testkit::block_on;
use belljar_types::{SandboxId, SandboxState};
use serde_json::{Value, json};

use crate::scene::{CLASSES, Scene};

const SECRET: &str = "s3cret-2c9be07f51d8";

/// One command, one answer.
fn exec(scene: &Scene, id: &SandboxId, request: &Value) -> Value {
    let key = std::fs::read_to_string(scene.server.scope.data_dir.join("first-key")).unwrap();
    let mut stream = TcpStream::connect(scene.server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (key, body) = (key.trim(), request.to_string());
    let head = format!(
        "POST /v1/sandboxes/{id}/exec HTTP/1.1\r\nHost: belljar\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    );
    write!(stream, "{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Starts a process that nobody hears of any more.
fn last_one(scene: &Scene, id: &SandboxId) {
    let (client, id) = (scene.client.clone(), id.clone());
    tokio::spawn(async move { client.start_process(&id, &StartProcess::new(["/bin/true"])).await });
}

async fn until_paused(scene: &Scene, id: &SandboxId) {
    while scene.client.sandbox(id).await.unwrap().state != SandboxState::Paused {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> String {
    match answer {
        Err(ClientError::Refused(problem)) => format!("{}: {}", problem.code, problem.detail),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_policy_lets_a_sandbox_use_is_all_it_uses() {
    block_on(async {
        let mut scene = Scene::open().await;
        let executions = |most: u64| json!({"version": 1, "budget": {"executions": most}});
        for class in CLASSES {
            let sandbox = scene.create(class, Some(executions(3))).await;
            for _ in 0..2 {
                assert_eq!(exec(&scene, &sandbox, &json!({"command": "echo on"}))["stdout"], "on\n", "{class}");
            }
            // What was counted is known to whoever comes next.
            scene.server.kill();
            scene.server.restart().await;
            scene.client = scene.server.client();
            last_one(&scene, &sandbox);
            until_paused(&scene, &sandbox).await;
            let refused = code(scene.client.resume_sandbox(&sandbox, None).await);
            assert!(refused.starts_with("budget_exceeded") && refused.contains("executions"), "{class}: {refused}");
            // More is more, from where it was.
            scene.change(&sandbox, executions(4)).await;
            scene.client.resume_sandbox(&sandbox, None).await.unwrap();
            last_one(&scene, &sandbox);
            until_paused(&scene, &sandbox).await;
            scene.kill(&sandbox).await;

            let loops = scene.create(class, Some(json!({"version": 1, "budget": {"cpu": "1s"}}))).await;
            scene.start(&loops, "while True: pass").await;
            until_paused(&scene, &loops).await;
            let used = scene.client.consumed(Some(&format!("sandbox:{loops}")), None).await.unwrap().total.cpu_micros;
            // Writing its memory to disk is work of gVisor's own kernel, which is counted too.
            let most = if class == "gvisor" { 2_000_000 } else { 1_200_000 };
            assert!((1_000_000..most).contains(&used), "{class}: {used}");
            scene.kill(&loops).await;
        }
        scene.close();
    });
}

#[test]
fn only_volumes_of_the_policy_are_mounted() {
    block_on(async {
        let scene = Scene::open().await;
        for name in ["ruled-data", "ruled-other"] {
            scene.client.create_volume(&NewVolume { name: name.to_owned(), bucket: None, size_bytes: Some(16 << 20) }).await.unwrap();
        }
        let policy = |writable: bool| json!({"version": 1, "mounts": [{"volume": "ruled-data", "at": "/data", "writable": writable}]});
        for class in CLASSES {
            let ask = async |policy: Option<Value>, volume: &str, path: &str, mode: &str| {
                let volumes = vec![VolumeMount { volume: volume.to_owned(), path: path.to_owned(), mode: mode.to_owned() }];
                let request = CreateSandbox { isolation: Some(class.to_owned()), policy, volumes, ..CreateSandbox::default() };
                scene.client.create_sandbox(&request, None).await
            };
            let free = ask(None, "ruled-other", "/data", "read-write").await.unwrap();
            scene.kill(&free.id).await;
            for (writable, volume, path, mode) in [
                (true, "ruled-other", "/data", "read-write"),
                (true, "ruled-data", "/elsewhere", "read-write"),
                (false, "ruled-data", "/data", "read-write"),
                (false, "ruled-data", "/data", "shared"),
            ] {
                let refused = code(ask(Some(policy(writable)), volume, path, mode).await);
                assert!(refused.contains("mounts") && refused.contains(volume) && refused.contains(path), "{class}: {refused}");
            }
            let reader = ask(Some(policy(false)), "ruled-data", "/data", "read-only").await.unwrap();
            let none = Change { policy: Some(json!({"version": 1, "mounts": []})), ..Change::default() };
            let refused = code(scene.client.change_sandbox(&reader.id, &none).await);
            assert!(refused.contains("ruled-data"), "{class}: what is mounted cannot be ruled away: {refused}");
            scene.kill(&reader.id).await;
            let writer = ask(Some(policy(true)), "ruled-data", "/data", "read-write").await.unwrap();
            scene.kill(&writer.id).await;
        }
        for name in ["ruled-data", "ruled-other"] {
            scene.client.remove_volume(name).await.unwrap();
        }
        scene.close();
    });
}

#[test]
fn results_are_handed_on_as_the_policy_says() {
    block_on(async {
        let scene = Scene::open().await;
        scene.cli(&["secret", "set", "masked-key"], SECRET);
        let policy = json!({"version": 1, "output": {"bytes": 64, "strip_escapes": true, "mask_secrets": true}});
        for class in CLASSES {
            let (free, held) = (scene.create(class, None).await, scene.create(class, Some(policy.clone())).await);
            // Split, so that it is not in what is asked for.
            let (head, tail) = SECRET.split_at(7);
            let speak = json!({"command": format!("printf 'a\\033[31mb %s%s\\n' {head} {tail}")});
            let as_it_came = exec(&scene, &free, &speak);
            assert_eq!(as_it_came["stdout"], format!("a\x1b[31mb {SECRET}\n"), "{class}: the control");
            let clean = exec(&scene, &held, &speak);
            assert_eq!(clean["stdout"], "ab ***\n", "{class}");
            assert_eq!(clean["stdout_cleaning"]["masked"], 1, "{class}");
            let much = json!({"command": "yes x | head -c 100000", "max_output_bytes": 50000});
            assert_eq!(exec(&scene, &free, &much)["stdout"].as_str().unwrap().len(), 50_000, "{class}: the control");
            let little = exec(&scene, &held, &much);
            assert_eq!((little["stdout"].as_str().unwrap().len(), &little["truncated"]), (64, &json!(true)), "{class}");
            let refused = exec(&scene, &held, &json!({"command": "true", "output": {"escapes": "keep"}}));
            assert!(refused["detail"].as_str().unwrap().contains("policy"), "{class}: {refused}");
            for id in [&free, &held] {
                scene.kill(id).await;
            }
        }
        scene.cli(&["secret", "rm", "masked-key"], "");
        scene.close();
    });
}
