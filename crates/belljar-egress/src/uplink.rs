//! Sockets to the outside: in this process's own network namespace, or in one that the operator set aside for what sandboxes do.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use belljar_linux::netns::Netns;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

/// From where the outside is reached.
#[derive(Debug, Default)]
pub(crate) struct Uplink {
    netns: Option<Netns>,
}

impl Uplink {
    pub(crate) fn new(netns: Option<Netns>) -> Self {
        Self { netns }
    }

    pub(crate) async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let make = || Ok(socket_with(family, SocketType::STREAM, flags, None)?);
        let socket = match &self.netns {
            Some(netns) => netns.run(make)?,
            None => make()?,
        };
        TcpSocket::from_std_stream(socket.into()).connect(to).await
    }

    /// A datagram socket that speaks to one address only; nothing is sent yet.
    pub(crate) async fn datagrams(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        let any: SocketAddr = if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let make = || {
            let socket = std::net::UdpSocket::bind(any)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = match &self.netns {
            Some(netns) => netns.run(make)?,
            None => make()?,
        };
        let socket = UdpSocket::from_std(socket)?;
        socket.connect(to).await?;
        Ok(socket)
    }
}
