//! Webhooks: addresses that are told what happens to a project's sandboxes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use belljar_http::{Authenticated, JsonBody, PathOf, Problem};
use belljar_types::{MessageKind, WebhookId};

use crate::dto::{NewWebhookView, WebhookList, WebhookRequest};
use crate::errors::Problems;
use crate::state::ApiState;
use crate::translate;

/// List webhooks.
///
/// Those of the key's project, and how each fares.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "webhooks", operation_id = "listWebhooks",
    responses((status = 200, description = "Oldest first.", body = WebhookList), Problems)
)]
pub(crate) async fn list(State(state): State<ApiState>, caller: Authenticated) -> Result<Json<WebhookList>, Problem> {
    let webhooks = state.service.webhooks(&caller).await?;
    Ok(Json(WebhookList { webhooks: webhooks.iter().map(translate::webhook_view).collect() }))
}

/// Add a webhook.
///
/// The answer has the secret that messages are signed with; it is not shown again.
#[utoipa::path(
    post, path = "/v1/webhooks", tag = "webhooks", operation_id = "addWebhook", request_body = WebhookRequest,
    responses((status = 201, description = "It is told from now on.", body = NewWebhookView), Problems)
)]
pub(crate) async fn add(
    State(state): State<ApiState>,
    caller: Authenticated,
    JsonBody(request): JsonBody<WebhookRequest>,
) -> Result<(StatusCode, Json<NewWebhookView>), Problem> {
    let kinds: Vec<MessageKind> = request.kinds.iter().map(|kind| kind.parse()).collect::<Result<_, _>>()?;
    let (webhook, secret) = state.service.add_webhook(&caller, &request.url, kinds).await?;
    let view = NewWebhookView { webhook: translate::webhook_view(&webhook), secret: secret.reveal().clone() };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Remove a webhook.
///
/// What still waited for it is dropped.
#[utoipa::path(
    delete, path = "/v1/webhooks/{webhook}", tag = "webhooks", operation_id = "removeWebhook",
    params(("webhook" = String, Path, description = "The webhook", example = "wk3v9m2x8c7p4q6w5z2n")),
    responses((status = 204, description = "It is told nothing any more."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(id): PathOf<String>,
) -> Result<StatusCode, Problem> {
    let absent = || Problem::new(StatusCode::NOT_FOUND, "webhook_not_found", "there is no such webhook in this project".to_owned());
    let id: WebhookId = id.parse().map_err(|_| absent())?;
    if state.service.remove_webhook(&caller, &id).await? { Ok(StatusCode::NO_CONTENT) } else { Err(absent()) }
}
