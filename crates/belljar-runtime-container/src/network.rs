//! The way to a sandbox's agent: over the cable of its network slot, from the gateway's namespace.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use belljar_guest_client::{AsyncStream, Connect};
use belljar_guest_protocol::AGENT_PORT;
use belljar_host::Host;

/// Connects to one agent.
pub(crate) struct AgentRoute {
    host: Arc<Host>,
    address: SocketAddr,
}

impl AgentRoute {
    pub(crate) fn new(host: Arc<Host>, guest: Ipv4Addr) -> Self {
        Self { host, address: SocketAddr::from((guest, AGENT_PORT)) }
    }
}

#[async_trait]
impl Connect for AgentRoute {
    async fn connect(&self) -> std::io::Result<Box<dyn AsyncStream>> {
        Ok(Box::new(self.host.gateway().connect(self.address).await?))
    }
}
