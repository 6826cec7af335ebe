//! What happens on the way out is in the audit log, with the rule that decided, and nobody can flood it.

use belljar_client::AuditAsk;
use belljar_testkit::block_on;
use belljar_types::SandboxId;
use serde_json::{Value, json};

use crate::scene::{CLASSES, Scene, site};

async fn events(scene: &Scene, sandbox: &SandboxId, kinds: &str) -> Vec<Value> {
    let ask = AuditAsk { sandbox: Some(sandbox.to_string()), kinds: Some(kinds.to_owned()), limit: 1000, ..AuditAsk::default() };
    scene.client.audit(&ask).await.unwrap().events
}

/// What is written is handed over and not waited for: looks until it is there.
async fn wait_for(scene: &Scene, sandbox: &SandboxId, kinds: &str, so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        if let Some(found) = events(scene, sandbox, kinds).await.into_iter().find(&so) {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("not in the log: {:#?}", events(scene, sandbox, kinds).await);
}

#[test]
fn what_happens_on_the_way_out_is_written_down() {
    block_on(async {
        let scene = Scene::open().await;
        scene.cli(&["secret", "set", "audited-key"], "s3cret-audited-0017");
        for class in CLASSES {
            let mut policy = site();
            policy["network"]["allow"].as_array_mut().unwrap().push(json!({"id": "model", "hosts": ["api.test"], "ports": [443]}));
            policy["secrets"] = json!([{"secret": "audited-key", "hosts": ["api.test"], "header": "authorization", "value": "Bearer {}"}]);
            let sandbox = scene.create(class, Some(policy)).await;
            assert!(scene.gets_through(&sandbox, "get('allowed.test')").await);
            let refusals = "for n in range(500):\n  try: get('203.0.113.66')\n  except (OSError, SystemExit): pass\ntry: get('evil.test')\nexcept (OSError, SystemExit): pass\n";
            scene.python(&sandbox, refusals).await;
            let curl = "import subprocess; subprocess.run(['curl', '-s', 'https://api.test/v1/models?key=hidden'], check=True)";
            assert_eq!(scene.python(&sandbox, curl).await.code, 0, "{class}");
            scene.change(&sandbox, json!("offline")).await;

            let is = |event: &Value, verdict: &str, host: &str| event["verdict"] == verdict && event["host"] == host;
            let allowed = wait_for(&scene, &sandbox, "network", |event| is(event, "allow", "allowed.test")).await;
            assert_eq!((&allowed["rule"], &allowed["port"]), (&json!("site"), &json!(80)), "{class}: {allowed}");
            let denied = wait_for(&scene, &sandbox, "network", |event| is(event, "deny", "203.0.113.66")).await;
            assert_eq!(denied["rule"], "network.default", "{class}: {denied}");
            let name = wait_for(&scene, &sandbox, "network", |event| is(event, "deny", "evil.test")).await;
            assert_eq!(name["protocol"], "dns", "{class}: {name}");
            let used = wait_for(&scene, &sandbox, "secret_use", |event| event["name"] == "audited-key").await;
            assert_eq!(used["host"], "api.test", "{class}: {used}");
            let changed = wait_for(&scene, &sandbox, "policy", |event| event["phase"] == "done").await;
            assert_eq!(changed["sha256"].as_str().map(str::len), Some(64), "{class}: {changed}");
            let all = events(&scene, &sandbox, "network,secret_use,policy").await;
            let repeated = all.iter().filter(|event| is(event, "deny", "203.0.113.66")).count();
            assert!(repeated <= 4, "{class}: 500 refusals are {repeated} lines");
            let text = serde_json::to_string(&all).unwrap();
            assert!(!text.contains("s3cret-audited") && !text.contains("hidden"), "{class}: {text}");
            scene.kill(&sandbox).await;
        }
        scene.cli(&["secret", "rm", "audited-key"], "");
        assert!(scene.client.verify_audit(None).await.unwrap().whole);
        scene.close();
    });
}
