//! Policies that change, sandboxes that go, servers that die, limits that are reached.

use belljar_policy::Operator;
use belljar_types::{IsolationClass, Network};

use crate::internet::ALLOWED;
use crate::scene::{EVERYTHING, POLICY, Scene};

/// Reads without end, and says how much when it is cut.
const DOWNLOAD: &str = r"
s = socket.create_connection(('allowed.test', 80)); s.sendall(b'GET /big HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
n = 0
open('/tmp/begun', 'w').write('x')
try:
    while True:
        part = s.recv(65536)
        if not part: stopped('ended quietly')
        n += len(part); open('/tmp/n', 'w').write(str(n))
except ConnectionError: print(n)
";

pub(crate) async fn a_tighter_policy_cuts_a_download(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let download = scene.gets_through(DOWNLOAD);
    let tighten = async {
        while scene.egress().traffic(scene.id()).unwrap().received < 1 << 20 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let tighter = POLICY.replace(r#"["allowed.test"]"#, r#"["api.test"]"#);
        scene.egress().change(scene.id(), &tighter).unwrap();
    };
    let (cut, ()) = tokio::join!(download, tighten);
    assert!(cut, "the download ended with an error, by itself");
    let after = scene.egress().traffic(scene.id()).unwrap().received;
    scene.internet.seen();
    assert!(!scene.gets_through("get('allowed.test')").await, "new ones are refused");
    assert_eq!(scene.egress().traffic(scene.id()).unwrap().received, after, "and not a byte more came");
    assert_eq!(scene.internet.seen(), Vec::<String>::new());
    scene.close().await;
}

/// Speaks with whoever took the connection over, a byte at a time, until it is cut.
const CHAT: &str = r"
s = socket.create_connection(('allowed.test', 80))
s.sendall(b'GET /chat/x HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
a = recv_some(s)
if not a.startswith(b'HTTP/1.1 101'): stopped(a)
for n in range(3000):
    try:
        s.sendall(b'x')
        if not s.recv(1): stopped('ended quietly')
    except ConnectionError:
        sys.exit(0)
    time.sleep(0.01)
stopped('it was never cut')
";

pub(crate) async fn a_tighter_policy_cuts_a_websocket(class: IsolationClass) {
    let allowing = |path: &str| {
        let condition = format!(r#""ports":[80,443],"paths":["{path}"]}}"#);
        POLICY.replace(r#""ports":[80,443]}"#, &condition)
    };
    let scene = Scene::open(class, &allowing("/chat/**")).await;
    let goes_on = async || {
        let before = scene.egress().traffic(scene.id()).unwrap().received;
        for _ in 0..1000 {
            if scene.egress().traffic(scene.id()).unwrap().received > before + 200 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{class}: nothing comes through");
    };
    let tighten = async {
        goes_on().await;
        scene.egress().change(scene.id(), &allowing("/chat/x")).unwrap();
        // The control: a change that leaves it allowed leaves it alone.
        goes_on().await;
        assert!(!scene.internet.seen().iter().any(|line| line.starts_with("cut ")));
        scene.egress().change(scene.id(), &allowing("/elsewhere/**")).unwrap();
    };
    let (cut, ()) = tokio::join!(scene.gets_through(CHAT), tighten);
    assert!(cut, "{class}: it ends with an error, by itself");
    assert!(scene.internet.sees(|line| line.starts_with("cut ")).await, "{class}: and the other side is let go");
    scene.close().await;
}

pub(crate) async fn whoever_is_not_attached_gets_nothing(class: IsolationClass) {
    let mut scene = Scene::open(class, EVERYTHING).await;
    assert!(scene.gets_through("get('allowed.test')").await);
    let address = scene.python("import socket; print(socket.gethostbyname('allowed.test'))").await.text();
    let ways = [format!("get('{address}', host='allowed.test')"), format!("get('{ALLOWED}')"), "question('allowed.test')".to_owned()];
    for way in &ways {
        assert!(scene.gets_through(way).await, "{way}");
    }
    scene.internet.seen();
    scene.egress().detach(scene.id());
    for way in &ways {
        assert!(!scene.gets_through(way).await, "detached: {way}");
    }
    // As if the server had been killed: nobody listens where the firewall sends everything.
    scene.kill_proxy().await;
    for way in &ways {
        assert!(!scene.gets_through(way).await, "no proxy: {way}");
    }
    assert_eq!(scene.internet.seen(), Vec::<String>::new());
    scene.start_proxy(EVERYTHING).await;
    assert!(scene.gets_through("get('allowed.test')").await, "the next server lets it out again");
    scene.close().await;
}

pub(crate) async fn a_limit_of_bytes_is_kept(class: IsolationClass) {
    const MIB: u64 = 1 << 20;
    let policy = POLICY.replace(r#""network":{"#, r#""network":{"limits":{"received":1048576},"#);
    let scene = Scene::open(class, &policy).await;
    assert!(scene.gets_through(DOWNLOAD).await, "it is cut");
    let received = scene.egress().traffic(scene.id()).unwrap().received;
    assert!(received <= MIB && received > MIB / 10 * 9, "{received}");
    scene.close().await;
}

pub(crate) async fn a_slot_that_is_used_again_has_nothing_of_before(class: IsolationClass) {
    let scene = Scene::open(class, EVERYTHING).await;
    assert!(scene.gets_through("get('allowed.test')").await);
    let before = scene.lab.host.record(scene.id()).await.unwrap().unwrap();
    // One that lives when its sandbox goes.
    let script = format!("{}\n{DOWNLOAD}", crate::prelude::PRELUDE);
    let living = belljar_types::ProcessSpec::new(["/usr/bin/python3", "-c", &script]);
    scene.sandbox.guest.start(&living).await.unwrap();
    while scene.egress().traffic(scene.id()).unwrap().received < 4 << 20 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!scene.internet.seen().iter().any(|line| line.starts_with("cut ")), "the control: it lives");
    let (egress, lab) = (scene.shared_egress(), scene.lab);
    let spec = belljar_types::SandboxSpec { network: Network::Filtered, ..lab.spec() };
    egress.detach(scene.id());
    scene.sandbox.runtime.destroy(scene.id()).await.unwrap();
    lab.host.settle().await;
    let next = lab.create(class, &spec).await.unwrap();
    let now = lab.host.record(&spec.id).await.unwrap().unwrap();
    assert!(scene.internet.sees(|line| line.starts_with("cut ")).await, "its connection goes with it");
    // The proxy may take the call; what counts is whether the other side answers.
    let reach = "import socket\ntry:\n  s = socket.create_connection(('203.0.113.10', 80), 5); s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n  print('reached' if b' 200 ' in s.recv(999) else 'refused')\nexcept OSError: print('refused')";
    let run = |guest| async move { belljar_testkit::run(guest, &["/usr/bin/python3", "-c", reach]).await.text() };
    assert_eq!(run(&*next.guest).await, "refused", "slot {} after slot {}: not attached yet", now.slot, before.slot);
    egress.attach(&spec.id, &crate::scene::project(), r#"{"version":1}"#, crate::scene::free()).await.unwrap();
    assert_eq!(run(&*next.guest).await, "refused", "its own policy holds");
    assert_eq!(scene.internet.seen(), Vec::<String>::new());
    egress.detach(&spec.id);
    next.destroy().await;
}

pub(crate) async fn many_connections_meet_the_limit(class: IsolationClass) {
    let policy = POLICY.replace(r#""network":{"#, r#""network":{"limits":{"connections":10},"#);
    let scene = Scene::with(class, &policy, Operator::default()).await;
    let script = r"
held = []
for n in range(200):
    s = socket.socket(); s.settimeout(5)
    try:
        s.connect(('allowed.test', 80)); held.append(s)
    except OSError: pass
time.sleep(0.3)
alive = 0
for s in held:
    s.settimeout(0.05)
    try:
        if s.recv(1) == b'': continue
    except TimeoutError: alive += 1
    except OSError: pass
assert alive <= 10, alive
for s in held: s.close()
time.sleep(0.3)
get('allowed.test')
";
    assert!(scene.gets_through(script).await);
    scene.close().await;
}

/// Many half-said requests, heads that never end, and readers who do not read.
const FLOOD: &str = r"
import threading
def quietly(work):
    try: work()
    except (OSError, SystemExit): pass
held = []
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
def half():
    s = socket.create_connection(('allowed.test', 80), 5); s.sendall(b'GET / HT'); held.append(s)
def halves():
    for n in range(HALVES): quietly(half)
def endless():
    s = socket.create_connection(('allowed.test', 80), 5); s.sendall(b'GET / HTTP/1.1\r\nX: ')
    for n in range(4096): s.sendall(b'a' * 65536)
    os._exit(5)
def unread():
    s = socket.create_connection(('allowed.test', 80), 5); s.sendall(b'GET /big HTTP/1.1\r\nHost: allowed.test\r\n\r\n'); held.append(s)
threads = [threading.Thread(target=quietly, args=(work,)) for work in [halves] * 20 + [endless] * 20 + [unread] * 20]
for thread in threads: thread.start()
for thread in threads: thread.join()
open('/tmp/flooded', 'w').write('x')
time.sleep(5)
";

pub(crate) async fn whoever_floods_the_proxy_harms_nobody_else(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let spec = belljar_types::SandboxSpec { network: Network::Filtered, ..scene.lab.spec() };
    let neighbour = scene.lab.create(class, &spec).await.unwrap();
    scene.egress().attach(&spec.id, &crate::scene::project(), POLICY, crate::scene::free()).await.unwrap();
    // 10,000 half-open connections in the full run, 300 in the quick one.
    let halves = if std::env::var_os("BELLJAR_FULL").is_some() { "500" } else { "15" };
    let flood = FLOOD.replace("HALVES", halves);
    let flood = scene.gets_through(&flood);
    let meanwhile = async {
        let script = format!("{}\nfor n in range(50): get('allowed.test')", crate::prelude::PRELUDE);
        belljar_testkit::run(&*neighbour.guest, &["/usr/bin/python3", "-c", &script]).await
    };
    let (flooded, meanwhile) = tokio::join!(flood, meanwhile);
    assert!(flooded, "{class}: a head of 256 MiB is cut off, and the rest are held");
    assert_eq!(meanwhile.code(), 0, "{class}: the neighbour is served all the while: {meanwhile}");
    scene.egress().detach(&spec.id);
    neighbour.destroy().await;
    scene.close().await;
}
