//! Code that keeps its state: run it in a context, and make, restart, interrupt and remove contexts.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use belljar_http::{JsonBody, OptionalJson, PathOf, Problem};
use belljar_interpreter::{ContextId, Event, Execution, Interpreter, InterpreterError};
use futures_util::Stream;
use serde::Deserialize;

use crate::dto::{CodeLineView, CodeOutcome, CodeRequest, ContextList, ContextView, NewContextRequest};
use crate::errors::{Problems, context_id};
use crate::extract::Opened;
use crate::stream::{self, Format, Line};
use crate::translate::{self, Collected, code_line, code_problem, context_view};

/// Code, and its JSON.
const BODY_LIMIT: usize = 16 << 20;

/// Run code.
///
/// In a context that remembers what ran before. Answers when the code has ended; with `Accept: application/x-ndjson` or `text/event-stream` the answer goes
/// on as the code does: `began`, what it writes and shows, `end`. If the request is given up, the code is interrupted. The sandbox's template must have
/// kernels, as `code-interpreter-v1` does.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/code", tag = "code", operation_id = "runCode",
    params(("id" = String, Path, description = "The sandbox")), request_body = CodeRequest,
    responses(
        (status = 200, description = "It ran, well or not.", content(
            (CodeOutcome = "application/json"), (CodeLineView = "application/x-ndjson"), (CodeLineView = "text/event-stream")
        )),
        Problems
    )
)]
pub(crate) async fn run(
    sandbox: Opened,
    headers: HeaderMap,
    JsonBody(request): JsonBody<CodeRequest, BODY_LIMIT>,
) -> Result<Response, Problem> {
    let run = translate::run(request)?;
    let mut execution = Interpreter::new(sandbox.session).execute(&run).await.map_err(code_problem)?;
    if let Some(format) = Format::asked(&headers) {
        return Ok(stream::answer(format, &CodeLineView::Heartbeat, lines(execution)));
    }
    let mut collected = Collected::default();
    while let Some(event) = next(&mut execution).await.map_err(code_problem)? {
        collected.take(event);
    }
    Ok(Json(collected.finish()).into_response())
}

fn lines(execution: Execution) -> impl Stream<Item = Line> + Send + 'static {
    futures_util::stream::unfold(Some(execution), |execution| async move {
        let mut execution = execution?;
        loop {
            match next(&mut execution).await {
                Ok(Some(event)) => {
                    if let Some(line) = code_line(event) {
                        return Some((Line::new(&line), Some(execution)));
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    let problem = serde_json::to_value(code_problem(error).body(None)).unwrap_or_default();
                    return Some((Line::new(&CodeLineView::Failed { problem }), None));
                }
            }
        }
    })
}

/// The next event, or the end of the sandbox.
async fn next(execution: &mut Execution) -> Result<Option<Event>, InterpreterError> {
    let session = execution.session().clone();
    tokio::select! {
        biased;
        event = execution.next() => event,
        _ended = session.ended() => Err(InterpreterError::Sandbox(stream::how_it_ended(&session))),
    }
}

/// List contexts.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/code/contexts", tag = "code", operation_id = "listContexts",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "The contexts, oldest first.", body = ContextList), Problems)
)]
pub(crate) async fn list(sandbox: Opened) -> Result<Json<ContextList>, Problem> {
    let contexts = Interpreter::new(sandbox.session).contexts().await.map_err(code_problem)?;
    Ok(Json(ContextList { contexts: contexts.into_iter().map(context_view).collect() }))
}

/// Make a context.
///
/// Contexts of one language know nothing of each other's variables; they share the sandbox's files.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/code/contexts", tag = "code", operation_id = "createContext",
    params(("id" = String, Path, description = "The sandbox")), request_body = NewContextRequest,
    responses((status = 201, description = "It is there, and its kernel runs.", body = ContextView), Problems)
)]
pub(crate) async fn create(sandbox: Opened, OptionalJson(request): OptionalJson<NewContextRequest>) -> Result<Response, Problem> {
    let language = request.language.as_deref().unwrap_or(translate::DEFAULT_LANGUAGE);
    let made = Interpreter::new(sandbox.session).create(language, request.cwd.as_deref()).await.map_err(code_problem)?;
    Ok((StatusCode::CREATED, Json(context_view(made))).into_response())
}

#[derive(Deserialize)]
pub(crate) struct WithContext {
    context: String,
}

impl WithContext {
    fn id(&self) -> Result<ContextId, Problem> {
        context_id(&self.context)
    }
}

/// Remove a context.
#[utoipa::path(
    delete, path = "/v1/sandboxes/{id}/code/contexts/{context}", tag = "code", operation_id = "removeContext",
    params(("id" = String, Path, description = "The sandbox"), ("context" = String, Path, description = "The context")),
    responses((status = 204, description = "It is gone; what ran in it has ended."), Problems)
)]
pub(crate) async fn remove(sandbox: Opened, PathOf(context): PathOf<WithContext>) -> Result<StatusCode, Problem> {
    Interpreter::new(sandbox.session).remove(&context.id()?).await.map_err(code_problem)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Restart a context.
///
/// All it remembered is gone; what runs in it ends as `lost`.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/code/contexts/{context}/restart", tag = "code", operation_id = "restartContext",
    params(("id" = String, Path, description = "The sandbox"), ("context" = String, Path, description = "The context")),
    responses((status = 204, description = "A new kernel runs."), Problems)
)]
pub(crate) async fn restart(sandbox: Opened, PathOf(context): PathOf<WithContext>) -> Result<StatusCode, Problem> {
    Interpreter::new(sandbox.session).restart(&context.id()?).await.map_err(code_problem)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Interrupt a context.
///
/// As Ctrl-C does: the code that runs in it gets an error of its language; what was remembered stays.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/code/contexts/{context}/interrupt", tag = "code", operation_id = "interruptContext",
    params(("id" = String, Path, description = "The sandbox"), ("context" = String, Path, description = "The context")),
    responses((status = 204, description = "The interrupt was sent."), Problems)
)]
pub(crate) async fn interrupt(sandbox: Opened, PathOf(context): PathOf<WithContext>) -> Result<StatusCode, Problem> {
    Interpreter::new(sandbox.session).interrupt(&context.id()?).await.map_err(code_problem)?;
    Ok(StatusCode::NO_CONTENT)
}
