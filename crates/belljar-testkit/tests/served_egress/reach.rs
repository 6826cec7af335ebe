//! What a sandbox reaches: nothing, what its policy names, or everything; and what it is told.

use belljar_testkit::block_on;
use serde_json::{Value, json};

use crate::internet::{ALLOWED, EVIL};
use crate::scene::{CLASSES, Scene, elsewhere, site};

#[test]
fn nothing_goes_out_unless_a_policy_says_so() {
    block_on(async {
        let scene = Scene::open().await;
        let ways = [
            "get('allowed.test')".to_owned(),
            format!("get('{ALLOWED}')"),
            "socket.gethostbyname('allowed.test')".to_owned(),
            "question('allowed.test', to='203.0.113.53')".to_owned(),
        ];
        for class in CLASSES {
            for policy in [None, Some(json!("offline"))] {
                let closed = scene.create(class, policy.clone()).await;
                for way in &ways {
                    assert!(!scene.gets_through(&closed, way).await, "{class} {policy:?}: {way}");
                }
                assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class} {policy:?}");
                scene.kill(&closed).await;
            }
            let open = scene.create(class, Some(json!("open"))).await;
            for way in &ways {
                assert!(scene.gets_through(&open, way).await, "{class}: the control did not get through: {way}");
            }
            let seen = scene.internet.seen().join("\n");
            assert!(seen.contains("dns allowed.test") && seen.contains("http 203.0.113.10:80 GET / HTTP/1.1"), "{class}: {seen}");
            for private in ["get('169.254.169.254')", "get('10.1.2.3')", "get('rebind.test')"] {
                assert!(!scene.gets_through(&open, private).await, "{class}: {private}");
            }
            assert!(scene.internet.seen().iter().all(|line| line.starts_with("dns ")), "{class}: private addresses are not dialled");
            scene.kill(&open).await;
        }
        scene.close();
    });
}

/// The status line and the body of an answer, whatever it is.
const ASK: &str = r"
def ask(to, port, request):
    s = socket.create_connection((to, port)); s.sendall(request.replace('\n', '\r\n').encode())
    print(recv_all(s).decode())
";

#[test]
fn what_is_refused_says_which_rule_refused_it() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            let sandbox = scene.create(class, Some(site())).await;
            assert!(scene.gets_through(&sandbox, "get('allowed.test')").await, "{class}");
            assert!(scene.internet.sees(|line| line.contains("http 203.0.113.10:80 GET / HTTP/1.1 | host: allowed.test")).await, "{class}");
            for (script, words) in [
                (
                    "ask('allowed.test', 80, 'POST / HTTP/1.1\\nHost: allowed.test\\nContent-Length: 0\\n\\n')",
                    "site is about this destination, with other methods",
                ),
                (
                    "ask(gateway(), 3128, 'CONNECT evil.test:443 HTTP/1.1\\nHost: evil.test\\n\\n')",
                    "denied by network.default: no rule is about this destination",
                ),
                (
                    "ask(gateway(), 3128, 'CONNECT allowed.test:22 HTTP/1.1\\nHost: allowed.test\\n\\n')",
                    "site is about this destination, on other ports",
                ),
            ] {
                let told = scene.python(&sandbox, &format!("{ASK}{script}")).await;
                assert!(told.stdout.starts_with("HTTP/1.1 403 Forbidden") && told.stdout.contains(words), "{class}: {script}: {told}");
            }
            for way in ["get('evil.test')".to_owned(), format!("get('{EVIL}')")] {
                assert!(!scene.gets_through(&sandbox, &way).await, "{class}: {way}");
            }
            assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: nobody outside heard of it");
            scene.kill(&sandbox).await;
        }
        scene.close();
    });
}

/// Reads without end, and says so when it is cut.
const DOWNLOAD: &str = r"
s = socket.create_connection(('allowed.test', 80)); s.sendall(b'GET /big HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
n = 0
try:
    while True:
        part = s.recv(65536)
        if not part: stopped('ended quietly')
        n += len(part)
        if n > 1 << 20: open('/tmp/begun', 'w').write('x')
except ConnectionError: print('cut')
";

async fn changed_during_a_download(scene: &Scene, class: &str, change: impl AsyncFn(&belljar_types::SandboxId, Value)) {
    let sandbox = scene.create(class, Some(site())).await;
    let download = scene.start(&sandbox, DOWNLOAD).await;
    scene.python(&sandbox, "while not os.path.exists('/tmp/begun'): time.sleep(0.01)").await;
    change(&sandbox, elsewhere()).await;
    let told = scene.finish(&sandbox, &download).await;
    assert_eq!((told.stdout.trim(), told.code), ("cut", 0), "{class}: {told}");
    scene.internet.seen();
    assert!(!scene.gets_through(&sandbox, "get('allowed.test')").await, "{class}: new ones are refused");
    assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}");
    assert!(scene.gets_through(&sandbox, "get('api.test')").await, "{class}: what is allowed now works");
    change(&sandbox, site()).await;
    assert!(scene.gets_through(&sandbox, "get('allowed.test')").await, "{class}: and what is allowed again");
    scene.kill(&sandbox).await;
}

#[test]
fn a_policy_that_changes_cuts_what_it_no_longer_allows() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            changed_during_a_download(&scene, class, async |id, policy| scene.change(id, policy).await).await;
            changed_during_a_download(&scene, class, async |id, policy| {
                let file = scene.server.directory().join("policy.json");
                std::fs::write(&file, policy.to_string()).unwrap();
                scene.cli(&["policy", "apply", id.as_str(), file.to_str().unwrap()], "");
            })
            .await;
        }
        scene.close();
    });
}
