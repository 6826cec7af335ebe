//! Frames of the attacker's own making, straight onto the cable: what a sandbox could send whose kernel or whose root were its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_types::{IsolationClass, Network};

use crate::internet::ALLOWED;
use crate::scene::{EVERYTHING, Scene};
use crate::unguarded::{Unguarded, counted, outside, within};

/// On the host, in the namespace of the slot: sends one frame and waits for an answer. Ends with 0 if one came and with 3 if none did.
const SEND: &str = r"
import socket, struct, sys
gateway, source, kind = bytes.fromhex(sys.argv[1].replace(':', '')), sys.argv[2], sys.argv[3]
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('eth0', 0)); s.settimeout(0.4)
mine = s.getsockname()[4]
if len(sys.argv) > 4: mine = bytes.fromhex(sys.argv[4].replace(':', ''))
def checksum(data):
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data)); total = (total >> 16) + (total & 0xffff); return ~(total + (total >> 16)) & 0xffff
def ip(protocol, to, payload):
    head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), 7, 0, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(to))
    return b'\x08\x00' + head[:10] + struct.pack('>H', checksum(head)) + head[12:] + payload
def udp(port, data): return struct.pack('>HHHH', 40000, port, 8 + len(data), 0) + data
def six(payload):
    near, all_nodes = socket.inet_pton(socket.AF_INET6, 'fe80::dead'), socket.inet_pton(socket.AF_INET6, 'ff02::1')
    sum_of = near + all_nodes + struct.pack('>II', len(payload), 58) + payload
    payload = payload[:2] + struct.pack('>H', checksum(sum_of)) + payload[4:]
    return b'\x86\xdd' + struct.pack('>IHBB', 0x60000000, len(payload), 58, 255) + near + all_nodes + payload
name = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07allowed\x04test\x00\x00\x01\x00\x01'
frames = {
    'question': ip(17, '8.8.8.8', udp(53, name)),
    'udp': ip(17, '203.0.113.10', udp(123, b'x')),
    'quic': ip(17, '203.0.113.10', udp(443, b'x')),
    'ping': ip(1, '203.0.113.10', b'\x08\x00\xf7\xff\x00\x00\x00\x00'),
    'gre': ip(47, '203.0.113.10', b'\x00\x00\x08\x00'),
    'six': six(b'\x80\x00\x00\x00\x00\x00\x00\x00'),
    'advertisement': six(b'\x86\x00\x00\x00\x40\x00\x07\x08' + bytes(8)),
    'arp': b'\x08\x06\x00\x01\x08\x00\x06\x04\x00\x02' + mine + socket.inet_aton('203.0.113.1') + gateway + socket.inet_aton(source),
}
to = b'\x33\x33\x00\x00\x00\x01' if kind in ('six', 'advertisement') else gateway
s.send(to + mine + frames[kind])
try:
    while True:
        answer = s.recv(4096)
        if answer[:6] == mine and answer[12:14] == b'\x08\x00' and answer[23] == frames[kind][11]: sys.exit(0)
except TimeoutError: sys.exit(3)
";

/// Where frames are sent from, and by whom.
struct Cable {
    slot: PathBuf,
    gateway: PathBuf,
    outside: PathBuf,
    mac: String,
}

impl Cable {
    async fn of(scene: &Scene) -> Self {
        let record = scene.lab.host.record(scene.id()).await.unwrap().unwrap();
        let gateway = scene.lab.host.gateway().netns_path().to_owned();
        let link = within(&gateway, &["ip", "-o", "link", "show", &format!("bjf{}", record.slot)]);
        let mac = link.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{link}")).to_owned();
        Self { slot: gateway.with_file_name(record.slot.to_string()), gateway, outside: outside(scene), mac }
    }

