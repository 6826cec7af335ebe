//! A program's port in a sandbox, reached through the server: one HTTP request of somebody else's, passed on as it is.

use belljar_types::SandboxId;
use bytes::Bytes;
use futures_util::Stream;
use reqwest::header::HeaderMap;
use reqwest::{Body, Method, Response, StatusCode, Upgraded};

use crate::client::Client;
use crate::error::ClientError;

/// What a program answered.
pub struct Reached {
    response: Response,
}

impl Reached {
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Its body as it comes.
    pub fn pieces(self) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static {
        self.response.bytes_stream()
    }

    /// The connection itself, if both sides changed the protocol.
    pub async fn upgrade(self) -> Result<Upgraded, ClientError> {
        let url = self.response.url().to_string();
        self.response.upgrade().await.map_err(|_| ClientError::CutShort { url })
    }
}

impl Client {
    /// Passes a request on to a program. `target` begins with a slash and is taken as it is, escapes included.
    pub async fn reach(
        &self,
        sandbox: &SandboxId,
        port: u16,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Reached, ClientError> {
        let path = format!("v1/sandboxes/{sandbox}/ports/{port}/proxy{target}");
        let base = self.url();
        let url =
            format!("{base}/{path}").parse().map_err(|_| ClientError::Address { url: belljar_types::escape_untrusted(path.as_bytes()) })?;
        let mut request = reqwest::Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = Some(body);
        let sent = self.http.execute(request).await;
        let response = sent.map_err(|source| ClientError::Unreachable { url: base.to_owned(), source: source.without_url() })?;
        Ok(Reached { response })
    }
}
