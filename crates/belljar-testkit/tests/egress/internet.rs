//! An internet in a namespace: servers on public addresses, cloud metadata, a name server; and a log of everything that reaches it.

pub(crate) mod pages;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use belljar_linux::netns::Netns;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream};

use crate::registries;

pub(crate) const ALLOWED: &str = "203.0.113.10";
pub(crate) const EVIL: &str = "203.0.113.66";
pub(crate) const NAMES: &str = "203.0.113.53";
/// A resolver that everybody knows.
pub(crate) const RESOLVER: &str = "8.8.8.8";
const METADATA: &str = "169.254.169.254";
const PRIVATE: &str = "10.1.2.3";

/// What got there, one line each.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) struct Internet {
    /// Where sockets to it have to be made.
    pub(crate) uplink: PathBuf,
    pub(crate) log: Log,
    directory: PathBuf,
}

impl Internet {
    /// Two namespaces with a cable between them: the node's side, and the internet's.
    pub(crate) fn open(tag: &str) -> Self {
        let directory = PathBuf::from(format!("/run/belljar-internet-{}-{tag}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (uplink, outside) = (directory.join("uplink"), directory.join("outside"));
        let here = Netns::create(&uplink).unwrap();
        let there = Netns::create(&outside).unwrap();
        let ip = |netns: &PathBuf, words: &str| {
            let status = Command::new("nsenter").arg(format!("--net={}", netns.display())).arg("ip").args(words.split(' ')).status();
            assert!(status.unwrap().success(), "ip {words}");
        };
        ip(&uplink, "link set lo up");
        ip(&outside, "link set lo up");
        // A cable is made in one namespace, and its other end is moved by way of a process that is in the other.
        let mut holder = Command::new("nsenter").arg(format!("--net={}", outside.display())).args(["sleep", "60"]).spawn().unwrap();
        while std::fs::read_link(format!("/proc/{}/ns/net", holder.id())).ok() == std::fs::read_link("/proc/self/ns/net").ok() {
            std::thread::yield_now();
        }
        ip(&uplink, &format!("link add near type veth peer name far netns {}", holder.id()));
        holder.kill().unwrap();
        holder.wait().unwrap();
        ip(&uplink, "addr add 203.0.113.1/24 dev near");
        ip(&uplink, "link set near up");
        ip(&uplink, "route add default via 203.0.113.2");
        ip(&outside, "addr add 203.0.113.2/24 dev far");
        ip(&outside, "link set far up");
        for address in [ALLOWED, EVIL, NAMES, METADATA, PRIVATE, RESOLVER] {
            ip(&outside, &format!("addr add {address}/32 dev lo"));
        }
        let log = Log::default();
        there
            .run(|| {
                for port in [22, 80, 443, 853, 5432, 8443] {
                    serve_tcp(port, Arc::clone(&log))?;
                }
                // One socket an address: an answer must come from the address that was asked, and not from the nearest one.
                for address in [ALLOWED, EVIL, NAMES, METADATA, PRIVATE, RESOLVER, "203.0.113.2"] {
                    for port in [53, 123, 443] {
                        serve_udp(address.parse().map_err(std::io::Error::other)?, port, Arc::clone(&log))?;
                    }
                }
                Ok(())
            })
            .unwrap();
        // What the node itself serves, to itself and to whoever is near.
        here.run(|| serve_tcp(80, Arc::clone(&log))).unwrap();
        Self { uplink, log, directory }
    }

    /// Whether something like this got there since the last look. It may come a moment after its sender has gone on, so it is waited for.
    pub(crate) async fn sees(&self, like: impl Fn(&str) -> bool) -> bool {
        for _ in 0..200 {
            if self.seen().iter().any(|line| like(line)) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }

    /// What got there since the last look.
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

impl Drop for Internet {
    fn drop(&mut self) {
        for name in ["uplink", "outside"] {
            let _ = Netns::forget(&self.directory.join(name));
        }
        let _ = std::fs::remove_dir(&self.directory);
    }
}

fn serve_tcp(port: u16, log: Log) -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    let tls = (port == 443 || port == 8443).then(tls_config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (log, tls) = (Arc::clone(&log), tls.clone());
            std::thread::spawn(move || {
                let at = stream.local_addr().map(|at| at.to_string()).unwrap_or_default();
                log.lock().unwrap().push(format!("tcp {at}"));
                let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
                let _ = stream.set_nodelay(true);
                match tls {
                    Some(config) => answer_tls(stream, config, &log, &at),
                    None => drop(answer(stream, &log, &at)),
                }
            });
        }
    });
    Ok(())
}

/// Whom the node trusts: the internet's own authority.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    })
}

