//! TLS that is read: rules for methods and paths, fronting, and secrets that the sandbox uses and never has.

use belljar_types::{IsolationClass, Network};

use crate::scene::{SECRET, Scene};

const POLICY: &str = r#"{"version":1,"network":{"allow":[
    {"id":"api","hosts":["api.test","bad.test"],"ports":[443],"methods":["GET","POST"],"paths":["/v1/**"]},
    {"id":"plain","hosts":["api.test"],"ports":[80]},
    {"id":"site","hosts":["allowed.test","cdn.test"],"ports":[443]}]},
  "secrets":[{"secret":"model-key","hosts":["api.test","bad.test"],"methods":["POST"],"paths":["/v1/**"],"header":"Authorization","value":"Bearer {}"}]}"#;

/// A request inside TLS, with everything about it chosen.
pub(crate) const ASK: &str = r"
def ask(request, name='api.test', to=None):
    c = ssl.create_default_context(cafile='/etc/ssl/certs/ca-certificates.crt')
    s = c.wrap_socket(socket.create_connection((to or name, 443)), server_hostname=name)
    s.sendall(request.replace('\n', '\r\n').encode())
    a = recv_some(s)
    print(a.decode(errors='replace'))
    if not a.startswith(b'HTTP/1.1 200'): stopped(a)
    return s
";

pub(crate) async fn requests_inside_tls_are_judged_one_by_one(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let try_it = |script: &str| format!("{ASK}\n{script}");
    assert!(scene.gets_through(&try_it("ask('GET /v1/x HTTP/1.1\\nHost: api.test\\n\\n')")).await);
    assert!(scene.internet.sees(|line| line.contains("GET /v1/x HTTP/1.1 | host: api.test")).await);
    for bad in [
        "ask('DELETE /v1/x HTTP/1.1\\nHost: api.test\\n\\n')",
        "ask('GET /v2/x HTTP/1.1\\nHost: api.test\\n\\n')",
        "ask('GET /v1/../admin HTTP/1.1\\nHost: api.test\\n\\n')",
        "ask('GET /v1/%2e%2e/admin HTTP/1.1\\nHost: api.test\\n\\n')",
        "ask('GET //v1/x HTTP/1.1\\nHost: api.test\\n\\n')",
        "ask('GET /v1/x HTTP/1.1\\nHost: evil.test\\n\\n')",
    ] {
        assert!(!scene.gets_through(&try_it(bad)).await, "{bad}");
        assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{bad}");
    }
    let second = "s = ask('GET /v1/x HTTP/1.1\\nHost: api.test\\n\\n'); s.sendall(b'GET /v1/second HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'); a = recv_some(s)\nif not a.startswith(b'HTTP/1.1 200'): stopped(a)";
    assert!(!scene.gets_through(&try_it(second)).await);
    assert!(scene.internet.seen().iter().all(|line| !line.contains("second")));
    // Where TLS is passed through, the name inside is not seen: what the guide says about fronting.
    let fronted = "c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\ns = c.wrap_socket(socket.create_connection(('cdn.test', 443)), server_hostname='cdn.test'); s.sendall(b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'); recv_some(s)";
    assert!(scene.gets_through(fronted).await);
    assert!(scene.internet.sees(|line| line.contains("Host: evil.test")).await);
    scene.close().await;
    let inspected = POLICY.replace(
        r#""hosts":["allowed.test","cdn.test"],"ports":[443]"#,
        r#""hosts":["allowed.test","cdn.test"],"ports":[443],"inspect":true"#,
    );
    let scene = Scene::open(class, &inspected).await;
    assert!(
        !scene
            .gets_through(&format!("{fronted}\nsys.exit(0)").replace("recv_some(s)", "a = recv_some(s)\nif b' 421 ' in a: stopped(a)"))
            .await,
        "and where it is read, it is"
    );
    assert_eq!(scene.internet.seen(), Vec::<String>::new());
    scene.close().await;
}

