//! Builds the way out on the host's gateway.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use belljar_core::policy::Operator;
use belljar_egress::{Egress, EgressConfig, Lodge, Lodging, Resolver, Vault};
use belljar_host::{Host, HostError, NAME_PORT, PROXY_PORT};
use belljar_types::SandboxId;

use crate::Failure;
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
pub(crate) fn open(host: &Arc<Host>, config: &NetworkConfig, operator: Arc<Operator>, vault: Arc<Vault>) -> Result<Arc<Egress>, Failure> {
    let resolver = config.nameservers.clone().map_or_else(Resolver::of_this_machine, Resolver::new);
    Ok(Egress::open(EgressConfig {
        gateway: host.gateway().netns_path().to_owned(),
        name_port: NAME_PORT,
        proxy_port: PROXY_PORT,
        operator,
        roots: roots(config.certificates.as_deref())?,
        secrets: Some(vault),
        uplink: config.namespace.clone(),
        resolver,
        lodge: Arc::new(OnHost(Arc::clone(host))),
    })?)
}

/// The certificates that this machine trusts, and those that the operator adds.
fn roots(added: Option<&Path>) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>, Failure> {
    let found = rustls_native_certs::load_native_certs();
    for problem in &found.errors {
        tracing::warn!(%problem, "some of this machine's certificates cannot be read");
    }
    let mut roots = found.certs;
    if let Some(path) = added {
        let own = rustls_native_certs::load_certs_from_paths(Some(path), None);
        if let Some(problem) = own.errors.first() {
            return Err(format!("network.certificates: read {}: {problem}", path.display()).into());
        }
        if own.certs.is_empty() {
            return Err(format!("network.certificates: there is no certificate in {}", path.display()).into());
        }
        roots.extend(own.certs);
    }
    Ok(roots)
}
