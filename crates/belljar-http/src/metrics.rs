//! Counters for Prometheus: what HTTP did is counted here, and whoever has more registers it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: String,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: String,
    route: String,
}

/// The registry of a server. Labels are methods, routes and statuses: nothing a client chooses.
pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Answered, Counter>,
    durations: Family<Asked, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    refused_connections: Counter,
}

/// From 0.25 ms to 65 s.
fn duration_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 19))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("belljar");
        let requests = Family::default();
        let durations = Family::new_with_constructor(duration_buckets as fn() -> Histogram);
        let (in_flight, refused_connections) = (Gauge::default(), Counter::default());
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register("http_request_duration_seconds", "Time from a request's head to the head of its answer", durations.clone());
        registry.register("http_requests_in_flight", "Requests whose answer has not ended", in_flight.clone());
        registry.register("http_connections_refused", "Connections turned away at the limit", refused_connections.clone());
        Self { registry: Mutex::new(registry), requests, durations, in_flight, refused_connections }
    }
}

impl Metrics {
    /// Adds numbers that are looked up when asked for.
    pub fn add(&self, collector: impl Collector) {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).register_collector(Box::new(collector));
    }

    /// Everything, in Prometheus' text form.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry.lock().unwrap_or_else(PoisonError::into_inner));
        text
    }

    pub(crate) fn began(&self) {
        self.in_flight.inc();
    }

    pub(crate) fn ended(&self) {
        self.in_flight.dec();
    }

    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, after: Duration) {
        let (method, route) = (method.to_owned(), route.to_owned());
        self.durations.get_or_create(&Asked { method: method.clone(), route: route.clone() }).observe(after.as_secs_f64());
        self.requests.get_or_create(&Answered { method, route, status }).inc();
    }

    pub(crate) fn refused_connection(&self) {
        self.refused_connections.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route() {
        let metrics = Metrics::default();
        metrics.answered("GET", "/v1/x/{id}", 200, Duration::from_millis(1));
        metrics.answered("GET", "/v1/x/{id}", 200, Duration::from_millis(1));
        let text = metrics.text();
        assert!(text.contains(r#"belljar_http_requests_total{method="GET",route="/v1/x/{id}",status="200"} 2"#), "{text}");
        assert!(text.contains("belljar_http_request_duration_seconds_count"), "{text}");
    }
}
