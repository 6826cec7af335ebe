//! The end of a request: its body is counted as it leaves, and one line says how it went when it has left or was given up, be that before there was an
//! answer at all: hyper drops what is under way for a client that hangs up.

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
    span: tracing::Span,
    started: Instant,
    /// None until there is an answer.
    status: Option<u16>,
    bytes: u64,
    metrics: Arc<Metrics>,
}

impl Account {
    /// Of a request that begins now.
    pub(crate) fn open(span: tracing::Span, metrics: Arc<Metrics>) -> Self {
        metrics.began();
        Self { span, started: Instant::now(), status: None, bytes: 0, metrics }
    }

    /// There is an answer; its body is still to leave.
    pub(crate) fn answered(&mut self, method: &str, route: &str, status: u16) {
        self.status = Some(status);
        self.metrics.answered(method, route, status, self.started.elapsed());
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.metrics.ended();
        let millis = (self.started.elapsed().as_secs_f64() * 1e4).round() / 10.0;
        match self.status {
            Some(status) => tracing::info!(parent: &self.span, status, millis, bytes = self.bytes, "answered"),
            None => tracing::info!(parent: &self.span, millis, "given up before there was an answer"),
        }
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// What was logged.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_ends_once_whether_it_was_answered_or_given_up() {
        for (status, line) in [(Some(204), "answered status=204"), (None, "given up before there was an answer")] {
            let (log, metrics) = (Log::default(), Arc::new(Metrics::default()));
            let writer = log.clone();
            let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
            tracing::subscriber::with_default(subscriber, || {
                let mut account = Account::open(tracing::info_span!("request"), Arc::clone(&metrics));
                assert!(metrics.text().contains("belljar_http_requests_in_flight 1"), "{}", metrics.text());
                if let Some(status) = status {
                    account.answered("GET", "/x", status);
                }
            });
            assert!(metrics.text().contains("belljar_http_requests_in_flight 0"), "{}", metrics.text());
            let said = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
            assert!(said.lines().count() == 1 && said.contains(line), "{said}");
        }
    }
}
