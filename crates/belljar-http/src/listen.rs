//! Where a server may listen. Keys and whatever sandboxes say travel over these sockets, so an address that others can reach needs TLS, or the
//! operator's word that something in front of it does that.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A certificate chain and its key, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, the server's own certificate first.
    pub certificates: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// One address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub address: SocketAddr,
    /// With TLS.
    pub tls: Option<TlsFiles>,
    /// A proxy in front of it does TLS and is the only one that can reach it.
    pub behind_proxy: bool,
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// It would be reachable without encryption.
    #[error(
        "refused to listen on {address} without TLS: keys would cross the network in the clear. \
         Give a certificate and a key, or listen on 127.0.0.1, or, if a proxy in front does TLS and nobody else can reach this address, say `behind_proxy`"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// Another program listens there.
    #[error("{address} is taken by another program, perhaps by a server that runs already: stop that one, or choose another address")]
    Taken {
        /// The address.
        address: SocketAddr,
    },
    /// The socket could not be had.
    #[error("listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        #[source]
        source: std::io::Error,
    },
    /// A PEM file could not be read.
    #[error("read {path}, which should hold {expected}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What should be in it.
        expected: &'static str,
        /// What went wrong.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate and the key do not make a TLS server.
    #[error("use the certificate {path}")]
    Certificate {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: rustls::Error,
    },
}

/// Refuses an address that others can reach without encryption.
pub fn check_listen(listen: &Listen) -> Result<(), ListenError> {
    if listen.address.ip().to_canonical().is_loopback() || listen.tls.is_some() || listen.behind_proxy {
        Ok(())
    } else {
        Err(ListenError::Open { address: listen.address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(address: &str) -> Listen {
        Listen { address: address.parse().unwrap(), tls: None, behind_proxy: false }
    }

    #[test]
    fn only_loopback_is_free() {
        for address in ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check_listen(&listen(address)).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"] {
            let error = check_listen(&listen(address)).unwrap_err().to_string();
            assert!(error.contains("behind_proxy") && error.contains("certificate"), "{error}");
        }
    }

    #[test]
    fn tls_or_a_proxy_opens_it() {
        let tls = Some(TlsFiles { certificates: "c.pem".into(), key: "k.pem".into() });
        assert!(check_listen(&Listen { tls, ..listen("0.0.0.0:1") }).is_ok());
        assert!(check_listen(&Listen { behind_proxy: true, ..listen("0.0.0.0:1") }).is_ok());
    }
}
