//! TLS that is read: towards the sandbox this is the host, with a certificate of the sandbox's own authority; towards the host it is an ordinary
//! client that checks the certificate as any would. Between the two is HTTP, judged request by request.

use std::sync::Arc;
use std::time::Duration;

use belljar_policy::HostName;
use tokio::time::timeout;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::authority::Authority;
use crate::http::{self, Upstream};
use crate::relay::Stream;
use crate::way::Way;

const HANDSHAKE: Duration = Duration::from_secs(10);

/// How hosts are recognised: by these roots.
pub(crate) fn client_config(roots: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, tokio_rustls::rustls::Error> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots.iter().cloned());
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions()?;
    let mut config = builder.with_root_certificates(store).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Reads the requests of a connection. `false` if it has to be broken off.
pub(crate) async fn serve(way: &Way, name: &HostName, authority: &Authority, stream: Box<dyn Stream>) -> bool {
    let Ok(config) = authority.host(name) else { return false };
    match timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(client)) => http::serve(way, Box::new(client), Upstream::Tls).await,
        // Most often a program that does not trust the authority.
        Ok(Err(_)) | Err(_) => false,
    }
}

/// The host itself, its certificate verified.
pub(crate) async fn connect(way: &Way, name: &HostName) -> Result<Box<dyn Stream>, String> {
    let config = way.outside.tls.clone().ok_or("cannot be spoken to: this server reads no TLS")?;
    let server = ServerName::try_from(name.as_str().to_owned()).map_err(|_| "has a name that no certificate can be for".to_owned())?;
    let stream = way.try_dial().await?;
    match timeout(HANDSHAKE, TlsConnector::from(config).connect(server, stream)).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(format!("could not show a certificate that is trusted: {error}")),
        Err(_) => Err("did not finish its handshake in time".to_owned()),
    }
}
