//! Fronting by HTTP/2: one name for TLS, another for the requests inside. Where TLS is read nobody speaks it; where it is passed through, the name inside
//! is not seen, which the guide says, and which is the control here.

use belljar_types::IsolationClass;

use crate::scene::Scene;

const POLICY: &str = r#"{"version":1,"network":{"allow":[{"id":"site","hosts":["cdn.test"],"ports":[443]}]}}"#;

/// Asks for streams of two hosts on one connection, with nothing squeezed, and wants both answered.
const SECOND: &str = r"
def second(protocols, *authorities):
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    if protocols: c.set_alpn_protocols(protocols)
    s = c.wrap_socket(socket.create_connection(('cdn.test', 443)), server_hostname='cdn.test')
    said = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\x00\x00\x00\x04\x00\x00\x00\x00\x00'
    for n, authority in enumerate(authorities):
        block = b'\x82\x87\x84\x01' + bytes([len(authority)]) + authority
        said += struct.pack('>I', len(block))[1:] + b'\x01\x05' + struct.pack('>I', 2 * n + 1) + block
    s.sendall(said)
    answered, data = set(), b''
    while len(answered) < len(authorities):
        data += recv_some(s)
        if data.startswith(b'HTTP/1.1'): stopped(data)
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], 'big'):
            if data[3] == 1: answered.add(data[8])
            data = data[9 + int.from_bytes(data[:3], 'big'):]
";

pub(crate) async fn the_second_http_fronts_nobody(class: IsolationClass) {
    let scripts: Vec<String> = ["None", "['h2']", "['h2', 'http/1.1']"]
        .into_iter()
        .flat_map(|protocols| {
            let ask = move |names: &str| format!("{SECOND}\nsecond({protocols}, {names})");
            [ask("b'evil.test'"), ask("b'cdn.test', b'evil.test'")]
        })
        .collect();
    let reading = Scene::open(class, &POLICY.replace("[443]", r#"[443],"inspect":true"#)).await;
    for script in &scripts {
        assert!(!reading.gets_through(script).await, "{class}: got through: {script}");
        assert_eq!(reading.internet.seen(), Vec::<String>::new(), "{class}: {script}");
    }
    let plain = "s = tls('cdn.test', 443, 'cdn.test'); s.sendall(b'GET / HTTP/1.1\\r\\nHost: cdn.test\\r\\n\\r\\n'); assert b' 200 ' in recv_some(s)";
    assert!(reading.gets_through(plain).await, "{class}: the host itself is reached");
    reading.close().await;
    let passing = Scene::open(class, POLICY).await;
    for script in &scripts {
        assert!(passing.gets_through(script).await, "{class}: the control did not get through: {script}");
        let seen = passing.internet.seen();
        assert!(seen.iter().any(|line| line.starts_with("h2 ") && line.contains("evil.test")), "{class}: the control: {seen:?}");
    }
    passing.close().await;
}
