//! What a handler left unread of a request's body. A connection of HTTP/1.1 can only go on after it, and a server that closes instead without a
//! word loses the client's next request: so what is left is read and thrown away, and where it is too much the client is told that this ends here.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// A client that is still sending when its connection is closed never sees the answer, so much is borne for its sake.
const READ_AT_MOST: usize = 8 << 20;
const WAIT_AT_MOST: Duration = Duration::from_secs(1);

/// Around every route: after the answer is known, sees to what is left of the body.
pub(crate) async fn see_to_the_rest(mut request: Request, next: Next) -> Response {
    let has_connection_to_itself = request.version() <= Version::HTTP_11;
    if !has_connection_to_itself || request.body().is_end_stream() {
        return next.run(request).await;
    }
    // A client that asked first sends nothing after a refusal: there is nothing to wait for, and no telling what comes next.
    let asks_first = request.headers().contains_key(header::EXPECT);
    let left = Left::default();
    let body = std::mem::take(request.body_mut());
    *request.body_mut() = Body::new(Watched { body, left: left.clone() });
    let mut response = next.run(request).await;
    if let Some(rest) = left.take()
        && response.status() != StatusCode::SWITCHING_PROTOCOLS
        && (asks_first || !read_off(rest).await)
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether the body came to its end within the bounds.
async fn read_off(rest: Body) -> bool {
    if rest.size_hint().lower() > READ_AT_MOST as u64 {
        return false;
    }
    let all = async {
        let mut read = 0;
        let mut pieces = rest.into_data_stream();
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) if read + piece.len() <= READ_AT_MOST => read += piece.len(),
                _ => return false,
            }
        }
        true
    };
    tokio::time::timeout(WAIT_AT_MOST, all).await.unwrap_or(false)
}

/// Where a body that was let go before its end is found again.
#[derive(Clone, Default)]
struct Left(Arc<Mutex<Option<Body>>>);

impl Left {
    fn put(&self, body: Body) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    }

    fn take(&self) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct Watched {
    body: Body,
    left: Left,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.body.is_end_stream() {
            self.left.put(std::mem::take(&mut self.body));
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::listen::Listen;
    use crate::metrics::Metrics;
    use crate::serve::{ServeLimits, Server};

    async fn client() -> TcpStream {
        let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, behind_proxy: false };
        let server = Server::bind(&[listen], ServeLimits::default()).await.unwrap();
        let address = server.addresses()[0];
        let router = Router::new().route("/refuses", post(|| async { StatusCode::CONFLICT })).layer(from_fn(see_to_the_rest));
        tokio::spawn(server.serve(router, Arc::new(Metrics::default()), CancellationToken::new()));
        TcpStream::connect(address).await.unwrap()
    }

    async fn answer(client: &mut TcpStream) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap().to_ascii_lowercase()
    }

    #[tokio::test]
    async fn a_connection_goes_on_after_a_small_body_that_nobody_read() {
        let mut client = client().await;
        for _ in 0..3 {
            client.write_all(b"POST /refuses HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf ").await.unwrap();
            // The second half is on its way while the refusal is being made.
            tokio::time::sleep(Duration::from_millis(20)).await;
            client.write_all(b"more!").await.unwrap();
            let answer = answer(&mut client).await;
            assert!(answer.starts_with("http/1.1 409") && !answer.contains("connection: close"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_ends_says_so() {
        let mut large = client().await;
        large.write_all(b"POST /refuses HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n\r\nbegin").await.unwrap();
        assert!(answer(&mut large).await.contains("connection: close"));

        let mut chunked = client().await;
        chunked.write_all(b"POST /refuses HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n").await.unwrap();
        assert!(answer(&mut chunked).await.contains("connection: close"), "a body that never ends is waited for a moment only");

        let mut asking = client().await;
        asking.write_all(b"POST /refuses HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n").await.unwrap();
        let answer = answer(&mut asking).await;
        assert!(answer.starts_with("http/1.1 409") && answer.contains("connection: close"), "{answer}");
    }
}
