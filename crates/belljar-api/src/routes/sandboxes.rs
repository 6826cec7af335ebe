//! Sandboxes: make, find, change, end.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use belljar_http::{Authenticated, JsonBody, OptionalJson, Problem};
use belljar_types::Invalid;

use crate::dto::{
    CreateRequest, GuestMetricsView, LeaseRequest, ListQuery, PauseRequest, ResumeRequest, SandboxPage, SandboxView, UpdateRequest,
    UsageView,
};
use crate::errors::Problems;
use crate::extract::{Named, Opened};
use crate::state::ApiState;
use crate::translate;

/// Make a sandbox.
///
/// Answers when its agent does. With an `Idempotency-Key`, the same request again answers with the same sandbox, however often it is sent.
#[utoipa::path(
    post, path = "/v1/sandboxes", tag = "sandboxes", operation_id = "createSandbox",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 128 visible characters, of your choice", example = "job-17")),
    request_body = CreateRequest,
    responses((status = 201, description = "It runs.", body = SandboxView), Problems)
)]
pub(crate) async fn create(
    State(state): State<ApiState>,
    caller: Authenticated,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<CreateRequest>,
) -> Result<(StatusCode, Json<SandboxView>), Problem> {
    let key = headers.get("idempotency-key").map(|value| {
        let visible = || value.to_str().ok().map(str::to_owned);
        visible().ok_or_else(|| Invalid::new("Idempotency-Key", "1 to 128 visible ASCII characters", value.as_bytes()))
    });
    let request = translate::create(request, key.transpose()?)?;
    let sandbox = state.service.create(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(translate::sandbox_view(&sandbox))))
}

/// List sandboxes.
///
/// Those of this project, ended ones too as long as they are remembered.
#[utoipa::path(
    get, path = "/v1/sandboxes", tag = "sandboxes", operation_id = "listSandboxes", params(ListQuery),
    responses((status = 200, description = "A page.", body = SandboxPage), Problems)
)]
pub(crate) async fn list(
    State(state): State<ApiState>,
    caller: Authenticated,
    RawQuery(query): RawQuery,
) -> Result<Json<SandboxPage>, Problem> {
    let (filter, page) = translate::list_query(query.as_deref().unwrap_or_default())?;
    let page = state.service.list(&caller, &filter, &page).await?;
    let sandboxes = page.sandboxes.iter().map(translate::sandbox_view).collect();
    Ok(Json(SandboxPage { sandboxes, next_cursor: page.next.as_ref().map(translate::write_cursor) }))
}

/// Get a sandbox.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}", tag = "sandboxes", operation_id = "getSandbox",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "The sandbox, ended or not.", body = SandboxView), Problems)
)]
pub(crate) async fn get(State(state): State<ApiState>, sandbox: Named) -> Result<Json<SandboxView>, Problem> {
    let sandbox = state.service.sandbox(&sandbox.caller, &sandbox.id).await?;
    Ok(Json(translate::sandbox_view(&sandbox)))
}

/// Change a sandbox.
///
/// Its metadata, its idle time-out and its lease: all that are given, or none.
#[utoipa::path(
    patch, path = "/v1/sandboxes/{id}", tag = "sandboxes", operation_id = "updateSandbox",
    params(("id" = String, Path, description = "The sandbox")), request_body = UpdateRequest,
    responses((status = 200, description = "The sandbox as it is now.", body = SandboxView), Problems)
)]
pub(crate) async fn update(
    State(state): State<ApiState>,
    sandbox: Named,
    JsonBody(request): JsonBody<UpdateRequest>,
) -> Result<Json<SandboxView>, Problem> {
    let changed = state.service.update(&sandbox.caller, &sandbox.id, translate::change(request)?).await?;
    Ok(Json(translate::sandbox_view(&changed)))
}

/// End a sandbox.
///
/// Answers with the ended sandbox; one that has ended already is answered as it is.
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}", tag = "sandboxes", operation_id = "killSandbox",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "The ended sandbox.", body = SandboxView), Problems)
)]
pub(crate) async fn kill(State(state): State<ApiState>, sandbox: Named) -> Result<Json<SandboxView>, Problem> {
    let ended = state.service.kill(&sandbox.caller, &sandbox.id).await?;
    Ok(Json(translate::sandbox_view(&ended)))
}

/// Set the lease.
///
/// The sandbox ends so long from now, unless the lease is set again.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/lease", tag = "sandboxes", operation_id = "setLease",
    params(("id" = String, Path, description = "The sandbox")), request_body = LeaseRequest,
    responses((status = 200, description = "The sandbox as it is now.", body = SandboxView), Problems)
)]
pub(crate) async fn lease(
    State(state): State<ApiState>,
    sandbox: Named,
    JsonBody(request): JsonBody<LeaseRequest>,
) -> Result<Json<SandboxView>, Problem> {
    let changed = state.service.set_lease(&sandbox.caller, &sandbox.id, translate::lease(&request)?).await?;
    Ok(Json(translate::sandbox_view(&changed)))
}

/// Pause it.
///
/// It uses no processor until it is resumed, and its lease does not run. With its memory its processes go on where they stood; where that is
/// kept meanwhile, the answer's `pause.memory` says. One that is paused already is answered as it is.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/pause", tag = "sandboxes", operation_id = "pauseSandbox",
    params(("id" = String, Path, description = "The sandbox")), request_body = PauseRequest,
    responses((status = 200, description = "The sandbox as it is now.", body = SandboxView), Problems)
)]
pub(crate) async fn pause(
    State(state): State<ApiState>,
    sandbox: Named,
    OptionalJson(request): OptionalJson<PauseRequest>,
) -> Result<Json<SandboxView>, Problem> {
    let paused = state.service.pause(&sandbox.caller, &sandbox.id, translate::kept(&request)?).await?;
    Ok(Json(translate::sandbox_view(&paused)))
}

/// Resume it.
///
/// Connections to it were cut by the pause; processes and their output are where they were. One that runs is left as it is.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/resume", tag = "sandboxes", operation_id = "resumeSandbox",
    params(("id" = String, Path, description = "The sandbox")), request_body = ResumeRequest,
    responses((status = 200, description = "The sandbox as it is now.", body = SandboxView), Problems)
)]
pub(crate) async fn resume(
    State(state): State<ApiState>,
    sandbox: Named,
    OptionalJson(request): OptionalJson<ResumeRequest>,
) -> Result<Json<SandboxView>, Problem> {
    let resumed = state.service.resume(&sandbox.caller, &sandbox.id, translate::resumed_lease(&request)?).await?;
    Ok(Json(translate::sandbox_view(&resumed)))
}

/// What it used.
///
/// Counted by the host; the sandbox cannot change it.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/usage", tag = "sandboxes", operation_id = "getUsage",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "What it used so far.", body = UsageView), Problems)
)]
pub(crate) async fn usage(State(state): State<ApiState>, sandbox: Named) -> Result<Json<UsageView>, Problem> {
    let usage = state.service.usage(&sandbox.caller, &sandbox.id).await?;
    Ok(Json(translate::usage_view(&usage)))
}

/// What it looks like from inside.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/metrics", tag = "sandboxes", operation_id = "getGuestMetrics",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "CPU, memory and disk as its agent sees them.", body = GuestMetricsView), Problems)
)]
pub(crate) async fn metrics(sandbox: Opened) -> Result<Json<GuestMetricsView>, Problem> {
    let metrics = sandbox.ask(sandbox.session.metrics()).await?;
    Ok(Json(translate::metrics_view(&metrics)))
}
