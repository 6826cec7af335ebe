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

use belljar_types::IsolationClass;

use internet::ALLOWED;
use scene::{POLICY, Scene};

/// Prints three numbers: the median of a request on a kept connection and of one on a new connection, in milliseconds; MiB a second.
const CLIENT: &str = r"
import socket, ssl, sys, time
to, rounds = sys.argv[1], int(sys.argv[2])
context = ssl._create_unverified_context()
def connect():
    s = socket.create_connection((to, 443), 20); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(s, server_hostname='allowed.test')
def ask(s):
    s.sendall(b'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
    data = b''
    while b'hello from' not in data: data += s.recv(65536)
def median(times): return sorted(times)[len(times) // 2] * 1000
kept, fresh = [], []
s = connect(); ask(s)
for n in range(rounds):
    begin = time.perf_counter(); ask(s); kept.append(time.perf_counter() - begin)
for n in range(rounds // 4):
    begin = time.perf_counter(); t = connect(); ask(t); fresh.append(time.perf_counter() - begin); t.close()
s = connect(); s.sendall(b'GET /big HTTP/1.1\r\nHost: allowed.test\r\n\r\n')
got, begin = 0, time.perf_counter()
while got < 64 << 20: got += len(s.recv(1 << 18))
print(median(kept), median(fresh), got / (1 << 20) / (time.perf_counter() - begin))
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
        let direct = Command::new("nsenter").arg(netns).args(["python3", "-c", CLIENT, ALLOWED, ROUNDS]).output().unwrap();
        assert!(direct.status.success(), "{}", String::from_utf8_lossy(&direct.stderr));
        println!("{class} {turn} direct: {}", String::from_utf8_lossy(&direct.stdout).trim());
        for (how, policy) in [("passed through", POLICY), ("read", read.as_str())] {
            scene.egress().change(scene.id(), policy).unwrap();
            let script = format!("import sys; sys.argv = ['', 'allowed.test', '{ROUNDS}']\n{CLIENT}");
            println!("{class} {turn} {how}: {}", scene.python(&script).await.text().trim());
        }
    }
    scene.close().await;
}
