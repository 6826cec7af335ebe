//! A body that breaks off when what came before was sent, and not before. hyper drops what it holds for a connection whose body fails, up to 256 KiB:
//! the last words of a program that crashed while it answered, or bytes that somebody has paid for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::flushes::Flushes;

struct Parting {
    body: Body,
    flushes: Flushes,
    /// The flushes when the last piece was handed on; it is sent with one after these.
    handed_on: u64,
    failure: Option<Failure>,
}

struct Failure {
    error: axum::Error,
    /// Ready when the last piece was sent.
    sent: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The same body, with its failure kept back until its last piece was sent. Whoever does not read it has that failure later.
pub(super) fn parting(body: Body, flushes: Option<Flushes>) -> Body {
    match flushes {
        Some(flushes) => Body::new(Parting { body, flushes, handed_on: 0, failure: None }),
        None => body,
    }
}

impl hyper::body::Body for Parting {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.failure.is_none() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Err(error)) => {
                    let sent = Box::pin(self.flushes.clone().beyond(self.handed_on));
                    self.failure = Some(Failure { error, sent });
                }
                other => {
                    self.handed_on = self.flushes.count();
                    return Poll::Ready(other);
                }
            }
        }
        if let Some(failure) = &mut self.failure {
            ready!(failure.sent.as_mut().poll(context));
        }
        Poll::Ready(self.failure.take().map(|failure| Err(failure.error)))
    }

    fn is_end_stream(&self) -> bool {
        self.failure.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
