//! Bytes that leave sandboxes and come in: counted as they pass, stopped where a budget ends, and known to whichever server comes next.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use belljar_client::{Consumed, CreateSandbox, NewBudget};
use belljar_testkit::block_on;
use belljar_types::{SandboxId, SandboxState};
use serde_json::json;

use crate::scene::{CLASSES, DOMAIN, Scene};

const MIB: u64 = 1 << 20;

/// Asks for what never ends until it has `MOST`, and keeps how much it got.
const DOWNLOAD: &str = r"
s = socket.create_connection(('allowed.test', PORT)); got = 0
if PORT == 443: s = ssl.create_default_context().wrap_socket(s, server_hostname='allowed.test')
s.sendall(b'GET /big HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
while got < MOST:
    try: part = s.recv(65536)
    except OSError: break
    if not part: break
    got += len(part); open('/tmp/got', 'w').write(str(got))
";

/// Less than this of an answer is the server's own: headers that the program inside did not write.
const OWN_HEAD: u64 = 1024;

/// Answers whoever connects with bytes without end.
const POUR: &str = r"
listener = socket.create_server(('127.0.0.1', 8000)); listener.settimeout(None)
while True:
    c, _ = listener.accept(); c.recv(4096)
    try:
        c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n')
        while True: c.sendall(b'x' * 16384)
    except OSError: pass
";

fn download(port: u16, most: u64) -> String {
    DOWNLOAD.replace("MOST", &most.to_string()).replace("PORT", &port.to_string())
}

async fn used(scene: &Scene, sandbox: &SandboxId) -> Consumed {
    scene.client.consumed(Some(&format!("sandbox:{sandbox}")), None).await.unwrap().total
}

async fn set(scene: &Scene, subject: &str, meter: &str, hard: u64) {
    let budget =
        NewBudget { subject: subject.to_owned(), meter: meter.to_owned(), soft: None, hard: Some(hard), at_limit: "pause".to_owned() };
    scene.client.set_budget(&budget).await.unwrap_or_else(|error| panic!("{error:?}"));
}

async fn until(scene: &Scene, sandbox: &SandboxId, state: SandboxState) {
    while scene.client.sandbox(sandbox).await.unwrap().state != state {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn got(scene: &Scene, sandbox: &SandboxId) -> u64 {
    let told = scene.python(sandbox, "print(open('/tmp/got').read())").await;
    told.stdout.trim().parse().unwrap_or_else(|_| panic!("{told}"))
}

#[test]
fn a_download_with_one_mebibyte_left_stops_there() {
    block_on(async {
        let scene = Scene::open().await;
        for class in CLASSES {
            for (port, inspect) in [(80, false), (443, false), (443, true)] {
                let allow = json!([{"id": "site", "hosts": ["allowed.test"], "ports": [80, 443], "inspect": inspect}]);
                let sandbox = scene.create(class, Some(json!({"version": 1, "network": {"allow": allow}}))).await;
                // Nobody inside trusts the internet's own authority; who reads TLS is trusted.
                let trusting =
                    |script: String| if inspect { script } else { script.replace("create_default_context", "_create_unverified_context") };
                let told = scene.python(&sandbox, &trusting(download(port, 4 * MIB))).await;
                assert_eq!(told.code, 0, "{class} {port} {inspect}: {told}");
                let before = used(&scene, &sandbox).await;
                let had = got(&scene, &sandbox).await;
                assert!(had >= 4 * MIB && before.ingress_bytes >= had, "{class} {port} {inspect}: the control, {had} of {before:?}");
                let limit = before.ingress_bytes + MIB;
                set(&scene, &format!("sandbox:{sandbox}"), "ingress_bytes", limit).await;
                scene.start(&sandbox, &trusting(download(port, 64 * MIB))).await;
                until(&scene, &sandbox, SandboxState::Paused).await;
                assert_eq!(used(&scene, &sandbox).await.ingress_bytes, limit, "{class} {port} {inspect}: to the byte");
                set(&scene, &format!("sandbox:{sandbox}"), "ingress_bytes", limit + MIB).await;
                let resumed = scene.client.resume_sandbox(&sandbox, None).await;
                resumed.unwrap_or_else(|error| panic!("{class} {port} {inspect}: {error:?}\n{}", scene.server.last_words()));
                let had = got(&scene, &sandbox).await;
                // What was on its way when the connection was reset never got there.
                assert!((1..=MIB).contains(&had), "{class} {port} {inspect}: a program inside got {had}");
                let told = scene.cli(&["audit", "query", "--sandbox", sandbox.as_str(), "--limit", "1000"], "");
                let told = String::from_utf8_lossy(&told.stdout).into_owned();
                assert!(told.contains("a budget of bytes is used up"), "{class} {port} {inspect}: {told}");
                scene.kill(&sandbox).await;
            }
        }
        scene.close();
    });
}

/// Reads what a program inside sends to whoever asks at its port; gives up after `most`.
fn drink(scene: &Scene, host: &str, token: &str, most: u64) -> u64 {
    let mut stream = TcpStream::connect(scene.server.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nX-Belljar-Token: {token}\r\n\r\n").unwrap();
    let (mut piece, mut had) = (vec![0; 65536], 0);
    while had < most {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => had += u64::try_from(count).unwrap(),
        }
    }
    had
}

#[test]
fn what_ports_carry_counts_and_a_killed_server_forgets_none_of_it() {
    block_on(async {
        let mut scene = Scene::open().await;
        let mut all = Vec::new();
        for class in CLASSES {
            let sandbox = scene.create(class, None).await;
            scene.start(&sandbox, POUR).await;
            let ready = "while True:\n  try: socket.create_connection(('127.0.0.1', 8000)); break\n  except OSError: time.sleep(0.05)";
            assert_eq!(scene.python(&sandbox, ready).await.code, 0);
            let host = format!("8000-{sandbox}.{DOMAIN}");
            let token = scene.client.port_token(&sandbox, 8000, 600).await.unwrap().token;
            let had = drink(&scene, &host, &token, 4 * MIB);
            assert!(had >= 4 * MIB, "{class}: the control: {had}");
            // What its sender still had under way is counted before this is asked, or with the next.
            let before = used(&scene, &sandbox).await;
            assert!(before.egress_bytes + OWN_HEAD >= had && before.ingress_bytes > 0, "{class}: {had} of {before:?}");
            scene.server.kill();
            scene.server.restart().await;
            scene.client = scene.server.client();
            let after = used(&scene, &sandbox).await;
            assert!(after.egress_bytes >= before.egress_bytes, "{class}: {before:?} {after:?}");
            assert!(after.egress_bytes < before.egress_bytes + MIB, "{class}: and nothing twice: {before:?} {after:?}");

            let limit = after.egress_bytes + MIB;
            set(&scene, &format!("sandbox:{sandbox}"), "egress_bytes", limit).await;
            let token = scene.client.port_token(&sandbox, 8000, 600).await.unwrap().token;
            let had = drink(&scene, &host, &token, 64 * MIB);
            assert!(had.abs_diff(MIB) <= OWN_HEAD, "{class}: what was paid for is delivered, and no more: {had}");
            until(&scene, &sandbox, SandboxState::Paused).await;
            let last = used(&scene, &sandbox).await;
            assert_eq!(last.egress_bytes, limit, "{class}: to the byte");
            scene.kill(&sandbox).await;
            assert_eq!(used(&scene, &sandbox).await.egress_bytes, limit, "{class}: after its end");
            all.push(last);
        }
        let whole = scene.client.consumed(None, None).await.unwrap().total;
        assert_eq!(whole.egress_bytes, all.iter().map(|part| part.egress_bytes).sum::<u64>(), "the parts make the whole");
        assert_eq!(whole.ingress_bytes, all.iter().map(|part| part.ingress_bytes).sum::<u64>());
        scene.close();
    });
}

#[test]
fn a_budget_that_could_not_be_kept_is_refused() {
    block_on(async {
        let scene = Scene::open().await;
        set(&scene, "project:default", "egress_bytes", 64 * MIB).await;
        let request =
            CreateSandbox { network: Some("open".to_owned()), isolation: Some("container".to_owned()), ..CreateSandbox::default() };
        let refused = scene.client.create_sandbox(&request, None).await.unwrap_err();
        let told = format!("{refused:?}");
        assert!(told.contains("network") && told.contains("project:default has a budget of egress_bytes"), "{told}");
        let sandbox = scene.create("container", None).await;
        scene.kill(&sandbox).await;
        scene.close();
    });
}
