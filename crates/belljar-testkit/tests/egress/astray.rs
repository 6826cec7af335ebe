//! Secrets that are led astray, and answers that are worse than they look.

use belljar_types::IsolationClass;

use crate::internet::pages::{PACKED, UNPACKED};
use crate::reading::ASK;
use crate::scene::{SECRET, Scene};

/// Everything may be asked of these hosts; the secret goes to one of them, at one port, with one method, below one path.
const POLICY: &str = r#"{"version":1,"network":{"allow":[
    {"id":"api","hosts":["api.test","evil.test"],"ports":[443,8443],"inspect":true,"scheme":"https"}]},
  "secrets":[{"secret":"model-key","hosts":["api.test"],"methods":["POST"],"paths":["/v1/**"],"header":"Authorization","value":"Bearer {}"}]}"#;

/// Asks with curl, which follows where it is led.
fn curl(words: &str) -> String {
    format!("import subprocess; subprocess.run('''curl -s -S --path-as-is --max-time 10 {words}''', shell=True, check=True)")
}

pub(crate) async fn a_secret_is_not_led_astray(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let right = scene.python(&curl("-X POST https://api.test/v1/messages")).await;
    assert_eq!(right.code(), 0, "{right}");
    assert!(scene.internet.seen().join("\n").contains(SECRET), "{class}: the control: it goes where it belongs");
    for words in [
        "-X POST https://api.test:8443/v1/messages",
        "-X POST https://evil.test/v1/messages",
        "-X PUT https://api.test/v1/messages",
        "-X POST https://api.test/v2/messages",
        "-X POST https://api.test/v1/../admin",
        "-X POST https://api.test/v1/%2e%2e/admin",
        "-X POST https://api.test//v1/messages",
        "-X POST https://api.test/v1%2fmessages",
    ] {
        let done = scene.python(&curl(words)).await;
        assert_eq!(done.code(), 0, "{class}: {words}: {done}");
        let seen = scene.internet.seen().join("\n");
        assert!(!seen.contains(SECRET), "{class}: {words}: {seen}");
    }
    // A host that sends whoever asks elsewhere, with what it was told.
    let led = scene
        .python(&curl("-X POST -L --post302 -H 'Authorization: Bearer placeholder' --location-trusted https://api.test/v1/elsewhere"))
        .await;
    let seen = scene.internet.seen();
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        seen.iter().filter(|line| line.starts_with("http ")).partition(|line| line.contains("/v1/elsewhere"));
    assert!(there.iter().any(|line| line.contains(SECRET)), "{class}: {led} {seen:?}");
    assert!(!elsewhere.is_empty() && elsewhere.iter().all(|line| !line.contains(SECRET)), "{class}: {led} {seen:?}");
    // What is said after the body is not a header.
    let trailer = "ask('POST /v1/x HTTP/1.1\\nHost: api.test\\nTransfer-Encoding: chunked\\nTrailer: authorization\\n\\n2\\n{}\\n0\\nAuthorization: mine\\n\\n')";
    assert!(scene.gets_through(&format!("{ASK}\n{trailer}")).await, "{class}");
    let seen = scene.internet.seen().join("\n");
    assert!(seen.contains(SECRET) && !seen.contains("mine"), "{class}: {seen}");
    // The guide says so: what a host puts into a body comes back as it is, and only the program that asked sees it.
    let echo = scene.python(&curl("-X POST https://api.test/v1/echo")).await;
    assert!(echo.text().contains("POST /v1/echo"), "{class}: {echo}");
    scene.close().await;
}

/// Memory that this process, which is the proxy here, has held at most.
fn peak() -> u64 {
    belljar_testkit::most_memory(std::process::id())
}

pub(crate) async fn a_bomb_goes_by_unopened(class: IsolationClass) {
    let policy = r#"{"version":1,"network":{"limits":{"received":4194304},"allow":[{"id":"site","hosts":["allowed.test"],"ports":[80,443],"inspect":true}]}}"#;
    let scene = Scene::open(class, policy).await;
    let script = |scheme: &str| {
        format!(
            "import subprocess, zlib\np = subprocess.Popen(['curl', '-s', '{scheme}://allowed.test/bomb'], stdout=subprocess.PIPE); d = zlib.decompressobj(31); n = 0\nwhile part := p.stdout.read(65536):\n  while part: n += len(d.decompress(part, 1 << 20)); part = d.unconsumed_tail\nprint(n)"
        )
    };
    // Made before anything is counted.
    scene.gets_through("http('allowed.test', 80, b'HEAD /bomb HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n')").await;
    for scheme in ["http", "https"] {
        let (before, had) = (peak(), scene.egress().traffic(scene.id()).unwrap().received);
        let told = scene.python(&script(scheme)).await;
        assert_eq!(told.text(), UNPACKED.to_string(), "{class}: the control: whoever opens it has all of it: {told}");
        let received = scene.egress().traffic(scene.id()).unwrap().received - had;
        assert!(received > 100_000 && received < PACKED, "{class}: {scheme}: what came by is {received}");
        assert!(peak() < before + UNPACKED / 4, "{class}: {scheme}: {before} became {}", peak());
    }
    scene.close().await;
}
