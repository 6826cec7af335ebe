//! What the boundary costs: the same requests to the same server, straight from the node and out of a sandbox, in turns within one run, so that a
//! noisy machine is noisy for all. Prints; checks nothing of time. `make bench` runs it.

#![allow(dead_code, reason = "attacks use more of the scene than a benchmark does")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run has nothing to tell, and tells the rest on standard output"
)]

#[path = "../tests/egress/internet.rs"]
mod internet;
#[path = "../tests/egress/prelude.rs"]
mod prelude;
#[path = "../tests/egress/registries.rs"]
mod registries;
#[path = "../tests/egress/scene.rs"]
mod scene;

use std::process::Command;

use belljar_types::{IsolationClass, OutputEvent, ProcessSpec};
use futures_util::StreamExt;

use internet::{ALLOWED, Log};
use scene::{POLICY, Scene};

/// What both scripts are made of.
const COMMON: &str = r"
import socket, ssl, sys, time
context = ssl._create_unverified_context()
def timed(work):
    begin = time.perf_counter(); work()
    return time.perf_counter() - begin
def median(times): return sorted(times)[len(times) // 2] * 1000
def ask(s):
    s.sendall(b'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
    data = b''
    while b'hello from' not in data: data += s.recv(65536)
def requests(s, rounds):
    ask(s)
    return median([timed(lambda: ask(s)) for _ in range(rounds)])
def download(s):
    s.sendall(b'GET /big HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
    got, begin = 0, time.perf_counter()
    while got < 64 << 20: got += len(s.recv(1 << 18))
    return got / (1 << 20) / (time.perf_counter() - begin)
";
/// Prints three numbers: the median of a request on a kept connection and of one on a new connection, in milliseconds; MiB a second.
const CLIENT: &str = r"
to, rounds = sys.argv[1], int(sys.argv[2])
def connect():
    s = socket.create_connection((to, 443), 20); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(s, server_hostname='allowed.test')
def ask_anew():
    s = connect(); ask(s); s.close()
fresh = median([timed(ask_anew) for _ in range(rounds // 4)])
print(requests(connect(), rounds), fresh, download(connect()))
";
/// The same requests and the same download over a connection that comes in, past the proxy: what the class itself takes and lets through.
const PAST_THE_PROXY: &str = r"
listener = socket.create_server(('', 7443)); print('ready', flush=True)
s, _ = listener.accept(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
s = context.wrap_socket(s, server_hostname='allowed.test')
print(requests(s, int(sys.argv[1])), '-', download(s))
";
const ROUNDS: &str = "200";
const TURNS: usize = 3;

fn main() {
    for class in [IsolationClass::Container, IsolationClass::Gvisor] {
        belljar_testkit::block_on(measure(class));
    }
}

async fn measure(class: IsolationClass) {
    let read = POLICY.replace(r#""hosts":["allowed.test"]"#, r#""inspect":true,"hosts":["allowed.test"]"#);
    assert_ne!(read, POLICY);
    let scene = Scene::open(class, POLICY).await;
    for turn in 0..TURNS {
        let netns = format!("--net={}", scene.internet.uplink.display());
        let client = format!("{COMMON}{CLIENT}");
        let direct = Command::new("nsenter").arg(netns).args(["python3", "-c", &client, ALLOWED, ROUNDS]).output().unwrap();
        assert!(direct.status.success(), "{}", String::from_utf8_lossy(&direct.stderr));
        println!("{class} {turn} direct: {}", String::from_utf8_lossy(&direct.stdout).trim());
        for (how, policy) in [("passed through", POLICY), ("read", read.as_str())] {
            scene.egress().change(scene.id(), policy).unwrap();
            let script = format!("import sys; sys.argv = ['', 'allowed.test', '{ROUNDS}']\n{client}");
            println!("{class} {turn} {how}: {}", scene.python(&script).await.text().trim());
        }
        println!("{class} {turn} past the proxy: {}", past_the_proxy(&scene).await);
    }
    scene.close().await;
}

async fn past_the_proxy(scene: &Scene) -> String {
    let guest = &*scene.sandbox.guest;
    let spec = ProcessSpec::new(["/usr/bin/python3", "-c", &format!("{COMMON}{PAST_THE_PROXY}"), ROUNDS]);
    let (_, mut output) = guest.start_attached(&spec).await.unwrap();
    let (mut said, mut connected) = (String::new(), false);
    while let Some(event) = output.next().await {
        match event.unwrap() {
            OutputEvent::Data { bytes, .. } => said.push_str(&String::from_utf8_lossy(&bytes)),
            OutputEvent::Exit(_) => break,
            other => panic!("{other:?}"),
        }
        if !connected && said.contains("ready") {
            let address = scene.lab.host.record(scene.id()).await.unwrap().unwrap().guest_address;
            let stream = scene.lab.host.gateway().connect((address, 7443).into()).await.unwrap().into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            std::thread::spawn(move || internet::answer_tls(stream, internet::tls_config(), &Log::default(), "a connection of ours"));
            connected = true;
        }
    }
    said.replace("ready", "").trim().to_owned()
}
