//! What clients ask before they have shown a key.

use axum::extract::State;
use axum::http::{Extensions, HeaderMap, Uri};
use axum::routing::get;
use axum::{Json, Router};
use belljar_http::origin;

use super::{API_PATH, TOOLBOX_PATH, events};
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::translate::DAEMON_VERSION;

/// Minutes that Daytona keeps what is stopped before it archives it at the latest.
const LONGEST_ARCHIVE: u64 = 30 * 24 * 60;

pub(super) fn router() -> Router<DaytonaState> {
    Router::new()
        .route("/config", get(config))
        .route("/health", get(|| async { Json(serde_json::json!({ "status": "ok" })) }))
        .route("/socket.io/", get(events::connect))
}

async fn config(
    State(state): State<DaytonaState>,
    headers: HeaderMap,
    extensions: Extensions,
    uri: Uri,
) -> Result<Json<serde_json::Value>, ApiError> {
    let origin = origin(&headers, &extensions, &uri).ok_or_else(|| ApiError::bad_request("the request names no host"))?;
    let scheme = if origin.starts_with("https") { "https" } else { "http" };
    let template = match &state.domain {
        Some(domain) => format!("{scheme}://{{{{PORT}}}}-{{{{sandboxId}}}}.{domain}"),
        None => format!("{origin}{}/{{{{sandboxId}}}}/{{{{PORT}}}}/", super::PREVIEW_PATH),
    };
    Ok(Json(serde_json::json!({
        "version": DAEMON_VERSION,
        "oidc": { "issuer": origin, "clientId": "", "audience": "" },
        "linkedAccountsEnabled": false,
        "announcements": {},
        "proxyTemplateUrl": template,
        "proxyToolboxUrl": format!("{origin}{TOOLBOX_PATH}"),
        "defaultSnapshot": state.service.config().default_template.to_string(),
        "dashboardUrl": format!("{origin}{API_PATH}"),
        "maxAutoArchiveInterval": LONGEST_ARCHIVE,
        "maintananceMode": false,
        "environment": "self-hosted",
    })))
}
