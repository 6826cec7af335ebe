//! A program's port in a sandbox, reached through the server: one HTTP request of somebody else's, passed on as it is.

use belljar_types::SandboxId;
use bytes::Bytes;
use futures_util::Stream;
use reqwest::header::HeaderMap;
use reqwest::{Body, Method, Response, StatusCode, Upgraded, Url};

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
    /// Passes a request on to a program. `target` begins with a slash; its escapes stay as they are. One that leads out of the port with `..` is
    /// refused: the request has the key, and whoever made it may reach this port only.
    pub async fn reach(
        &self,
        sandbox: &SandboxId,
        port: u16,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Body,
    ) -> Result<Reached, ClientError> {
        let base = self.url();
        let url = below(&format!("{base}/v1/sandboxes/{sandbox}/ports/{port}/proxy"), target)?;
        let mut request = reqwest::Request::new(method, url);
        *request.headers_mut() = headers;
        self.show_key(request.headers_mut());
        *request.body_mut() = Some(body);
        let sent = self.http.execute(request).await;
        let response = sent.map_err(|source| ClientError::Unreachable { url: base.to_owned(), source: source.without_url() })?;
        Ok(Reached { response })
    }
}

/// The address of a target. Reading it resolves `..`, `%2e%2e` and backslashes, so that only what comes of it can be judged.
fn below(port: &str, target: &str) -> Result<Url, ClientError> {
    let leads_out = || ClientError::LeadsOut { target: belljar_types::escape_untrusted(target.as_bytes()) };
    let root: Url = port.parse().map_err(|_| ClientError::Address { url: belljar_types::escape_untrusted(port.as_bytes()) })?;
    let url: Url = format!("{port}{target}").parse().map_err(|_| leads_out())?;
    let is_within = url.path().strip_prefix(root.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_within && url.origin() == root.origin() { Ok(url) } else { Err(leads_out()) }
}

#[cfg(test)]
mod tests {
    use belljar_types::Secret;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::Connection;

    /// Answers every request with its own first line.
    async fn echo(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{line}", line.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn no_request_leaves_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/under", listener.local_addr().unwrap());
        tokio::spawn(echo(listener));
        let client = Client::new(&Connection { url, key: Some(Secret::new("bj_secret".to_owned())), certificate: None }).unwrap();
        let sandbox: SandboxId = "sabcdefghijkmnpqrstu".parse().unwrap();
        let ask = async |target: &str| {
            let reached = client.reach(&sandbox, 8000, Method::GET, target, HeaderMap::new(), Body::from("")).await;
            match reached {
                Ok(reached) => Ok(reached.response.text().await.unwrap()),
                Err(error) => Err(error),
            }
        };
        for target in [
            "/../../../../../keys",
            "/%2e%2e/%2E%2e/../../../keys",
            "/..\\..\\..\\..\\..\\keys",
            "/a/../../proxyx/b",
            "/..",
            "/../../8001/proxy/a",
            "x",
        ] {
            let answer = ask(target).await;
            assert!(matches!(answer, Err(ClientError::LeadsOut { .. })), "{target}: {answer:?}");
        }
        for (target, seen) in [
            ("/", "/"),
            ("", ""),
            ("/a/../b", "/b"),
            ("/a%2F..%2f..?x=/../..", "/a%2F..%2f..?x=/../.."),
            ("/...//..a/%252e%252e/", "/...//..a/%252e%252e/"),
            ("//elsewhere.example/a", "//elsewhere.example/a"),
        ] {
            let line = ask(target).await.unwrap();
            assert_eq!(line, format!("GET /under/v1/sandboxes/{sandbox}/ports/8000/proxy{seen} HTTP/1.1"), "{target}");
        }
    }
}