/// One certificate for all but `bad.test`, which nobody vouches for.
pub(crate) fn tls_config() -> Arc<ServerConfig> {
    let names = ["allowed.test", "evil.test", "cdn.test", "api.test", "*.registry.test"].map(str::to_owned).to_vec();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(names).unwrap();
    // Not the authority's name, which it would have otherwise: OpenSSL takes such a certificate for one that signs itself.
    params.distinguished_name.push(DnType::CommonName, "a site");
    let leaf = params.signed_by(&key, &authority().issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap())
}

pub(crate) fn answer_tls(mut stream: TcpStream, config: Arc<ServerConfig>, log: &Log, at: &str) {
    let mut connection = ServerConnection::new(config).unwrap();
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            return;
        }
    }
    log.lock().unwrap().push(format!("tls {at} {}", connection.server_name().unwrap_or("-")));
    let _ = answer(Stream::new(&mut connection, &mut stream), log, at);
}

/// Enough of HTTP: writes down the request and says hello; `/big` never ends.
fn answer(mut stream: impl Read + Write, log: &Log, at: &str) -> std::io::Result<()> {
    loop {
        let (mut lines, mut length) = (Vec::new(), 0);
        {
            let mut reader = BufReader::with_capacity(1, &mut stream);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                let line = line.trim_end().to_owned();
                if let Some(digits) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = digits.parse().unwrap_or(0);
                }
                if line.is_empty() {
                    break;
                }
                lines.push(line);
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        log.lock().unwrap().push(format!("http {at} {} | {}", lines.join(" | "), String::from_utf8_lossy(&body)));
        if lines.first().is_some_and(|line| line.contains(" /big ")) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")?;
            while stream.write_all(&[b'x'; 16384]).and_then(|()| stream.flush()).is_ok() {}
            log.lock().unwrap().push(format!("cut {at}"));
            return Ok(());
        }
        if pages::is_second(&lines) {
            return pages::second(&mut stream, log, at);
        }
        if pages::is_websocket(&lines) {
            return pages::give_back(&mut stream, log, at);
        }
        if registries::answer(&mut stream, &lines)? || pages::answer(&mut stream, &lines)? {
            continue;
        }
        let text = format!("hello from {at}\n");
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Echo: {}\r\n\r\n{text}",
            text.len(),
            lines.join(" | ").replace(|c: char| c.is_control(), " ")
        )?;
        stream.flush()?;
    }
}

fn serve_udp(address: Ipv4Addr, port: u16, log: Log) -> std::io::Result<()> {
    let socket = UdpSocket::bind((address, port))?;
    std::thread::spawn(move || {
        let mut bytes = [0; 1500];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            if port == 53 {
                answer_name(&socket, from, &bytes[..count], &log);
            } else {
                log.lock().unwrap().push(format!("udp {port}"));
                let _ = socket.send_to(b"pong", from);
            }
        }
    });
    Ok(())
}

fn answer_name(socket: &UdpSocket, from: SocketAddr, question: &[u8], log: &Log) {
    let (mut at, mut labels) = (12, Vec::new());
    while let Some(length) = question.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0) {
        labels.push(String::from_utf8_lossy(question.get(at + 1..at + 1 + length).unwrap_or_default()).into_owned());
        at += 1 + length;
    }
    let name = labels.join(".");
    log.lock().unwrap().push(format!("dns {name}"));
    let addresses: &[&str] = match name.as_str() {
        "allowed.test" | "cdn.test" | "api.test" | "bad.test" => &[ALLOWED],
        "evil.test"
        | "evilallowed.test"
        | "allowed.test.evil.test"
        | "allowed.evil.test"
        | "xn--llowed-2nf.test"
        | "wild.test"
        | "awild.test" => &[EVIL],
        "rebind.test" => &[METADATA],
        // Public when somebody looks, private when somebody comes.
        "turning.test" if !log.lock().unwrap().iter().any(|line| line == "turned") => {
            log.lock().unwrap().push("turned".to_owned());
            &[ALLOWED]
        }
        "turning.test" => &[METADATA],
        "mixed.test" => &[METADATA, PRIVATE, ALLOWED],
        wild if wild.ends_with(".wild.test") || registries::is_one(wild) => &[ALLOWED],
        _ => &[],
    };
    let mut answer = question[..at + 5].to_vec();
    answer[2] = 0x81;
    answer[3] = if addresses.is_empty() { 0x83 } else { 0x80 };
    answer[6..12].copy_from_slice(&[0, u8::try_from(addresses.len()).unwrap(), 0, 0, 0, 0]);
    for address in addresses {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]);
        answer.extend(address.parse::<Ipv4Addr>().unwrap().octets());
    }
    let _ = socket.send_to(&answer, from);
}
