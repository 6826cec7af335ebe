//! The connection to a server: where it is, who asks, and the one way in which requests are sent and refusals read.

use std::time::Duration;

use belljar_types::Secret;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Method, Url};

use crate::error::ClientError;
use crate::request::Asking;

/// Not `Authorization`: in a request that is passed on to a program in a sandbox, that one is the program's.
const KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Where the server is and who asks.
#[derive(Debug, Clone)]
pub struct Connection {
    /// `http://host:port` or `https://…`.
    pub url: String,
    /// The API key.
    pub key: Option<Secret<String>>,
    /// A certificate, as PEM, that is trusted besides the system's.
    pub certificate: Option<Vec<u8>>,
}

/// A client of one server. Cheap to clone; clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) base: Url,
    key: Option<HeaderValue>,
}

impl Client {
    /// Makes a client; nothing is sent yet.
    pub fn new(connection: &Connection) -> Result<Self, ClientError> {
        // Somebody else in this program may have chosen a provider before; theirs is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base = parse_base(&connection.url)?;
        let key = connection.key.as_ref().map(key_header).transpose()?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            // A proxy for the world outside has no business with a server on this machine.
            builder = builder.no_proxy();
        }
        if let Some(pem) = &connection.certificate {
            builder = builder.tls_certs_merge(Certificate::from_pem_bundle(pem).map_err(ClientError::Certificate)?);
        }
        Ok(Self { http: builder.build().map_err(ClientError::SetUp)?, base, key })
    }

    /// The same for somebody else, over the same connections.
    pub fn for_key(&self, key: &Secret<String>) -> Result<Self, ClientError> {
        Ok(Self { key: Some(key_header(key)?), ..self.clone() })
    }

    /// The server's address.
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Begins a request to a path below the server's address; the pieces are escaped.
    pub(crate) fn ask<'a>(&self, method: Method, pieces: impl IntoIterator<Item = &'a str>) -> Asking {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(pieces);
        }
        let mut request = self.http.request(method, url);
        if let Some(key) = &self.key {
            request = request.header(KEY_HEADER, key.clone());
        }
        Asking::new(request, self.url().to_owned())
    }

    /// Shows the key, unless these headers show one already.
    pub(crate) fn show_key(&self, headers: &mut HeaderMap) {
        if let Some(key) = &self.key {
            headers.entry(KEY_HEADER).or_insert_with(|| key.clone());
        }
    }
}

fn parse_base(text: &str) -> Result<Url, ClientError> {
    let wrong = || ClientError::Address { url: belljar_types::escape_untrusted(text.as_bytes()) };
    let url: Url = text.parse().map_err(|_| wrong())?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() { Ok(url) } else { Err(wrong()) }
}

fn key_header(key: &Secret<String>) -> Result<HeaderValue, ClientError> {
    let mut value = HeaderValue::from_str(key.reveal()).map_err(|_| ClientError::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_url_with_a_host() {
        for good in ["http://127.0.0.1:7070", "https://belljar.example", "http://[::1]:7070/", "http://host/below"] {
            assert!(parse_base(good).is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:7070", "ftp://host", "http://", "not a url"] {
            assert!(parse_base(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_never_shows_in_the_debug_form() {
        let connection =
            Connection { url: "http://127.0.0.1:1".to_owned(), key: Some(Secret::new("bj_secret".to_owned())), certificate: None };
        let client = Client::new(&connection);
        assert!(!format!("{connection:?} {client:?}").contains("bj_secret"));
    }
}
