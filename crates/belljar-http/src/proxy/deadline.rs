//! A body that breaks off at a moment. A stream of events can go on for days; whoever was let in for an hour must not be told more by then, and what
//! is cut must not look as if it were whole.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::Sleep;

/// What the body ends with.
#[derive(Debug, thiserror::Error)]
#[error("the token that opened this connection has expired")]
struct Expired;

struct Bounded {
    body: Body,
    end: Pin<Box<Sleep>>,
}

/// The same body for as long as there is time left.
pub(super) fn bounded(body: Body, left: Option<Duration>) -> Body {
    match left {
        Some(left) => Body::new(Bounded { body, end: Box::pin(tokio::time::sleep(left)) }),
        None => body,
    }
}

impl hyper::body::Body for Bounded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(axum::Error::new(Expired))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_without_end_breaks_off_in_time_and_one_that_ends_is_whole() {
        let endless = || {
            Body::from_stream(stream::repeat(()).then(|()| async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, axum::Error>(Bytes::from_static(b"tick"))
            }))
        };
        let pieces: Vec<_> = bounded(endless(), Some(Duration::from_millis(3500))).into_data_stream().take(10).collect().await;
        assert_eq!(pieces.iter().filter(|piece| piece.is_ok()).count(), 3, "{pieces:?}");
        assert!(pieces.get(3).is_some_and(Result::is_err), "{pieces:?}");
        let pieces: Vec<_> = bounded(endless(), None).into_data_stream().take(10).collect().await;
        assert!(pieces.iter().all(Result::is_ok), "the control goes on: {pieces:?}");
        let whole = axum::body::to_bytes(bounded(Body::from("all of it"), Some(Duration::from_secs(1))), 99).await.unwrap();
        assert_eq!(&whole[..], b"all of it");
    }
}
