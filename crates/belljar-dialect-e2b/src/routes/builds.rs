//! Builds of templates: asked for, started, looked at. The name of a template is its id.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use belljar_http::Authenticated;
use belljar_types::BuildId;

use super::extract::{Asked, Given};
use crate::dto::{BuildAccepted, BuildRequest, BuildStart, BuildStatus, LogQuery};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::build;

/// What E2B gives at most at a time; its clients come back for more.
const LINES_MAX: usize = 100;

pub(super) async fn request(
    State(state): State<E2bState>,
    who: Authenticated,
    Given(request): Given<BuildRequest>,
) -> Result<(StatusCode, Json<BuildAccepted>), ApiError> {
    let name = request.name.or(request.alias).ok_or_else(|| ApiError::bad_request("a build needs a name"))?;
    accept(&state, &who, &name, &request.tags)
}

/// The same for a template that has an id already.
pub(super) async fn again(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(id): Path<String>,
    Given(request): Given<BuildRequest>,
) -> Result<(StatusCode, Json<BuildAccepted>), ApiError> {
    accept(&state, &who, &id, &request.tags)
}

fn accept(state: &E2bState, who: &Authenticated, name: &str, tags: &[String]) -> Result<(StatusCode, Json<BuildAccepted>), ApiError> {
    // Projects are what E2B calls teams.
    let plain = name.rsplit_once('/').map_or(name, |(_team, plain)| plain);
    let names = build::names(plain, tags)?;
    let record = state.service.reserve_build(who, names, false)?;
    let template = record.names.first().map_or(plain, |name| name.untagged()).to_owned();
    let accepted = BuildAccepted {
        build_id: record.id.to_string(),
        public: false,
        names: vec![template.clone()],
        tags: record.names.iter().map(|name| build::tag_of(name).to_owned()).collect(),
        aliases: vec![template.clone()],
        template_id: template,
    };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

pub(super) async fn start(
    State(state): State<E2bState>,
    who: Authenticated,
    Path((_template, id)): Path<(String, String)>,
    Given(start): Given<BuildStart>,
) -> Result<StatusCode, ApiError> {
    state.service.start_build(&who, &build_id(&id)?, build::plan(start)?).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(super) async fn status(
    State(state): State<E2bState>,
    who: Authenticated,
    Path((template, id)): Path<(String, String)>,
    Asked(query): Asked<LogQuery>,
) -> Result<Json<BuildStatus>, ApiError> {
    let limit = query.limit.unwrap_or(LINES_MAX).min(LINES_MAX);
    let view = state.service.build(&who, &build_id(&id)?, query.logs_offset.unwrap_or(0), limit).await?;
    Ok(Json(build::status(&view, &template, build::level(query.level.as_deref()))))
}

pub(super) async fn logs(
    State(state): State<E2bState>,
    who: Authenticated,
    Path((_template, id)): Path<(String, String)>,
    Asked(query): Asked<LogQuery>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let limit = query.limit.unwrap_or(LINES_MAX).min(LINES_MAX);
    let view = state.service.build(&who, &build_id(&id)?, query.logs_offset.unwrap_or(0), limit).await?;
    let lines: Vec<_> = view.log.iter().map(build::log_entry).collect();
    Ok(Json(serde_json::json!({ "logs": lines })))
}

fn build_id(text: &str) -> Result<BuildId, ApiError> {
    let unknown =
        || ApiError::new(StatusCode::NOT_FOUND, format!("build '{}' not found", belljar_types::escape_untrusted(text.as_bytes())));
    text.parse().map_err(|_| unknown())
}
