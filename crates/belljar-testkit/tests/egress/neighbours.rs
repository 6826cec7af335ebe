//! Other sandboxes and the gateway itself: near, with private addresses that a policy may even list, and out of reach.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_linux::netns::Netns;
use belljar_types::{IsolationClass, Network, ProcessSpec};

use crate::scene::{POLICY, Scene};
use crate::unguarded::Unguarded;

/// Answers whoever asks, and keeps a mark of it.
const SERVE: &str = r"
import socket
listener = socket.create_server(('0.0.0.0', 8080))
open('/tmp/ready', 'w').close()
while True:
    c, _ = listener.accept(); c.recv(4096)
    open('/tmp/reached', 'w').close(); c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'); c.close()
";

pub(crate) async fn neighbours_and_the_gateway_are_out_of_reach(class: IsolationClass) {
    let scene = Scene::open(class, POLICY).await;
    let spec = belljar_types::SandboxSpec { network: Network::Filtered, ..scene.lab.spec() };
    let neighbour = scene.lab.create(class, &spec).await.unwrap();
    let theirs = scene.lab.host.record(&spec.id).await.unwrap().unwrap().guest_address;
    neighbour.guest.start(&ProcessSpec::new(["/usr/bin/python3", "-c", SERVE])).await.unwrap();
    let run = async |script: &str| belljar_testkit::run(&*neighbour.guest, &["/bin/sh", "-c", script]).await.text();
    run("while ! test -e /tmp/ready; do sleep 0.05; done").await;

    let gateway = Netns::open(scene.lab.host.gateway().netns_path()).unwrap();
    // Any port: the one that tried the other class before may still listen.
    let listener = gateway.run(|| std::net::TcpListener::bind("0.0.0.0:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::Relaxed);
            let _gone = stream.write_all(b"hello");
        }
    });

    let ways = [format!("get('{theirs}', 8080)"), format!("socket.create_connection((gateway(), {port})).recv(1) or stopped()")];
    for way in &ways {
        assert!(!scene.gets_through(way).await, "{class}: {way}");
    }
    assert!(!scene.gets_through("get(gateway(), 15001)").await, "{class}: the proxy is no server");
    assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}");
    assert_eq!((taken.load(Ordering::Relaxed), run("ls /tmp").await.contains("reached")), (0, false), "{class}");

    let bare = Unguarded::begin(&scene).await;
    for way in &ways {
        assert!(scene.gets_through(way).await, "{class}: the control did not get through: {way}");
    }
    drop(bare);
    assert_eq!((taken.load(Ordering::Relaxed), run("ls /tmp").await.contains("reached")), (1, true), "{class}: the control");
    neighbour.destroy().await;
    scene.close().await;
}