    /// Whether an answer to a frame came.
    fn send(&self, source: &str, kind: &str, sender: Option<&str>) -> bool {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.slot.display())).args(["python3", "-c", SEND, &self.mac, source, kind]).args(sender);
        let output = command.output().unwrap();
        match output.status.code() {
            Some(0) => true,
            Some(3) => false,
            _ => panic!("{kind}: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// What the internet's kernel and the gateway's saw of what no server is told of.
    fn strays(&self) -> [u64; 4] {
        let count = |netns: &Path, group, name| counted(netns, group, name);
        [
            count(&self.outside, "Icmp", "InEchos"),
            count(&self.outside, "Ip", "InUnknownProtos"),
            count(&self.gateway, "", "Icmp6InEchos"),
            count(&self.gateway, "", "Icmp6InRouterAdvertisements"),
        ]
    }
}

/// Which of [`Cable::strays`] a frame shows in; others show in the internet's log.
const STRAYS: [(&str, usize); 4] = [("ping", 0), ("gre", 1), ("six", 2), ("advertisement", 3)];

pub(crate) async fn frames_of_ones_own_get_no_further(class: IsolationClass) {
    let scene = Scene::open(class, EVERYTHING).await;
    // Root inside cannot even make them.
    let raw = "import subprocess, sys; sys.exit(subprocess.run(['sudo', 'python3', '-c', 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)']).returncode)";
    assert_eq!(scene.python(raw).await.code(), 1, "{class}: root inside has no raw frames");
    let spec = belljar_types::SandboxSpec { network: Network::Filtered, ..scene.lab.spec() };
    let neighbour = scene.lab.create(class, &spec).await.unwrap();
    let theirs = scene.lab.host.record(&spec.id).await.unwrap().unwrap().guest_address.to_string();
    scene.egress().attach(&spec.id, &crate::scene::project(), EVERYTHING, crate::scene::free()).await.unwrap();
    let guest = scene.lab.host.record(scene.id()).await.unwrap().unwrap().guest_address.to_string();
    let cable = Cable::of(&scene).await;
    assert!(cable.send(&guest, "question", None), "{class}: the control: a frame of one's own is answered where everybody's is");
    let before = cable.strays();
    for kind in ["udp", "quic", "ping", "gre", "six", "advertisement", "arp"] {
        assert!(!cable.send(&guest, kind, None), "{class}: {kind}");
    }
    for (kind, sender) in [("question", None), ("udp", None), ("question", Some("02:00:00:00:00:07"))] {
        assert!(!cable.send(&theirs, kind, sender), "{class}: {kind} as a neighbour");
    }
    for borrowed in ["100.64.255.6", ALLOWED, "203.0.113.1", "127.0.0.1"] {
        assert!(!cable.send(borrowed, "question", None), "{class}: as {borrowed}");
    }
    let told = scene.egress().traffic(&spec.id).unwrap();
    assert_eq!((told.connections, told.refused), (0, 0), "{class}: a neighbour's policy was not used");
    assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: nobody outside got anything");
    assert_eq!(cable.strays(), before, "{class}: and no kernel saw anything");
    assert!(scene.gets_through("get('allowed.test')").await, "{class}: the gateway's cable is as it was");
    scene.internet.seen();

    // Without the rules, each of them gets there.
    let bare = Unguarded::begin(&scene).await;
    for kind in ["udp", "quic"] {
        assert!(cable.send(&guest, kind, None), "{class}: the control: {kind}");
        assert!(scene.internet.sees(|line| line.starts_with("udp ")).await, "{class}: the control: {kind}");
    }
    for (kind, at) in STRAYS {
        let before = cable.strays();
        cable.send(&guest, kind, None);
        assert!(cable.strays()[at] > before[at], "{class}: the control: {kind}: {before:?}");
    }
    for borrowed in [theirs.as_str(), "100.64.255.6"] {
        cable.send(borrowed, "udp", None);
        assert_eq!(scene.internet.seen(), ["udp 123"], "{class}: the control: as {borrowed}");
    }
    drop(bare);
    assert!(!cable.send(&guest, "udp", None), "{class}: the rules are there again");
    assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}");
    scene.egress().detach(&spec.id);
    neighbour.destroy().await;
    scene.close().await;
}
