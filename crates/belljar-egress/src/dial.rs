//! The connection to the outside. A name is resolved here and nowhere else, once; each address is judged, and what is dialled is what was judged.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use belljar_policy::{Compiled, Destination, HostName, Reason, Request, decide};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::uplink::Uplink;
use crate::way::Outside;

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
    #[error("could not be resolved: {0}")]
    Unresolved(io::Error),
    #[error("has no address")]
    Nowhere,
    #[error("has the address {address}, which is {what} and which no rule opens")]
    Closed { address: IpAddr, what: String },
    #[error("could not be reached: {0}")]
    Unreachable(io::Error),
}

/// Resolves, judges, connects.
pub(crate) async fn dial(outside: &Outside, policy: &Compiled, to: &To, port: u16) -> Result<TcpStream, NoConnection> {
    let addresses: Vec<IpAddr> = match to {
        To::Address(address) => vec![*address],
        To::Name(name) => {
            outside.resolver.addresses(&outside.uplink, name).await.map_err(NoConnection::Unresolved)?.into_iter().map(IpAddr::V4).collect()
        }
    };
    let mut failure = NoConnection::Nowhere;
    for address in addresses.into_iter().take(MOST_ADDRESSES) {
        if let Some(what) = objection(&outside.uplink, policy, address, port).await {
            failure = NoConnection::Closed { address, what };
            continue;
        }
        match timeout(PATIENCE, outside.uplink.connect((address, port).into())).await {
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
async fn objection(uplink: &Uplink, policy: &Compiled, address: IpAddr, port: u16) -> Option<String> {
    if let Some(what) = policy.closed(address) {
        return Some(what.to_owned());
    }
    let verdict = decide(policy, &Request::connection(Destination::Address(address), port));
    if !verdict.allow && verdict.reason == Reason::Rule {
        return Some(verdict.to_string());
    }
    let own = !policy.reaches(address) && is_own(uplink, address).await.unwrap_or(true);
    own.then(|| "this machine's own".to_owned())
}

/// Whether packets to this address would stay on this machine: the kernel then takes it for the sender's as well. No packet is sent.
async fn is_own(uplink: &Uplink, address: IpAddr) -> io::Result<bool> {
    match uplink.datagrams((address, 9).into()).await {
        Ok(socket) => Ok(socket.local_addr()?.ip() == address),
        // Where there is no way, there is nobody of ours.
        Err(_) => Ok(false),
    }
}
