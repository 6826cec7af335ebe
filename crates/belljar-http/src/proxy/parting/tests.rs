//! Over sockets: what a body gave before it failed arrives, and so does that it failed.

use std::sync::Arc;

use axum::extract::{Path, Request};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::stream;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Listen, Metrics, ServeLimits, Server};

const PIECE: &[u8] = &[7; 10_000];

#[derive(Debug, Clone, thiserror::Error)]
#[error("the program has gone")]
struct Gone;

/// Gives so many pieces and fails then; `kept` is what the proxy does, `not` is hyper alone.
async fn failing(Path((how, pieces)): Path<(String, usize)>, Extension(flushes): Extension<Flushes>) -> Body {
    let pieces = std::iter::repeat_n(Ok(Bytes::from_static(PIECE)), pieces).chain([Err(Gone)]);
    parting(Body::from_stream(stream::iter(pieces)), (how == "kept").then_some(flushes))
}

/// How much of an answer arrived, and whether it looked whole.
async fn drink(answer: hyper::Response<hyper::body::Incoming>) -> (usize, bool) {
    let (mut body, mut had) = (answer.into_body(), 0);
    loop {
        match body.frame().await {
            Some(Ok(frame)) => had += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) => return (had, false),
            None => return (had, true),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_before_a_failure_arrives_and_the_failure_too() {
    let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tls: None, behind_proxy: false };
    let server = Server::bind(&[listen], ServeLimits::default()).await.unwrap();
    let address = server.addresses()[0];
    let stop = CancellationToken::new();
    let router = Router::new().route("/{how}/{pieces}", get(failing));
    let serving = tokio::spawn(server.serve(router, Arc::new(Metrics::default()), stop.clone()));
    let request = |how: &str, pieces: usize| {
        let uri = format!("http://{address}/{how}/{pieces}");
        Request::get(uri).header("host", "localhost").body(Empty::<Bytes>::new()).unwrap()
    };

    let mut lost = 0;
    for pieces in [1, 2, 20, 26, 27, 100, 1000] {
        for how in ["kept", "not"] {
            let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
            let (mut sender, driver) = http1::handshake(stream).await.unwrap();
            tokio::spawn(driver);
            // An answer whose head was dropped too is none.
            let (had, whole) = match sender.send_request(request(how, pieces)).await {
                Ok(answer) => drink(answer).await,
                Err(_) => (0, false),
            };
            assert!(!whole, "{how} {pieces}: what is cut must not look whole");
            if how == "kept" {
                assert_eq!(had, pieces * PIECE.len(), "{pieces}");
            } else {
                lost += pieces * PIECE.len() - had;
            }
        }
    }
    assert!(lost > 0, "the control loses nothing: hyper sends what it has by itself now");

    // There, another task writes, and a flush may be counted that began before the last piece came: it is not waited for in vain, and most arrives.
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, driver) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(driver);
    for pieces in [1, 2, 20, 100, 1000] {
        let (had, whole) = drink(sender.send_request(request("kept", pieces)).await.unwrap()).await;
        assert!(!whole && had >= pieces * PIECE.len() / 2, "HTTP/2, {pieces}: {had}");
    }
    stop.cancel();
    serving.await.unwrap();
}
