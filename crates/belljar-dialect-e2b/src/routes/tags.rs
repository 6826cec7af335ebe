//! Tags: more names for a build, all behind the same template. The tag `default` is the plain name.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use belljar_core::OwnedTemplate;
use belljar_http::{Authenticated, moment};
use belljar_types::{TemplateName, Timestamp};

use super::extract::Given;
use super::templates::build_id;
use crate::dto::{AssignTags, DeleteTags};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{build, template_name};

pub(super) async fn assign(
    State(state): State<E2bState>,
    who: Authenticated,
    Given(request): Given<AssignTags>,
) -> Result<(StatusCode, Json<serde_json::Value>), ApiError> {
    let target = template_name(&request.target)?;
    if request.tags.is_empty() {
        return Err(ApiError::bad_request("tags: expected at least one"));
    }
    // All are looked at before any is written.
    let names = request.tags.iter().map(|tag| own_tag(&target, tag)).collect::<Result<Vec<_>, _>>()?;
    let owned = state.service.template(&who, &target).await?;
    for name in names {
        state.service.name_template(&who, &target, name).await?;
    }
    Ok((StatusCode::CREATED, Json(serde_json::json!({ "tags": request.tags, "buildID": build_id(&owned) }))))
}

/// A tag, or `name:tag` with the template's own name.
fn own_tag(target: &TemplateName, tag: &str) -> Result<TemplateName, ApiError> {
    match tag.split_once(':') {
        Some((name, tag)) if name == target.untagged() => build::tagged(name, tag),
        _ => build::tagged(target.untagged(), tag),
    }
}

pub(super) async fn delete(
    State(state): State<E2bState>,
    who: Authenticated,
    Given(request): Given<DeleteTags>,
) -> Result<StatusCode, ApiError> {
    let name = template_name(&request.name)?;
    let names = request.tags.iter().map(|tag| own_tag(&name, tag)).collect::<Result<Vec<_>, _>>()?;
    for name in names {
        state.service.remove_template(&who, &name, false).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn list(
    State(state): State<E2bState>,
    who: Authenticated,
    Path(id): Path<String>,
) -> Result<Json<Vec<serde_json::Value>>, ApiError> {
    let name = template_name(&id)?;
    let all = state.service.templates(&who).await?;
    let mut tags: Vec<&OwnedTemplate> = all.iter().filter(|owned| owned.template.name.untagged() == name.untagged()).collect();
    if tags.is_empty() {
        return Err(ApiError::no_template(&id));
    }
    tags.sort_by_key(|owned| std::cmp::Reverse(owned.template.created_at));
    let told = |owned: &&OwnedTemplate| {
        let made = moment(Timestamp(owned.template.created_at.saturating_mul(1000)));
        serde_json::json!({ "tag": build::tag_of(&owned.template.name), "buildID": build_id(owned), "createdAt": made })
    };
    Ok(Json(tags.iter().map(told).collect()))
}
