//! Takes connections from the host and from nobody else.
//!
//! A port can be reached by programs inside the sandbox too, so everybody but the gateway is hung up on before a byte is read. A socket that the host
//! handed over can be reached by nobody inside. Those who may speak must prove themselves soon, and only so many may be trying at once.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use belljar_guest_line::AsyncStream;
use belljar_guest_protocol::gateway_of;
use belljar_linux::nearby;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};

use crate::agent::Agent;
use crate::boot::Listen;
use crate::{quiet, session};

const STRANGERS: usize = 16;
const CONNECTIONS: usize = 256;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How many there are of something; given back when dropped.
pub(crate) struct Counted(Rc<Cell<usize>>);

impl Counted {
    pub(crate) fn take(counter: &Rc<Cell<usize>>, limit: usize) -> Option<Self> {
        let count = counter.get();
        (count < limit).then(|| {
            counter.set(count + 1);
            Self(Rc::clone(counter))
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Where connections come in.
pub(crate) enum Door {
    Network(TcpListener),
    HandedOver(UnixListener),
}

impl Door {
    pub(crate) fn open(place: Listen) -> io::Result<Self> {
        match place {
            Listen::Network(address) => Ok(Self::Network(listen_alone(address)?)),
            Listen::Stdin => {
                let handed_over = std::os::unix::net::UnixListener::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
                // What programs find as their standard input must not be the agent's door.
                rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
                handed_over.set_nonblocking(true)?;
                Ok(Self::HandedOver(UnixListener::from_std(handed_over)?))
            }
        }
    }

    /// The next connection, or `None` if it was not the host's.
    async fn next(&self, agent: &Agent) -> io::Result<Option<Box<dyn AsyncStream>>> {
        match self {
            Self::HandedOver(listener) => {
                let (stream, _) = listener.accept().await?;
                // Without it, it is only slower.
                let _ = nearby::widen(&stream);
                Ok(Some(Box::new(stream)))
            }
            Self::Network(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Small answers must not wait for each other; without it they are only slower.
                let _ = stream.set_nodelay(true);
                Ok(if is_gateway(agent, &stream, peer) { Some(Box::new(stream)) } else { None })
            }
        }
    }
}

/// Without the option to reuse the address, which would let others inside listen on the same port beside the agent (gVisor allows that).
fn listen_alone(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections for ever.
pub(crate) async fn serve(agent: Rc<Agent>, door: Door) {
    let (strangers, connections) = (Rc::<Cell<usize>>::default(), Rc::<Cell<usize>>::default());
    loop {
        match door.next(&agent).await {
            Ok(Some(stream)) => {
                let places = (Counted::take(&strangers, STRANGERS), Counted::take(&connections, CONNECTIONS));
                quiet::end();
                if let (Some(stranger), Some(connection)) = places {
                    tokio::task::spawn_local(one(Rc::clone(&agent), stream, stranger, connection));
                }
            }
            Ok(None) => {}
            // Out of descriptors or memory: programs inside can cause that, and it passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// An agent that was restored in another slot knows a gateway that is not there any more; the one that is, is its only neighbour. Nobody inside
/// can speak from a neighbour's address.
fn is_gateway(agent: &Agent, stream: &TcpStream, peer: SocketAddr) -> bool {
    let IpAddr::V4(peer) = peer.ip() else { return false };
    let here = match stream.local_addr() {
        Ok(SocketAddr::V4(here)) if !here.ip().is_loopback() => Some(*here.ip()),
        _ => None,
    };
    peer == agent.identity.borrow().gateway || here.is_some_and(|here| peer == gateway_of(here))
}

async fn one(agent: Rc<Agent>, stream: Box<dyn AsyncStream>, stranger: Counted, connection: Counted) {
    session::run(agent, stream, stranger).await;
    drop(connection);
}
