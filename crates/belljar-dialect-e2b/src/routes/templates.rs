//! Templates, as far as E2B's clients look at them: there is one build of each, and its name is its id.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use belljar_core::OwnedTemplate;
use belljar_http::Authenticated;
use belljar_types::{Limits, Timestamp};

use crate::dto::{TemplateAlias, TemplateDto};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{ENVD_VERSION, cpu_count, moment, template_name};

const MIB: u64 = 1 << 20;

pub(super) async fn list(State(state): State<E2bState>, who: Authenticated) -> Result<Json<Vec<TemplateDto>>, ApiError> {
    let templates = state.service.templates(&who).await?;
    let limits = &state.service.config().default_limits;
    Ok(Json(templates.iter().map(|owned| dto(owned, limits)).collect()))
}

pub(super) async fn show(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Result<Json<TemplateDto>, ApiError> {
    let owned = state.service.template(&who, &template_name(&id)?).await?;
    Ok(Json(dto(&owned, &state.service.config().default_limits)))
}

pub(super) async fn alias(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(alias): Path<String>,
) -> Result<Json<TemplateAlias>, ApiError> {
    let owned = state.service.template(&who, &template_name(&alias)?).await?;
    Ok(Json(TemplateAlias { template_id: owned.template.name.to_string(), public: owned.owner.is_none() }))
}

pub(super) async fn tags(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(id): Path<String>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let owned = state.service.template(&who, &template_name(&id)?).await?;
    let made = moment(Timestamp(owned.template.created_at.saturating_mul(1000)));
    Ok(Json(serde_json::json!([{ "tag": "default", "buildID": build_id(&owned), "createdAt": made }])))
}

pub(super) async fn remove(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    state.service.remove_template(&who, &template_name(&id)?, false).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Projects are what E2B calls teams; a key knows its own.
pub(super) async fn teams(who: Authenticated) -> Json<serde_json::Value> {
    Json(serde_json::json!([{ "teamID": who.project.as_str(), "name": who.project.as_str(), "apiKey": "", "isDefault": true }]))
}

fn dto(owned: &OwnedTemplate, limits: &Limits) -> TemplateDto {
    let template = &owned.template;
    let made = moment(Timestamp(template.created_at.saturating_mul(1000)));
    TemplateDto {
        template_id: template.name.to_string(),
        build_id: build_id(owned),
        cpu_count: cpu_count(limits),
        memory_mb: limits.memory_bytes / MIB,
        disk_size_mb: limits.disk_bytes / MIB,
        public: owned.owner.is_none(),
        aliases: vec![template.name.to_string()],
        names: vec![template.name.to_string()],
        created_at: made.clone(),
        updated_at: made,
        created_by: None,
        last_spawned_at: None,
        spawn_count: 0,
        build_count: 1,
        build_status: "ready",
        envd_version: ENVD_VERSION,
    }
}

/// A build is what its layers are: the topmost one's digest, in the form of a UUID.
fn build_id(owned: &OwnedTemplate) -> String {
    let digest = owned.template.layers.last().map_or("", |layer| layer.as_str());
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or("0");
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
