//! The end of a request: its body is counted as it leaves, and one line says how it went when it has left or was given up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::metrics::Metrics;

/// Says how a request went, when dropped.
pub(crate) struct Account {
    pub(crate) span: tracing::Span,
    pub(crate) started: Instant,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) metrics: Arc<Metrics>,
}

impl Drop for Account {
    fn drop(&mut self) {
        self.metrics.ended();
        let millis = (self.started.elapsed().as_secs_f64() * 1e4).round() / 10.0;
        tracing::info!(parent: &self.span, status = self.status, millis, bytes = self.bytes, "answered");
    }
}

/// A body that is counted.
pub(crate) struct Counted {
    pub(crate) body: Body,
    pub(crate) account: Account,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.account.bytes += data.len() as u64;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
