//! Takes connections from the host and from nobody else.
//!
//! The port can be reached by programs inside the sandbox too, so everybody but the gateway is hung up on before a byte is read. Those who may speak must
//! prove themselves soon, and only so many may be trying at once.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::agent::Agent;
use crate::session;

const STRANGERS: usize = 16;
const CONNECTIONS: usize = 256;

/// How many there are of something; given back when dropped.
pub(crate) struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn take(counter: &Rc<Cell<usize>>, limit: usize) -> Option<Self> {
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
            Ok((stream, peer)) if is_gateway(&agent, peer) => {
                let places = (Counted::take(&strangers, STRANGERS), Counted::take(&connections, CONNECTIONS));
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

fn is_gateway(agent: &Agent, peer: SocketAddr) -> bool {
    peer.ip() == IpAddr::V4(agent.identity.borrow().gateway)
}

async fn one(agent: Rc<Agent>, stream: TcpStream, stranger: Counted, connection: Counted) {
    // Small answers must not wait for each other; without it they are only slower.
    let _ = stream.set_nodelay(true);
    session::run(agent, stream, stranger).await;
    drop(connection);
}
