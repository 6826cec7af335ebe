//! The gateway: one network namespace per instance, in which the host's ends of all sandboxes' cables are.
//!
//! ```text
//!   sandbox eth0 ── bjc<n> ┐                                      closed: only the host's own connections in
//!   sandbox eth0 ── bjo<n> ┤ gateway ─ up0 ── bju<instance> host  open: out to public addresses as well
//!   sandbox eth0 ── bjf<n> ┘    └─ names, proxy                   filtered: every question and connection ends here
//! ```
//! Its firewall is loaded before the first cable is plugged in and never changes with sandboxes: interface names say which rule applies.
//! If the rules cannot be loaded, there is no gateway and nothing starts. The host's own services are in another namespace.

mod dns;
mod rules;
mod uplink;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use belljar_linux::netns::{Links, Netns, close_connections_to, forget_connections, set_sysctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::config::Places;
use crate::error::HostError;

/// Where the gateway's name service listens: whatever a filtered sandbox sends to port 53 of anybody comes here.
pub const NAME_PORT: u16 = 15053;
/// Where its proxy listens: whatever else a filtered sandbox sends over TCP comes here.
pub const PROXY_PORT: u16 = 15001;

/// How many sockets are kept ready, so that a connection does not wait for the thread that makes them.
const READY_SOCKETS: usize = 16;

const SETTINGS: [(&str, &str); 10] = [
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
    ("ipv4/conf/all/rp_filter", "1"),
    ("ipv4/conf/default/rp_filter", "1"),
    ("ipv4/conf/all/arp_ignore", "1"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    // Room for several of gVisor's largest packets: with less than one it sends a part, and then waits for an acknowledgement that Linux puts
    // off for 40 ms.
    ("ipv4/tcp_rmem", "4096 2097152 33554432"),
];

/// The host's side of all sandboxes' networks.
pub struct Gateway {
    places: Places,
    path: PathBuf,
    netns: Netns,
    links: Mutex<Links>,
    nameservers: Vec<Ipv4Addr>,
    sockets: tokio::sync::Mutex<mpsc::Receiver<io::Result<OwnedFd>>>,
}

impl Gateway {
    /// Makes the gateway or takes over the one that is there, and loads its rules anew.
    pub(crate) fn open(places: &Places, with_uplink: bool, filtering: bool) -> Result<Arc<Self>, HostError> {
        let failed = |operation| move |source| HostError::Gateway { operation, source };
        let path = places.netns.join("gateway");
        let netns = match Netns::open(&path) {
            Ok(netns) => netns,
            Err(_) => {
                Netns::forget(&path).map_err(failed("remove the remains of the namespace"))?;
                Netns::create(&path).map_err(failed("make the namespace"))?
            }
        };
        let nameservers = if with_uplink { dns::nameservers() } else { Vec::new() };
        rules::load(Some(&netns), &rules::gateway(&nameservers, filtering))?;
        let links = netns.run(|| prepare(with_uplink)).map_err(failed("prepare the namespace"))?;
        if with_uplink {
            uplink::open(places, &netns, &links, &nameservers)?;
        } else {
            uplink::close(places)?;
        }
        let sockets =
            start_socket_maker(Netns::open(&path).map_err(failed("open the namespace"))?).map_err(failed("start the socket maker"))?;
        tracing::info!(instance = places.instance, uplink = with_uplink, "gateway ready");
        Ok(Arc::new(Self {
            places: places.clone(),
            path,
            netns,
            links: Mutex::new(links),
            nameservers,
            sockets: tokio::sync::Mutex::new(sockets),
        }))
    }

    /// Connects to a sandbox, from the gateway's side of its cable.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let made = self.sockets.lock().await.recv().await;
        let socket = made.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "the gateway was closed"))??;
        let stream = TcpSocket::from_std_stream(socket.into()).connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// The file that stands for its namespace.
    pub fn netns_path(&self) -> &std::path::Path {
        &self.path
    }

    pub(crate) fn netns(&self) -> &Netns {
        &self.netns
    }

    pub(crate) fn nameservers(&self) -> &[Ipv4Addr] {
        &self.nameservers
    }

    pub(crate) fn links<T>(&self, work: impl FnOnce(&Links) -> io::Result<T>) -> io::Result<T> {
        work(&self.links.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn forget_connections(&self, address: Ipv4Addr) -> io::Result<usize> {
        self.netns.run(|| forget_connections(address))
    }

    /// Ends every connection of the host to a sandbox.
    pub(crate) fn close_connections_to(&self, address: Ipv4Addr) -> io::Result<usize> {
        self.netns.run(|| close_connections_to(address))
    }

    /// Removes the gateway; no cable may be left.
    pub(crate) async fn close(&self) -> Result<(), HostError> {
        let mut sockets = self.sockets.lock().await;
        sockets.close();
        while sockets.recv().await.is_some() {}
        uplink::close(&self.places)?;
        Netns::forget(&self.path).map_err(|source| HostError::Gateway { operation: "remove the namespace", source })
    }
}

fn prepare(forwarding: bool) -> io::Result<Links> {
    for (name, value) in SETTINGS {
        set_sysctl(name, value)?;
    }
    set_sysctl("ipv4/ip_forward", if forwarding { "1" } else { "0" })?;
    let links = Links::open()?;
    links.set_up(links.index("lo")?, true)?;
    Ok(links)
}

/// A thread inside the gateway that makes sockets ahead of need, until nobody wants them.
fn start_socket_maker(netns: Netns) -> io::Result<mpsc::Receiver<io::Result<OwnedFd>>> {
    let (ready, sockets) = mpsc::channel(READY_SOCKETS);
    std::thread::Builder::new().name("belljar-sockets".into()).spawn(move || {
        let entered = netns.enter();
        // The thread is inside now; the open file would only keep the namespace longer.
        drop(netns);
        if let Err(error) = entered {
            let _ = ready.blocking_send(Err(error));
            return;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while ready.blocking_send(socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).map_err(Into::into)).is_ok() {}
    })?;
    Ok(sockets)
}
