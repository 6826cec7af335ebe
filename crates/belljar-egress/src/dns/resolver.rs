//! Asking the node's own name servers. Only a connection that its policy allows gets here, with a name the policy names.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use belljar_policy::HostName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::message::{Answer, ask, read_answer};
use crate::uplink::Uplink;

const PATIENCE: Duration = Duration::from_secs(3);
const LARGEST: usize = 4096;

/// The node's name servers.
#[derive(Debug, Clone)]
pub struct Resolver {
    servers: Vec<SocketAddr>,
}

impl Resolver {
    /// Asks these, in this order.
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self { servers }
    }

    /// Asks those that the machine's `resolv.conf` names.
    pub fn of_this_machine() -> Self {
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok());
        Self { servers: named.map(|address| SocketAddr::from((address, 53))).collect() }
    }

    /// All addresses of a name.
    pub(crate) async fn addresses(&self, uplink: &Uplink, name: &HostName) -> io::Result<Vec<Ipv4Addr>> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "this machine has no name server");
        for server in &self.servers {
            match timeout(PATIENCE, question(uplink, *server, name)).await {
                Ok(Ok(answer)) if answer.code == 0 => return Ok(answer.addresses),
                Ok(Ok(answer)) if answer.code == 3 => return Ok(Vec::new()),
                Ok(Ok(answer)) => last = io::Error::other(format!("the name server {server} failed with code {}", answer.code)),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, format!("the name server {server} did not answer")),
            }
        }
        Err(last)
    }
}

async fn question(uplink: &Uplink, server: SocketAddr, name: &HostName) -> io::Result<Answer> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(io::Error::other)?;
    let asked = ask(u16::from_be_bytes(id), name);
    // A socket of its own each time: its port is as hard to guess as the number.
    let socket = uplink.datagrams(server).await?;
    socket.send(&asked).await?;
    let mut bytes = [0; LARGEST];
    loop {
        let count = socket.recv(&mut bytes).await?;
        match read_answer(&asked, bytes.get(..count).unwrap_or_default()) {
            Some(answer) if answer.truncated => return question_over_tcp(uplink, server, &asked).await,
            Some(answer) => return Ok(answer),
            None => {}
        }
    }
}

async fn question_over_tcp(uplink: &Uplink, server: SocketAddr, asked: &[u8]) -> io::Result<Answer> {
    let mut stream = uplink.connect(server).await?;
    stream.write_all(&[&u16::try_from(asked.len()).unwrap_or(0).to_be_bytes()[..], asked].concat()).await?;
    let mut bytes = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut bytes).await?;
    read_answer(asked, &bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the name server's answer cannot be read"))
}