pub(crate) async fn a_secret_goes_where_it_belongs_and_nowhere_else(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let bearer = format!("authorization: Bearer {SECRET}");
    let post = "POST /v1/messages HTTP/1.1\\nHost: api.test\\nAuthorization: placeholder\\nauthorization: again\\nConnection: authorization\\nContent-Length: 2\\n\\n{}";
    let done = scene.python(&format!("{}\n{ASK}\nask('{post}')", crate::prelude::PRELUDE)).await;
    let seen = scene.internet.seen().join("\n");
    assert!(
        seen.contains(&bearer) && !seen.contains("placeholder") && !seen.contains("again"),
        "one value, and it is the real one: {seen}"
    );
    let answer = done.text();
    assert!(answer.contains("Bearer ***") && !answer.contains(SECRET), "what comes back in a header is masked: {answer}");
    for (script, why) in [
        ("ask('GET /v1/messages HTTP/1.1\\nHost: api.test\\n\\n')", "another method"),
        ("http('api.test', 80, b'POST /v1/messages HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 0\\r\\n\\r\\n')", "plain HTTP"),
        (
            "c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\ns = c.wrap_socket(socket.create_connection(('allowed.test', 443)), server_hostname='allowed.test'); s.sendall(b'POST /v1/messages HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 0\\r\\n\\r\\n'); recv_some(s)",
            "another host",
        ),
    ] {
        assert!(scene.gets_through(&format!("{ASK}\n{script}")).await, "{why}");
        let seen = scene.internet.seen().join("\n");
        assert!(!seen.contains(SECRET) && seen.contains("http "), "{why}: {seen}");
    }
    assert!(
        !scene.gets_through(&format!("{ASK}\nask('POST /v1/m HTTP/1.1\\nHost: bad.test\\nContent-Length: 0\\n\\n', 'bad.test')")).await,
        "a certificate that is for others"
    );
    assert!(!scene.internet.seen().join("\n").contains("http "), "nothing was sent to it");
    // Nowhere inside: not in any file, environment or memory that can be read. The search itself must not be found.
    let search = "import subprocess; print(subprocess.run(['sudo', 'sh', '-c', 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /etc/ssl/certs/belljar.pem 2>/dev/null; env; grep -rIs --exclude-dir=proc --exclude-dir=sys s3cret[-]4f9 /etc /home /tmp /root /run /var/tmp'], capture_output=True, text=True, errors='replace').stdout.count('s3cret' + '-4f9'))";
    assert_eq!(scene.python(search).await.text(), "0");
    scene.close().await;
}

pub(crate) async fn the_authority_signs_for_its_own_hosts_only(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let text = scene.python("import subprocess; print(subprocess.run(['openssl', 'x509', '-in', '/etc/ssl/certs/belljar.pem', '-noout', '-text'], capture_output=True, text=True).stdout)").await.text();
    for part in ["CA:TRUE, pathlen:0", "X509v3 Name Constraints", "DNS:api.test", "DNS:bad.test"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("evil.test") && !text.contains("DNS:allowed.test"), "{text}");
    // What one sandbox is shown, another does not trust.
    let spec = belljar_types::SandboxSpec { network: Network::Filtered, ..scene.lab.spec() };
    let other = scene.lab.create(class, &spec).await.unwrap();
    let attached = scene.egress().attach(&spec.id, &crate::scene::project(), POLICY, crate::scene::free()).await.unwrap();
    crate::scene::trust(&other, &attached.unwrap()).await;
    let show = "import ssl, socket; c = ssl._create_unverified_context(); s = c.wrap_socket(socket.create_connection(('api.test', 443), 8), server_hostname='api.test'); print(ssl.DER_cert_to_PEM_cert(s.getpeercert(True)))";
    let mine = scene.python(show).await.text();
    let theirs = belljar_testkit::run(&*other.guest, &["/usr/bin/python3", "-c", show]).await.text();
    let verify = |leaf: &str| {
        format!(
            "import subprocess, sys; sys.exit(subprocess.run(['openssl', 'verify', '-verify_hostname', 'api.test', '-CAfile', '/etc/ssl/certs/ca-certificates.crt'], input={}.encode(), capture_output=True).returncode)",
            serde_json::to_string(leaf).unwrap()
        )
    };
    assert_eq!(scene.python(&verify(&mine)).await.code(), 0, "{class}: the control: its own is good");
    assert_ne!(scene.python(&verify(&theirs)).await.code(), 0, "{class}: another's is not");
    scene.egress().detach(&spec.id);
    other.destroy().await;
    scene.close().await;
}
