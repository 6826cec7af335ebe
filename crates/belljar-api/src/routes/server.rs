//! The server itself: whether it is well, what it can, who asks, and numbers for Prometheus.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use belljar_core::Service;
use belljar_http::{Authenticated, Peer, Problem};
use belljar_types::Scope;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::dto::{HealthView, ServerView, WhoView};
use crate::errors::{OpenProblems, Problems};
use crate::state::ApiState;
use crate::translate;

/// Whether the process answers.
#[utoipa::path(
    get, path = "/healthz", tag = "server", operation_id = "health", security(()),
    responses((status = 200, description = "It does.", body = HealthView), OpenProblems)
)]
pub(crate) async fn health() -> Json<HealthView> {
    Json(HealthView { status: "ok" })
}

/// Whether it can do work.
///
/// The store can be written to and the server is not stopping.
#[utoipa::path(
    get, path = "/readyz", tag = "server", operation_id = "ready", security(()),
    responses((status = 200, description = "It can.", body = HealthView), OpenProblems)
)]
pub(crate) async fn ready(State(state): State<ApiState>) -> Result<Json<HealthView>, Problem> {
    // Whatever the reason is, whoever asks must look elsewhere for now.
    state.service.ready().await.map_err(|error| Problem::from(error).with_status(StatusCode::SERVICE_UNAVAILABLE))?;
    Ok(Json(HealthView { status: "ok" }))
}

/// Numbers for Prometheus.
///
/// Without a key from the machine itself; from elsewhere, or through a proxy, with one that has the scope `admin`.
#[utoipa::path(
    get, path = "/metrics", tag = "server", operation_id = "metrics",
    responses((status = 200, description = "In Prometheus' text form.", body = String, content_type = "application/openmetrics-text"), Problems)
)]
pub(crate) async fn metrics(State(state): State<ApiState>, peer: Option<Extension<Peer>>, headers: HeaderMap) -> Result<Response, Problem> {
    let is_local = peer.is_some_and(|Extension(peer)| peer.address.ip().to_canonical().is_loopback() && !peer.behind_proxy);
    if !is_local {
        state.gate.admit(&headers).await?.require(Scope::Admin)?;
    }
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    Ok((kind, state.metrics.text()).into_response())
}

/// This document.
#[utoipa::path(
    get, path = "/v1/openapi.json", tag = "server", operation_id = "openapi", security(()),
    responses((status = 200, description = "OpenAPI 3.1.", body = Object), OpenProblems)
)]
pub(crate) async fn document() -> Response {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    let text = DOCUMENT.get_or_init(crate::openapi);
    ([(header::CONTENT_TYPE, "application/json")], text.as_str()).into_response()
}

/// Who asks.
#[utoipa::path(
    get, path = "/v1/whoami", tag = "server", operation_id = "whoami",
    responses((status = 200, description = "The key, its project and its scopes.", body = WhoView), Problems)
)]
pub(crate) async fn whoami(caller: Authenticated) -> Json<WhoView> {
    Json(WhoView {
        key: caller.key.to_string(),
        project: caller.project.to_string(),
        scopes: caller.scopes.iter().map(|scope| scope.as_str()).collect(),
    })
}

/// What the server can.
#[utoipa::path(
    get, path = "/v1/server", tag = "server", operation_id = "server",
    responses((status = 200, description = "Version, engines, what `auto` takes and why, limits.", body = ServerView), Problems)
)]
pub(crate) async fn server(State(state): State<ApiState>, caller: Authenticated) -> Result<Json<ServerView>, Problem> {
    caller.require(Scope::Read)?;
    Ok(Json(translate::server_view(&state.service, state.domain.as_deref())))
}

/// Adds what the core counts to the numbers for Prometheus.
pub(super) fn count_sandboxes(state: &ApiState) {
    state.metrics.add(Sandboxes(Arc::clone(&state.service)));
}

struct Sandboxes(Arc<Service>);

impl std::fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sandboxes")
    }
}

impl Collector for Sandboxes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let counted = self.0.statistics();
        let mut live = encoder.encode_descriptor("sandboxes", "Sandboxes that live", None, MetricType::Gauge)?;
        for ((class, state), count) in &counted.live {
            let labels = [("isolation", *class), ("state", *state)];
            ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX)).encode(live.encode_family(&labels)?)?;
        }
        let mut ended = encoder.encode_descriptor("sandboxes_ended", "Sandboxes that ended, by cause", None, MetricType::Counter)?;
        for (cause, count) in &counted.ended {
            ConstCounter::new(*count).encode(ended.encode_family(&[("cause", *cause)])?)?;
        }
        for (name, help, count) in [
            ("sandboxes_created", "Sandboxes made", counted.created),
            ("sandboxes_not_made", "Sandboxes that could not be made", counted.not_made),
            ("sandboxes_adopted", "Sandboxes taken over from the server before", counted.adopted),
            ("orphans_removed", "Things on the host that nothing knew of, removed", counted.orphans_removed),
            ("creates_busy", "Requests for a sandbox answered `busy`", counted.busy),
        ] {
            ConstCounter::new(count).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        Ok(())
    }
}
