//! Frames of the attacker's own making, straight onto the cable: what a sandbox could send whose kernel or whose root were its own.

use std::process::Command;

use belljar_types::IsolationClass;

use crate::internet::ALLOWED;
use crate::scene::{EVERYTHING, Scene};

/// On the host, in the namespace of the slot: sends one frame and waits for an answer. Ends with 0 if one came and with 3 if none did.
const SEND: &str = r"
import socket, struct, sys
gateway, source, kind = bytes.fromhex(sys.argv[1].replace(':', '')), sys.argv[2], sys.argv[3]
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(('eth0', 0)); s.settimeout(1.5)
mine = s.getsockname()[4]
def checksum(data):
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data)); total = (total >> 16) + (total & 0xffff); return ~(total + (total >> 16)) & 0xffff
def ip(protocol, to, payload):
    head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(payload), 7, 0, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(to))
    return b'\x08\x00' + head[:10] + struct.pack('>H', checksum(head)) + head[12:] + payload
def udp(port, data): return struct.pack('>HHHH', 40000, port, 8 + len(data), 0) + data
name = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07allowed\x04test\x00\x00\x01\x00\x01'
frames = {
    'question': ip(17, '8.8.8.8', udp(53, name)),
    'udp': ip(17, '203.0.113.10', udp(123, b'x')),
    'quic': ip(17, '203.0.113.10', udp(443, b'x')),
    'ping': ip(1, '203.0.113.10', b'\x08\x00\xf7\xff\x00\x00\x00\x00'),
    'gre': ip(47, '203.0.113.10', b'\x00\x00\x08\x00'),
    'six': b'\x86\xdd\x60\x00\x00\x00\x00\x08\x3a\x40' + bytes(15) + b'\x01' + bytes(15) + b'\x02' + b'\x80\x00\x00\x00\x00\x00\x00\x00',
    'arp': b'\x08\x06\x00\x01\x08\x00\x06\x04\x00\x02' + mine + socket.inet_aton('203.0.113.1') + gateway + socket.inet_aton(source),
}
s.send(gateway + mine + frames[kind])
try:
    while True:
        answer = s.recv(4096)
        if answer[:6] == mine and answer[12:14] == b'\x08\x00' and answer[23] == frames[kind][11]: sys.exit(0)
except TimeoutError: sys.exit(3)
";

pub(crate) async fn frames_of_ones_own_get_no_further(class: IsolationClass) {
    let scene = Scene::open(class, EVERYTHING).await;
    // Root inside cannot even make them.
    let raw = "import subprocess, sys; sys.exit(subprocess.run(['sudo', 'python3', '-c', 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)']).returncode)";
    assert_eq!(scene.python(raw).await.code(), 1, "{class}: root inside has no raw frames");
    let record = scene.lab.host.record(scene.id()).await.unwrap().unwrap();
    let gateway = scene.lab.host.gateway().netns_path().to_owned();
    let slot = gateway.with_file_name(record.slot.to_string());
    let within = |netns: &std::path::Path, words: &[&str]| {
        let output = Command::new("nsenter").arg(format!("--net={}", netns.display())).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
    };
    let (_, link) = within(&gateway, &["ip", "-o", "link", "show", &format!("bjf{}", record.slot)]);
    let mac = link.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{link}")).to_owned();
    let guest = record.guest_address.to_string();
    let send = |source: &str, kind: &str| {
        let (code, said) = within(&slot, &["python3", "-c", SEND, &mac, source, kind]);
        match code {
            Some(0) => true,
            Some(3) => false,
            _ => panic!("{class} {kind}: {said}"),
        }
    };
    assert!(send(&guest, "question"), "{class}: the control: a frame of one's own is answered where everybody's is");
    for kind in ["udp", "quic", "ping", "gre", "six", "arp"] {
        assert!(!send(&guest, kind), "{class}: {kind}");
    }
    for borrowed in ["100.64.0.2", "100.64.255.6", ALLOWED, "203.0.113.1", "127.0.0.1"] {
        assert!(borrowed == guest || !send(borrowed, "question"), "{class}: as {borrowed}");
    }
    assert_eq!(scene.internet.seen(), Vec::<String>::new(), "{class}: nobody outside got anything");
    assert!(scene.gets_through("get('allowed.test')").await, "{class}: the gateway's cable is as it was");
    scene.close().await;
}
