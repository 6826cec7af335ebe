//! Open slots, on a machine and an internet that are both namespaces of this test: out to public addresses, and to nothing else.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use belljar_host::{Reservation, Slot};
use belljar_linux::netns::{Links, Netns, VethEnd, set_sysctl};
use belljar_types::{IsolationClass, Network};

use crate::network::{heard, inside, listen, reaches, reaches_in_time};
use crate::scene::{Scene, spec};

const MACHINE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const INTERNET: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// Azure's, which is no private address.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);

/// Two namespaces with a cable between them, gone when dropped.
struct World {
    _directory: tempfile::TempDir,
    machine: PathBuf,
    internet: PathBuf,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (machine, internet) = (directory.path().join("machine"), directory.path().join("internet"));
        let (here, there) = (Netns::create(&machine).unwrap(), Netns::create(&internet).unwrap());
        inside(&machine, || {
            // New namespaces copy this from the real machine.
            set_sysctl("ipv4/ip_forward", "0")?;
            let links = Links::open()?;
            let largest_packet = VethEnd::ORDINARY_PACKET;
            let there = VethEnd { name: "lan", netns: there.as_fd(), largest_packet };
            links.create_veth(VethEnd { name: "wan", netns: here.as_fd(), largest_packet }, there)?;
            links.add_address(links.index("wan")?, MACHINE, 24)?;
            links.set_up(links.index("lo")?, true)?;
            links.set_up(links.index("wan")?, true)
        });
        inside(&internet, || {
            let links = Links::open()?;
            links.add_address(links.index("lan")?, INTERNET, 24)?;
            for address in [METADATA, WIRE_SERVER, PRIVATE].into_iter().chain(nameservers()) {
                links.add_address(links.index("lo")?, address, 32)?;
            }
            links.set_up(links.index("lo")?, true)?;
            links.set_up(links.index("lan")?, true)
        });
        inside(&machine, || Links::open()?.set_default_route(INTERNET));
        Self { _directory: directory, machine, internet }
    }

    /// Runs a test whose every thread is on the fake machine.
    fn run(&self, test: impl Future<Output = ()> + Send) {
        inside(&self.machine, || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
            runtime.block_on(test);
            Ok(())
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        Netns::forget(&self.machine).unwrap();
        Netns::forget(&self.internet).unwrap();
    }
}

/// What the real machine's file says, since the host reads it too.
fn nameservers() -> Vec<Ipv4Addr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let named = text.lines().filter_map(|line| line.strip_prefix("nameserver ")?.trim().parse::<Ipv4Addr>().ok());
    named.filter(|address| !address.is_loopback()).collect()
}

async fn open_slot(scene: &Scene) -> Reservation {
    let mut spec = spec();
    spec.network = Network::Open;
    scene.host.reserve(IsolationClass::Container, &spec).await.unwrap()
}

fn forwarding() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap_or_default().trim().to_owned()
}

#[test]
fn an_open_slot_reaches_public_addresses_and_nothing_else() {
    let world = World::new();
    let (machine, internet) = (world.machine.clone(), world.internet.clone());
    world.run(async {
        let scene = Scene::with(|config| config.open_slots = 1).await;
        let (sandbox, neighbour) = (open_slot(&scene).await, open_slot(&scene).await);
        let closed = scene.host.reserve(IsolationClass::Container, &spec()).await.unwrap();
        let (_public, port) = listen(&internet);
        let (_service, service_port) = listen(&machine);
        let (_server, neighbour_port) = listen(&neighbour.slot.netns);
        let (_gateway, gateway_port) = listen(scene.host.gateway().netns_path());
        let from = &sandbox.slot.netns;

        assert!(reaches_in_time(from, INTERNET, port), "no way out to a public address");
        for address in [METADATA, WIRE_SERVER, PRIVATE] {
            assert!(reaches_in_time(&machine, address, port), "control: {address} is there");
            assert!(!reaches(from, address, port), "reached {address}");
        }
        assert!(reaches_in_time(&internet, MACHINE, service_port), "control: the machine's own service is there");
        assert!(!reaches(from, MACHINE, service_port), "reached the machine's own service");
        for uplink in inside(&machine, || Links::open()?.addresses()) {
            assert!(!reaches(from, uplink, service_port), "reached the machine's own service at {uplink}");
        }
        assert!(!reaches(from, neighbour.slot.guest_address, neighbour_port), "reached a neighbour");
        assert!(!reaches(from, sandbox.slot.gateway_address, gateway_port), "reached the gateway");
        assert!(!reaches(&internet, sandbox.slot.guest_address, neighbour_port), "reached from outside");
        assert!(!reaches(&closed.slot.netns, INTERNET, port), "a closed slot got out");

        spoofed_packets_stay_inside(&internet, &sandbox.slot, neighbour.slot.guest_address);
        names_can_be_asked_for(&internet, &sandbox.slot, port);
        for reserved in [&sandbox, &neighbour, &closed] {
            scene.host.release(&reserved.record.id).await.unwrap();
        }
        scene.close().await;
        assert_eq!(forwarding(), "0");
        let tables = std::process::Command::new("nft").args(["list", "tables"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&tables.stdout), "");
    });
}

#[test]
fn forwarding_is_left_on_for_as_long_as_another_instance_needs_it() {
    let world = World::new();
    world.run(async {
        assert_eq!(forwarding(), "0");
        let first = Scene::with(|config| config.open_slots = 1).await;
        let second = Scene::with(|config| config.open_slots = 1).await;
        first.close().await;
        assert_eq!(forwarding(), "1");
        second.close().await;
        assert_eq!(forwarding(), "0");
    });
}

fn spoofed_packets_stay_inside(internet: &std::path::Path, slot: &Slot, borrowed: Ipv4Addr) {
    let ear = inside(internet, || UdpSocket::bind((INTERNET, 0)));
    ear.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    let target = ear.local_addr().unwrap();
    let own = heard(&ear, || inside(&slot.netns, || UdpSocket::bind((slot.guest_address, 0))?.send_to(b"it is me", target)));
    assert_eq!(own, Some(MACHINE.into()), "control: a packet with its own address gets out, as the machine's");
    inside(&slot.netns, || {
        let links = Links::open()?;
        links.add_address(links.index(slot.interface)?, borrowed, 32)?;
        UdpSocket::bind((borrowed, 0))?.send_to(b"it is me", target)
    });
    assert!(ear.recv_from(&mut [0; 16]).is_err(), "a packet with a borrowed address got out");
}

fn names_can_be_asked_for(internet: &std::path::Path, slot: &Slot, other_port: u16) {
    assert_eq!(slot.nameservers.len(), nameservers().len());
    for nameserver in nameservers() {
        let _answers = inside(internet, || TcpListener::bind((nameserver, 53)));
        assert!(reaches_in_time(&slot.netns, nameserver, 53), "the machine's nameserver cannot be asked");
        let is_private = nameserver.is_private() || nameserver.is_link_local();
        assert!(!is_private || !reaches(&slot.netns, nameserver, other_port), "reached another port of the nameserver");
    }
}
