//! Where every connection of every filtered sandbox arrives. Who it is, the firewall has made sure of; where it was going, the kernel remembers.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{ip_original_dst, set_socket_linger};
use tokio::net::{TcpListener, TcpStream};

use crate::EventKind;
use crate::book::stands_for_a_name;
use crate::dial::To;
use crate::entrance;
use crate::session::{Session, Sessions};
use crate::way::{Outside, Way};

/// The port of the gateway's address at which CONNECT and SOCKS5 are understood.
pub(crate) const EXPLICIT_PORT: u16 = 3128;

/// Takes connections for ever.
pub(crate) async fn serve(listener: TcpListener, sessions: Arc<Sessions>, outside: Arc<Outside>) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let IpAddr::V4(address) = from.ip() else { continue };
        let Some(session) = sessions.find(address) else {
            hang_up(stream.as_fd());
            continue;
        };
        let outside = Arc::clone(&outside);
        tokio::spawn(async move { receive(stream, session, outside).await });
    }
}

async fn receive(stream: TcpStream, session: Arc<Session>, outside: Arc<Outside>) {
    let (Ok(fuse), Ok(wanted)) = (Fuse::of(&stream), ip_original_dst(&stream)) else { return };
    let Some(_place) = session.connection() else {
        session.tell(
            EventKind::Denied,
            &wanted.ip().to_string(),
            wanted.port(),
            "network.limits.connections",
            "too many connections at one time",
        );
        return fuse.blow();
    };
    let _ = stream.set_nodelay(true);
    let (address, port) = (*wanted.ip(), wanted.port());
    if address == session.gateway_address && port == EXPLICIT_PORT {
        return entrance::explicit(stream, &fuse, &session, &outside).await;
    }
    let to = match session.name_of(address) {
        Some(name) => To::Name(name),
        None if stands_for_a_name(address) => {
            session.tell(
                EventKind::Denied,
                &address.to_string(),
                port,
                "network.default",
                "this address stands for no name any more; look the name up again",
            );
            return fuse.blow();
        }
        None => To::Address(address.into()),
    };
    let way = Way { session, outside, to, port };
    if !way.go(stream, &fuse).await {
        fuse.blow();
    }
}

/// Breaks a connection off so that its other end knows: a download that was cut must not look as if it were whole.
#[derive(Debug)]
pub(crate) struct Fuse {
    socket: OwnedFd,
}

impl Fuse {
    fn of(stream: &TcpStream) -> std::io::Result<Self> {
        Ok(Self { socket: stream.as_fd().try_clone_to_owned()? })
    }

    /// The connection is reset as soon as nobody holds it.
    pub(crate) fn blow(&self) {
        hang_up(self.socket.as_fd());
    }
}

fn hang_up(socket: std::os::fd::BorrowedFd<'_>) {
    let _ = set_socket_linger(socket, Some(Duration::ZERO));
}

/// An address and a port as a proxy's client writes them.
pub(crate) fn to_of(host: &[u8], port: u16) -> Option<(To, u16)> {
    let text = std::str::from_utf8(host).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some((To::Address(address), port));
    }
    belljar_policy::HostName::from_wire(host).map(|name| (To::Name(name), port))
}

/// `host:port`, with a host in brackets if it is an address of version 6.
pub(crate) fn authority(text: &str, default_port: Option<u16>) -> Option<(To, u16)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some((To::Address(address.ip()), address.port()));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            to_of(host.as_bytes(), port.parse().ok().filter(|port| *port != 0)?)
        }
        Some(_) => None,
        None => to_of(text.as_bytes(), default_port?),
    }
}
