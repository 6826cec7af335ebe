//! Templates: what sandboxes are made from. Making one takes long, so its answer is a stream of what is being done.

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_core::{SweepOptions, TemplateSource};
use belljar_http::{Authenticated, JsonBody, OptionalJson, PathOf, Problem, QueryOf, content_type_is, read_limited};
use belljar_types::{Invalid, Scope, TemplateName};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::dto::{BuildLineView, GcRequest, GcResult, MakeTemplateRequest, TemplateList, TemplateQuery, TemplateView};
use crate::errors::{Problems, template_name};
use crate::state::ApiState;
use crate::stream::{self, Format, Line};
use crate::translate;

const RECIPE_LIMIT: usize = 1 << 20;

/// List templates.
///
/// Those of this project, and the server's.
#[utoipa::path(
    get, path = "/v1/templates", tag = "templates", operation_id = "listTemplates",
    responses((status = 200, description = "By name.", body = TemplateList), Problems)
)]
pub(crate) async fn list(State(state): State<ApiState>, caller: Authenticated) -> Result<Json<TemplateList>, Problem> {
    let all = state.service.templates(&caller).await?;
    Ok(Json(TemplateList { templates: all.iter().map(translate::owned_view).collect() }))
}

/// Get a template.
#[utoipa::path(
    get, path = "/v1/templates/{name}", tag = "templates", operation_id = "getTemplate",
    params(("name" = String, Path, description = "The template", example = "base")),
    responses((status = 200, description = "This project's, or else the server's.", body = TemplateView), Problems)
)]
pub(crate) async fn get(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(name): PathOf<String>,
) -> Result<Json<TemplateView>, Problem> {
    let owned = state.service.template(&caller, &template_name(&name)?).await?;
    Ok(Json(translate::owned_view(&owned)))
}

/// Make a template from a recipe or an image.
///
/// Replaces the one of that name when it is done. The answer is a stream of what is being done; its last line is `done` or `failed`. If the connection breaks, the
/// making goes on.
#[utoipa::path(
    post, path = "/v1/templates/{name}", tag = "templates", operation_id = "makeTemplate",
    params(("name" = String, Path, description = "The template", example = "mine"), TemplateQuery),
    request_body(content((MakeTemplateRequest = "application/json"), (String = "text/x-toml"))),
    responses((status = 200, description = "What is being done.", content((BuildLineView = "application/x-ndjson"))), Problems)
)]
pub(crate) async fn make(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<TemplateQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let name = new_name(&name)?;
    caller.require(if query.shared { Scope::Admin } else { Scope::Templates })?;
    let source = source(request).await?;
    Ok(make_from(&state, caller, name, source, query.shared, ()))
}

/// The name of a template that is to be: what cannot be one is the caller's mistake.
pub(super) fn new_name(text: &str) -> Result<TemplateName, Problem> {
    text.parse().map_err(|error: Invalid| translate::renamed("name", error).into())
}

async fn source(request: Request) -> Result<TemplateSource, Problem> {
    let is_toml = ["text/x-toml", "application/toml"].iter().any(|kind| content_type_is(request.headers(), kind));
    if is_toml {
        let bytes = read_limited(request.into_body(), RECIPE_LIMIT).await?;
        let text = String::from_utf8(bytes.into()).map_err(|_| Problem::invalid("recipe", "recipe: expected TOML, which is UTF-8"))?;
        return Ok(TemplateSource::Recipe(text));
    }
    let JsonBody(body) = JsonBody::<MakeTemplateRequest>::from_request(request, &()).await?;
    match (body.recipe, body.image) {
        (Some(recipe), None) => Ok(TemplateSource::Recipe(recipe)),
        (None, Some(image)) => Ok(TemplateSource::Image(image)),
        _ => Err(Problem::invalid("recipe", "recipe: expected either a recipe or an image")),
    }
}

/// Makes a template in a task of its own and tells how it goes. `held` lives as long as the making.
pub(super) fn make_from<H: Send + 'static>(
    state: &ApiState,
    caller: Authenticated,
    name: TemplateName,
    source: TemplateSource,
    shared: bool,
    held: H,
) -> Response {
    let (say, mut said) = mpsc::channel(64);
    let (end, ended) = tokio::sync::oneshot::channel();
    let service = std::sync::Arc::clone(&state.service);
    let owner = (!shared).then(|| caller.project.clone());
    tokio::spawn(async move {
        let made = service.make_template(&caller, &name, source, shared, say).await;
        drop(held);
        let line = match made {
            Ok(template) => BuildLineView::Done { template: Box::new(translate::template_view(&template, owner.as_ref(), None)) },
            Err(error) => {
                let causes = belljar_types::escape_untrusted(belljar_core::chain(&error).as_bytes());
                tracing::warn!(template = %name, error = causes, "a template was not made");
                let problem = serde_json::to_value(Problem::from(error).body(None)).unwrap_or_default();
                BuildLineView::Failed { problem }
            }
        };
        // Whoever asked may have left; the template is made all the same.
        let _ = end.send(Line::new(&line));
    });
    let progress = futures_util::stream::poll_fn(move |context| said.poll_recv(context));
    let progress = progress.map(|line: belljar_core::BuildLine| Line::new(&BuildLineView::Progress { text: line.text }));
    let last = futures_util::stream::once(ended).filter_map(|line| std::future::ready(line.ok()));
    stream::answer(Format::Ndjson, &BuildLineView::Heartbeat, progress.chain(last))
}

/// Remove a template.
///
/// Sandboxes made from it are not touched.
#[utoipa::path(
    delete, path = "/v1/templates/{name}", tag = "templates", operation_id = "removeTemplate",
    params(("name" = String, Path, description = "The template", example = "mine"), TemplateQuery),
    responses((status = 204, description = "It is gone."), Problems)
)]
pub(crate) async fn remove(
    State(state): State<ApiState>,
    caller: Authenticated,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<TemplateQuery>,
) -> Result<StatusCode, Problem> {
    state.service.remove_template(&caller, &template_name(&name)?, query.shared).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Clean up.
///
/// Removes layers that no template, no sandbox and no snapshot refers to, and orphans where that is asked for. Needs the scope `admin`.
#[utoipa::path(
    post, path = "/v1/gc", tag = "templates", operation_id = "collectGarbage", request_body = GcRequest,
    responses((status = 200, description = "What was, or would be, removed.", body = GcResult), Problems)
)]
pub(crate) async fn gc(
    State(state): State<ApiState>,
    caller: Authenticated,
    OptionalJson(request): OptionalJson<GcRequest>,
) -> Result<Json<GcResult>, Problem> {
    let options = SweepOptions { dry_run: request.dry_run, orphans: request.orphans };
    let cleaned = state.service.sweep(&caller, options).await?;
    Ok(Json(GcResult {
        layers: cleaned.layers.iter().map(ToString::to_string).collect(),
        bytes: cleaned.bytes,
        orphaned_volumes: cleaned.orphaned_volumes.iter().map(ToString::to_string).collect(),
        orphaned_snapshots: cleaned.orphaned_snapshots.iter().map(ToString::to_string).collect(),
        dry_run: options.dry_run,
    }))
}
