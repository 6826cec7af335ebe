//! Projects and keys, for administrators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use belljar_http::{Authenticated, JsonBody, PathOf, Problem, QueryOf};
use belljar_types::{ProjectId, Quota, Scope};

use crate::dto::{KeyList, KeyRequest, KeysQuery, NewKeyView, ProjectList, ProjectRequest, ProjectUpdate, ProjectView};
use crate::errors::{Problems, key_id, project_id};
use crate::state::ApiState;
use crate::translate;

/// List projects.
///
/// Administrators see all, others their own.
#[utoipa::path(
    get, path = "/v1/projects", tag = "projects", operation_id = "listProjects",
    responses((status = 200, description = "By name.", body = ProjectList), Problems)
)]
pub(crate) async fn list(State(state): State<ApiState>, caller: Authenticated) -> Result<Json<ProjectList>, Problem> {
    let projects = state.service.projects(&caller).await?;
    Ok(Json(ProjectList { projects: projects.iter().map(translate::project_view).collect() }))
}

/// Make a project.
#[utoipa::path(
    post, path = "/v1/projects", tag = "projects", operation_id = "addProject", request_body = ProjectRequest,
    responses((status = 201, description = "It is there.", body = ProjectView), Problems)
)]
pub(crate) async fn add(
    State(state): State<ApiState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<ProjectRequest>,
) -> Result<(StatusCode, Json<ProjectView>), Problem> {
    caller.require(Scope::Admin)?;
    let id: ProjectId = request.id.parse().map_err(|error| translate::renamed("id", error))?;
    let quota = request.quota.map(|quota| translate::quota(&quota, Quota::default())).transpose()?;
    let project = state.service.add_project(&caller, id, quota).await?;
    Ok((StatusCode::CREATED, Json(translate::project_view(&project))))
}

/// Get a project.
#[utoipa::path(
    get, path = "/v1/projects/{project}", tag = "projects", operation_id = "getProject",
    params(("project" = String, Path, description = "The project", example = "default")),
    responses((status = 200, description = "The project.", body = ProjectView), Problems)
)]
pub(crate) async fn get(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(project): PathOf<String>,
) -> Result<Json<ProjectView>, Problem> {
    let project = state.service.project(&caller, &project_id(&project)?).await?;
    Ok(Json(translate::project_view(&project)))
}

/// Change how much a project may have.
///
/// What it has already stays.
#[utoipa::path(
    patch, path = "/v1/projects/{project}", tag = "projects", operation_id = "updateProject",
    params(("project" = String, Path, description = "The project", example = "default")), request_body = ProjectUpdate,
    responses((status = 200, description = "The project as it is now.", body = ProjectView), Problems)
)]
pub(crate) async fn update(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(project): PathOf<String>,
    JsonBody(request): JsonBody<ProjectUpdate>,
) -> Result<Json<ProjectView>, Problem> {
    caller.require(Scope::Admin)?;
    let id = project_id(&project)?;
    let before = state.service.project(&caller, &id).await?.quota;
    let project = state.service.set_quota(&caller, &id, translate::quota(&request.quota, before)?).await?;
    Ok(Json(translate::project_view(&project)))
}

/// Remove a project with its keys.
///
/// Not while it has sandboxes that live.
#[utoipa::path(
    delete, path = "/v1/projects/{project}", tag = "projects", operation_id = "removeProject",
    params(("project" = String, Path, description = "The project", example = "default")),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(project): PathOf<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::Admin)?;
    state.service.remove_project(&caller, &project_id(&project)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List keys.
///
/// Without their secrets, which are kept nowhere.
#[utoipa::path(
    get, path = "/v1/keys", tag = "projects", operation_id = "listKeys", params(KeysQuery),
    responses((status = 200, description = "The keys.", body = KeyList), Problems)
)]
pub(crate) async fn keys(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(query): QueryOf<KeysQuery>,
) -> Result<Json<KeyList>, Problem> {
    caller.require(Scope::Admin)?;
    let project = query.project.as_deref().map(project_id).transpose()?;
    let keys = state.service.keys(&caller, project.as_ref()).await?;
    Ok(Json(KeyList { keys: keys.iter().map(translate::key_view).collect() }))
}

/// Make a key.
///
/// The answer has its secret, this once.
#[utoipa::path(
    post, path = "/v1/keys", tag = "projects", operation_id = "addKey", request_body = KeyRequest,
    responses((status = 201, description = "The key and its secret.", body = NewKeyView), Problems)
)]
pub(crate) async fn add_key(
    State(state): State<ApiState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<KeyRequest>,
) -> Result<(StatusCode, Json<NewKeyView>), Problem> {
    caller.require(Scope::Admin)?;
    let made = state.service.add_key(&caller, translate::new_key(request)?).await?;
    let view = NewKeyView { key: translate::key_view(&made.key), secret: made.secret.reveal().clone() };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Remove a key.
///
/// From now on it is refused.
#[utoipa::path(
    delete, path = "/v1/keys/{key}", tag = "projects", operation_id = "removeKey",
    params(("key" = String, Path, description = "The key's public name")),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove_key(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(key): PathOf<String>,
) -> Result<StatusCode, Problem> {
    caller.require(Scope::Admin)?;
    state.service.remove_key(&caller, &key_id(&key)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
