//! TLS from PEM files. Only the protocol versions and ciphers that rustls has on by itself.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::listen::{ListenError, TlsFiles};

pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ListenError> {
    let pem = |path: &std::path::Path, expected| {
        let path = path.to_owned();
        move |source| ListenError::Pem { path, expected, source }
    };
    let in_certificates = pem(&files.certificates, "a certificate chain in PEM form");
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(&files.certificates).and_then(Iterator::collect).map_err(in_certificates)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(pem(&files.key, "a private key in PEM form"))?;
    let bad = |source| ListenError::Certificate { path: files.certificates.clone(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(bad)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(bad)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests;
