//! Builds the way out on the host's gateway, and writes down what it refuses.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_core::policy::Operator;
use belljar_egress::{Egress, EgressConfig, EgressError, Event, EventKind, Lodge, Lodging, Resolver, Vault};
use belljar_host::{Host, HostError, NAME_PORT, PROXY_PORT};
use belljar_types::SandboxId;
use tokio::sync::mpsc;

use crate::config::NetworkConfig;

/// The host knows where its sandboxes are.
struct OnHost(Arc<Host>);

#[async_trait]
impl Lodge for OnHost {
    async fn lodging(&self, id: &SandboxId) -> Result<Lodging, Box<dyn std::error::Error + Send + Sync>> {
        let record = self.0.record(id).await?.ok_or_else(|| HostError::NotFound { id: id.clone() })?;
        Ok(Lodging { guest: record.guest_address, gateway: record.gateway_address })
    }
}

/// Opens it.
pub(crate) fn open(host: &Arc<Host>, config: &NetworkConfig, operator: Arc<Operator>, vault: Vault) -> Result<Arc<Egress>, EgressError> {
    let resolver = config.nameservers.clone().map_or_else(Resolver::of_this_machine, Resolver::new);
    let (egress, events) = Egress::open(EgressConfig {
        gateway: host.gateway().netns_path().to_owned(),
        name_port: NAME_PORT,
        proxy_port: PROXY_PORT,
        operator,
        roots: native_roots(),
        secrets: Some(Arc::new(vault)),
        uplink: config.namespace.clone(),
        resolver,
        lodge: Arc::new(OnHost(Arc::clone(host))),
    })?;
    tokio::spawn(write_down(events));
    Ok(egress)
}

/// What guests cause is told at a level that is off unless asked for.
async fn write_down(mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        let Event { sandbox, kind, destination, port, rule, reason } = event;
        match kind {
            EventKind::Allowed | EventKind::RequestAllowed => tracing::trace!(%sandbox, ?kind, destination, port, rule, reason, "egress"),
            _ => tracing::debug!(%sandbox, ?kind, destination, port, rule, reason, "egress"),
        }
    }
}

/// The certificates that this machine trusts.
fn native_roots() -> Vec<rustls::pki_types::CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for problem in &found.errors {
        tracing::warn!(%problem, "some of this machine's certificates cannot be read");
    }
    found.certs
}
