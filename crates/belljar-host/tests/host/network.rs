//! Closed slots: the host gets in, nothing gets out. Every refusal is shown to be the rules' doing by taking them away.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use belljar_host::{Reservation, Slot};
use belljar_linux::netns::{Links, Netns, close_connections, forget_connections, set_sysctl};
use belljar_types::IsolationClass;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scene::{Scene, spec};

const SOON: Duration = Duration::from_millis(400);

pub(crate) fn inside<T: Send>(netns: &Path, work: impl FnOnce() -> std::io::Result<T> + Send) -> T {
    Netns::open(netns).unwrap().run(work).unwrap()
}

pub(crate) fn listen(netns: &Path) -> (TcpListener, u16) {
    let listener = inside(netns, || TcpListener::bind("0.0.0.0:0"));
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

pub(crate) fn reaches(netns: &Path, address: Ipv4Addr, port: u16) -> bool {
    inside(netns, || Ok(TcpStream::connect_timeout(&SocketAddr::V4(SocketAddrV4::new(address, port)), SOON).is_ok()))
}

/// For what must be reached, however busy the machine is.
pub(crate) fn reaches_in_time(netns: &Path, address: Ipv4Addr, port: u16) -> bool {
    (0..25).any(|_| reaches(netns, address, port))
}

pub(crate) fn take_rules_away(netns: &Path) {
    let status = inside(netns, || std::process::Command::new("nft").args(["flush", "ruleset"]).status());
    assert!(status.success());
}

/// Speaks until it is heard, and returns from whom; then waits for silence.
pub(crate) fn heard<T>(ear: &UdpSocket, speak: impl Fn() -> T) -> Option<std::net::IpAddr> {
    let sender = (0..25).find_map(|_| {
        speak();
        ear.recv_from(&mut [0; 16]).ok()
    });
    while ear.recv_from(&mut [0; 16]).is_ok() {}
    Some(sender?.1.ip())
}

async fn two(scene: &Scene) -> (Reservation, Reservation) {
    let first = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
    let second = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
    (first, second)
}

async fn release(scene: Scene, reservations: &[&Reservation]) {
    for reserved in reservations {
        scene.host.release(&reserved.record.id).await.unwrap();
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_reaches_a_listener_in_a_slot() {
    let scene = Scene::new().await;
    let reserved = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
    let (listener, port) = listen(&reserved.slot.netns);
    let echo = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        peer.ip()
    });
    let mut stream = scene.host.gateway().connect((reserved.slot.guest_address, port).into()).await.unwrap();
    assert!(stream.nodelay().unwrap());
    let room = rustix::net::sockopt::socket_recv_buffer_size(&stream).unwrap();
    assert!(room >= 1 << 20, "with room for {room} bytes gVisor waits for delayed acknowledgements");
    stream.write_all(b"hello").await.unwrap();
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"hello");
    assert_eq!(echo.join().unwrap(), reserved.slot.gateway_address);
    release(scene, &[&reserved]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_slot_reaches_neither_the_gateway_nor_a_neighbour() {
    let scene = Scene::new().await;
    let (attacker, neighbour) = two(&scene).await;
    let gateway = scene.host.gateway().netns_path().to_owned();
    let (_gateway_listener, gateway_port) = listen(&gateway);
    let (_neighbour_listener, neighbour_port) = listen(&neighbour.slot.netns);
    let from = &attacker.slot.netns;
    // As if the sandbox could set its own routes, which a user-space network stack can.
    for slot in [&attacker.slot, &neighbour.slot] {
        inside(&slot.netns, || Links::open()?.set_default_route(slot.gateway_address));
    }
    inside(&gateway, || set_sysctl("ipv4/ip_forward", "1"));
    let attempts = [
        ("its gateway", attacker.slot.gateway_address, gateway_port),
        ("the neighbour's gateway", neighbour.slot.gateway_address, gateway_port),
        ("the neighbour", neighbour.slot.guest_address, neighbour_port),
    ];
    for (what, address, port) in attempts {
        assert!(!reaches(from, address, port), "reached {what}");
    }
    take_rules_away(&gateway);
    for (what, address, port) in attempts {
        assert!(reaches_in_time(from, address, port), "control: cannot reach {what} even without rules");
    }
    release(scene, &[&attacker, &neighbour]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_borrowed_source_address_gets_nowhere() {
    let scene = Scene::new().await;
    let (attacker, neighbour) = two(&scene).await;
    let gateway = scene.host.gateway().netns_path().to_owned();
    let ear = inside(&gateway, || UdpSocket::bind("0.0.0.0:0"));
    ear.set_read_timeout(Some(SOON)).unwrap();
    let target = SocketAddrV4::new(attacker.slot.gateway_address, ear.local_addr().unwrap().port());
    let borrowed = neighbour.slot.guest_address;
    let send = |slot: &Slot| {
        inside(&slot.netns, || {
            let links = Links::open()?;
            links.add_address(links.index(slot.interface)?, borrowed, 32)?;
            UdpSocket::bind((borrowed, 0))?.send_to(b"it is me", target)
        });
    };
    // Nothing but the check of source addresses stands in the way here.
    inside(&gateway, || {
        let rule = ["add", "rule", "inet", "belljar", "input", "udp", "dport", &target.port().to_string(), "accept"].map(str::to_owned);
        std::process::Command::new("nft").args(rule).status()
    });
    // The gateway's hardware address is known before, so that it is not the question for it that fails.
    let own = heard(&ear, || inside(&attacker.slot.netns, || UdpSocket::bind("0.0.0.0:0")?.send_to(b"hello", target)));
    assert_eq!(own, Some(attacker.slot.guest_address.into()), "a packet with its own address comes through");
    send(&attacker.slot);
    assert!(ear.recv_from(&mut [0; 16]).is_err(), "a packet with the neighbour's address came through");
    take_rules_away(&gateway);
    inside(&gateway, || {
        set_sysctl("ipv4/conf/all/rp_filter", "0")?;
        set_sysctl(&format!("ipv4/conf/bjc{}/rp_filter", attacker.slot.number), "0")
    });
    let sender = heard(&ear, || send(&attacker.slot));
    assert_eq!(sender, Some(borrowed.into()), "control: without rules the packet comes through");
    release(scene, &[&attacker, &neighbour]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_used_again_carries_nothing_over() {
    let scene = Scene::new().await;
    let first = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
    let (listener, port) = listen(&first.slot.netns);
    let ours = scene.host.gateway().connect((first.slot.guest_address, port).into()).await.unwrap();
    let (theirs, _) = listener.accept().unwrap();
    // The side that closes first keeps the connection in memory for a minute.
    drop(theirs);
    drop(ours);
    drop(listener);
    let identity = inside_inode(&first.slot);
    let tracked = inside(&first.slot.netns, || std::fs::read_to_string("/proc/thread-self/net/tcp")).lines().count();
    assert!(tracked > 1, "control: the old connection is still in memory");
    // gVisor takes the address away.
    inside(&first.slot.netns, || {
        let links = Links::open()?;
        links.flush_addresses(links.index(first.slot.interface)?)
    });
    // A maker that was killed half-way has not given the host's end its own.
    let gateway = scene.host.gateway().netns_path().to_owned();
    let host_end = format!("bjc{}", first.slot.number);
    inside(&gateway, || {
        let links = Links::open()?;
        links.flush_addresses(links.index(&host_end)?)
    });
    assert!(!inside(&gateway, || Links::open()?.addresses()).contains(&first.slot.gateway_address), "control: the address is gone");
    scene.host.release(&first.record.id).await.unwrap();
    scene.host.settle().await;
    let second = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
    assert_eq!((second.slot.number, inside_inode(&second.slot)), (first.slot.number, identity), "the slot was not used again");
    assert_eq!(inside(&second.slot.netns, close_connections), 0, "old sockets are still there");
    assert_eq!(inside(&gateway, || forget_connections(second.slot.guest_address)), 0, "old connections are still tracked");
    let addresses = inside(&second.slot.netns, || Links::open()?.addresses());
    assert!(addresses.contains(&second.slot.guest_address), "{addresses:?}");
    let (_listener, port) = listen(&second.slot.netns);
    scene.host.gateway().connect((second.slot.guest_address, port).into()).await.unwrap();
    release(scene, &[&second]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_in_which_something_still_runs_is_never_used_again() {
    let scene = Scene::new().await;
    let before = scene.counts().await;
    let first = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
    let identity = inside_inode(&first.slot);
    let mut stranger = inside(&first.slot.netns, || std::process::Command::new("sleep").arg("100").spawn());
    scene.host.release(&first.record.id).await.unwrap();
    assert_eq!(scene.counts().await, before);
    for _ in 0..3 {
        let next = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
        assert_ne!(inside_inode(&next.slot), identity);
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    for record in scene.host.records(IsolationClass::Container).await.unwrap() {
        scene.host.release(&record.id).await.unwrap();
    }
    scene.close().await;
}

fn inside_inode(slot: &Slot) -> u64 {
    Netns::open(&slot.netns).unwrap().inode().unwrap()
}
