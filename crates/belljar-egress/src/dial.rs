//! The connection to the outside. A name is resolved here and nowhere else, once; each address is judged, and what is dialled is what was judged.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use belljar_policy::{Compiled, Destination, HostName, Reason, Request, decide};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::dns::Resolver;

const PATIENCE: Duration = Duration::from_secs(10);
const MOST_ADDRESSES: usize = 4;

/// Where a connection is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    Name(HostName),
    Address(IpAddr),
}

impl To {
    pub(crate) fn destination(&self) -> Destination<'_> {
        match self {
            Self::Name(name) => Destination::Name(name),
            Self::Address(address) => Destination::Address(*address),
        }
    }
}

impl std::fmt::Display for To {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConnection {
    #[error("it could not be resolved: {0}")]
    Unresolved(io::Error),
    #[error("it has no address")]
    Nowhere,
    #[error("its address {address} is {what}, which no rule opens")]
    Closed { address: IpAddr, what: String },
    #[error("it could not be reached: {0}")]
    Unreachable(io::Error),
}

/// Resolves, judges, connects.
pub(crate) async fn dial(resolver: &Resolver, policy: &Compiled, to: &To, port: u16) -> Result<TcpStream, NoConnection> {
    let addresses: Vec<IpAddr> = match to {
        To::Address(address) => vec![*address],
        To::Name(name) => resolver.addresses(name).await.map_err(NoConnection::Unresolved)?.into_iter().map(IpAddr::V4).collect(),
    };
    let mut failure = NoConnection::Nowhere;
    for address in addresses.into_iter().take(MOST_ADDRESSES) {
        if let Some(what) = objection(policy, address, port).await {
            failure = NoConnection::Closed { address, what };
            continue;
        }
        match timeout(PATIENCE, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failure = NoConnection::Unreachable(error),
            Err(_) => failure = NoConnection::Unreachable(io::ErrorKind::TimedOut.into()),
        }
    }
    Err(failure)
}

/// What is wrong with an address, if anything: it is closed for all, denied by a rule, or this machine's own.
async fn objection(policy: &Compiled, address: IpAddr, port: u16) -> Option<String> {
    if let Some(what) = policy.closed(address) {
        return Some(what.to_owned());
    }
    let verdict = decide(policy, &Request::connection(Destination::Address(address), port));
    if !verdict.allow && verdict.reason == Reason::Rule {
        return Some(verdict.to_string());
    }
    let own = !policy.reaches(address) && is_own(address).await.unwrap_or(true);
    own.then(|| "this machine's own".to_owned())
}

/// Whether packets to this address would stay on this machine: the kernel then takes it for the sender's as well. No packet is sent.
async fn is_own(address: IpAddr) -> io::Result<bool> {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    match socket.connect((address, 9)).await {
        Ok(()) => Ok(socket.local_addr()?.ip() == address),
        // Where there is no way, there is nobody of ours.
        Err(_) => Ok(false),
    }
}
