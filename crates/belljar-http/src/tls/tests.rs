//! A server with a certificate made by `openssl`, and a client that trusts nothing else.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::{Listen, ListenError, Metrics, ServeLimits, Server, TlsFiles};

fn certificate(directory: &Path) -> TlsFiles {
    let files = TlsFiles { certificates: directory.join("certificate.pem"), key: directory.join("key.pem") };
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&files.key)
        .arg("-out")
        .arg(&files.certificates)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    files
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_over_tls_and_a_stop_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let tls = certificate(directory.path());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&tls.certificates).unwrap()).unwrap();
    // Not loopback alone: with TLS it may be reached from anywhere.
    let listen = Listen { address: "0.0.0.0:0".parse().unwrap(), tls: Some(tls), behind_proxy: false };
    let server = Server::bind(&[listen], ServeLimits::default()).await.unwrap();
    let port = server.addresses()[0].port();
    let stop = CancellationToken::new();
    let router = Router::new().route("/", get(async || "hello"));
    let serving = tokio::spawn(server.serve(router, Arc::new(Metrics::default()), stop.clone()));

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    for wanted in [&b"h2"[..], b"http/1.1"] {
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots.clone()).with_no_client_auth();
        config.alpn_protocols = vec![wanted.to_vec()];
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(wanted));
        if wanted == b"http/1.1" {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("hello"), "{text}");
        }
    }
    stop.cancel();
    serving.await.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn a_file_that_is_no_certificate_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let good = certificate(directory.path());
    let listen = |tls| Listen { address: "127.0.0.1:0".parse().unwrap(), tls: Some(tls), behind_proxy: false };
    let swapped = TlsFiles { certificates: good.certificates.clone(), key: good.certificates.clone() };
    let missing = TlsFiles { certificates: directory.path().join("none.pem"), ..good };
    for (tls, path) in [(swapped.clone(), &swapped.key), (missing.clone(), &missing.certificates)] {
        let Err(error) = Server::bind(&[listen(tls)], ServeLimits::default()).await else { panic!("it was taken") };
        assert!(matches!(&error, ListenError::Pem { path: named, .. } if named == path), "{error}");
    }
}
