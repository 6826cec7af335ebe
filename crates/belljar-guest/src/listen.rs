//! Takes connections from the host and from nobody else.
//!
//! The port can be reached by programs inside the sandbox too, so everybody but the gateway is hung up on before a byte is read. Those who may speak must
//! prove themselves soon, and only so many may be trying at once.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use belljar_guest_protocol::gateway_of;
use tokio::net::{TcpListener, TcpStream};

use crate::agent::Agent;
use crate::{quiet, session};

const STRANGERS: usize = 16;
const CONNECTIONS: usize = 256;

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

/// Accepts connections for ever.
pub(crate) async fn serve(agent: Rc<Agent>, listener: TcpListener) {
    let (strangers, connections) = (Rc::<Cell<usize>>::default(), Rc::<Cell<usize>>::default());
    loop {
        match listener.accept().await {
            Ok((stream, peer)) if is_gateway(&agent, &stream, peer) => {
                let places = (Counted::take(&strangers, STRANGERS), Counted::take(&connections, CONNECTIONS));
                quiet::end();
                if let (Some(stranger), Some(connection)) = places {
                    tokio::task::spawn_local(one(Rc::clone(&agent), stream, stranger, connection));
                }
            }
            Ok(_) => {}
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

async fn one(agent: Rc<Agent>, stream: TcpStream, stranger: Counted, connection: Counted) {
    // Small answers must not wait for each other; without it they are only slower.
    let _ = stream.set_nodelay(true);
    session::run(agent, stream, stranger).await;
    drop(connection);
}
