//! Templates, as far as E2B's clients look at them: a template's name is its id, and each tag of it has one build.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use belljar_core::OwnedTemplate;
use belljar_http::{Authenticated, moment};
use belljar_types::{Limits, Timestamp};

use super::extract::Given;
use super::snapshots;
use crate::dto::{TemplateAlias, TemplateChange, TemplateDto};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{ENVD_VERSION, cpu_count, template_name};

const MIB: u64 = 1 << 20;

pub(super) async fn list(State(state): State<E2bState>, who: Authenticated) -> Result<Json<Vec<TemplateDto>>, ApiError> {
    let templates = state.service.templates(&who).await?;
    let limits = &state.service.config().default_limits;
    // Tags are one template in E2B's eyes: its plain name stands for it, or else the newest tag.
    let mut seen: BTreeMap<&str, &OwnedTemplate> = BTreeMap::new();
    for owned in &templates {
        let rank = |owned: &OwnedTemplate| (owned.template.name.tag().is_none(), owned.template.created_at);
        seen.entry(owned.template.name.untagged())
            .and_modify(|best| {
                if rank(owned) > rank(best) {
                    *best = owned;
                }
            })
            .or_insert(owned);
    }
    Ok(Json(seen.into_values().map(|owned| dto(owned, limits)).collect()))
}

pub(super) async fn show(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Result<Json<TemplateDto>, ApiError> {
    let owned = any_of(&state, &who, &id).await?;
    Ok(Json(dto(&owned, &state.service.config().default_limits)))
}

pub(super) async fn alias(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(alias): Path<String>,
) -> Result<Json<TemplateAlias>, ApiError> {
    let owned = any_of(&state, &who, &alias).await?;
    Ok(Json(TemplateAlias { template_id: owned.template.name.untagged().to_owned(), public: owned.owner.is_none() }))
}

/// The template of that name; if it has no tag, one with any.
async fn any_of(state: &E2bState, who: &Authenticated, id: &str) -> Result<OwnedTemplate, ApiError> {
    let name = template_name(id)?;
    let all = state.service.templates(who).await?;
    let exact = all.iter().find(|owned| owned.template.name == name);
    let tagged = || all.iter().find(|owned| name.tag().is_none() && owned.template.name.untagged() == name.as_str());
    exact.or_else(tagged).cloned().ok_or_else(|| ApiError::no_template(id))
}

/// Removes a template with all its tags, or one tag if the id names it.
pub(super) async fn remove(State(state): State<E2bState>, who: Authenticated, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    let name = template_name(&id)?;
    let all = state.service.templates(&who).await?;
    let meant = |owned: &&OwnedTemplate| {
        let other = &owned.template.name;
        owned.owner.is_some() && (*other == name || name.tag().is_none() && other.untagged() == name.as_str())
    };
    let meant: Vec<&OwnedTemplate> = all.iter().filter(meant).collect();
    // For clients a snapshot is a template, too.
    if meant.is_empty() {
        let was_snapshot = snapshots::remove(&state, &who, &id).await?;
        return if was_snapshot { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::no_template(&id)) };
    }
    for owned in meant {
        state.service.remove_template(&who, &owned.template.name, false).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a template everybody's, or its project's own again. What is everybody's is the server's, so that needs the scope `admin`.
pub(super) async fn change(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(id): Path<String>,
    Given(change): Given<TemplateChange>,
) -> Result<Json<serde_json::Value>, ApiError> {
    let owned = any_of(&state, &who, &id).await?;
    if let Some(public) = change.public
        && public != owned.owner.is_none()
    {
        state.service.share_template(&who, &owned.template.name, public).await?;
    }
    Ok(Json(serde_json::json!({ "names": [owned.template.name.untagged()] })))
}

/// Projects are what E2B calls teams; a key knows its own.
pub(super) async fn teams(who: Authenticated) -> Json<serde_json::Value> {
    Json(serde_json::json!([{ "teamID": who.project.as_str(), "name": who.project.as_str(), "apiKey": "", "isDefault": true }]))
}

fn dto(owned: &OwnedTemplate, limits: &Limits) -> TemplateDto {
    let template = &owned.template;
    let made = moment(Timestamp(template.created_at.saturating_mul(1000)));
    TemplateDto {
        template_id: template.name.untagged().to_owned(),
        build_id: build_id(owned),
        cpu_count: cpu_count(limits),
        memory_mb: limits.memory_bytes / MIB,
        disk_size_mb: limits.disk_bytes / MIB,
        public: owned.owner.is_none(),
        aliases: vec![template.name.untagged().to_owned()],
        names: vec![template.name.untagged().to_owned()],
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
pub(super) fn build_id(owned: &OwnedTemplate) -> String {
    let digest = owned.template.layers.last().map_or("", |layer| layer.as_str());
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or("0");
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
