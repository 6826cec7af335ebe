//! E2B's code interpreter, on the sandbox's kernels: `/execute` and `/contexts` at a port of its own. Refusals are plain text here.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_core::{CoreError, Session};
use belljar_http::{Hangup, read_limited};
use belljar_interpreter::{Context, ContextId, Execution, Interpreter, InterpreterError, Refusal, Run, Where};
use bytes::Bytes;
use futures_util::stream;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::daemon::with_cors;
use super::process::own_env;
use crate::dto::{ContextDto, Execute, NewContext};
use crate::errors::{ApiError, sandbox_gone};
use crate::stream::cut;
use crate::translate::output_lines;

/// A sign of life when code says nothing for so long.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Code and its JSON.
const LARGEST_BODY: usize = 16 << 20;

/// Answers a request for a sandbox's interpreter.
pub(crate) async fn answer(session: Session, request: Request) -> Response {
    if request.method() == Method::OPTIONS {
        return with_cors(StatusCode::NO_CONTENT.into_response());
    }
    let interpreter = Interpreter::new(session);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let answered = match (method.as_str(), parts.as_slice()) {
        ("GET", ["health"]) => Ok(Json("OK").into_response()),
        ("POST", ["execute"]) => execute(&interpreter, request).await,
        ("POST", ["contexts"]) => create(&interpreter, request).await,
        ("GET", ["contexts"]) => list(&interpreter).await,
        ("POST", ["contexts", id, "restart"]) => with_context(&interpreter, id, async |id| interpreter.restart(id).await).await,
        ("DELETE", ["contexts", id]) => with_context(&interpreter, id, async |id| interpreter.remove(id).await).await,
        _ => Err((StatusCode::NOT_FOUND, Json(json!({ "detail": "Not Found" }))).into_response()),
    };
    with_cors(answered.unwrap_or_else(|refusal| refusal))
}

async fn execute(interpreter: &Interpreter, request: Request) -> Result<Response, Response> {
    let hangup = request.extensions().get::<Hangup>().cloned();
    let body: Execute = read(request).await?;
    let named = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let (context, language) = (named(&body.context_id), named(&body.language));
    if context.is_some() && language.is_some() {
        return Err(plain(StatusCode::BAD_REQUEST, "Only one of context_id or language can be provided"));
    }
    let is_java = language.as_ref().is_some_and(|language| language.trim().eq_ignore_ascii_case("java"));
    let place = match &context {
        Some(id) => Where::Context(id.parse().map_err(|_| no_context(id))?),
        None => Where::Language(language.unwrap_or_else(|| "python".to_owned())),
    };
    let always_env = own_env(&interpreter.session().sandbox());
    let run = Run { place, code: body.code, env: body.env_vars.unwrap_or_default(), always_env, deadline: None };
    match interpreter.execute(&run).await {
        Ok(execution) => Ok(follow(execution, is_java, hangup)),
        // It ran when the request came: clients tell an end under way by the connection, not by a status.
        Err(InterpreterError::Sandbox(CoreError::Ended { .. })) => {
            Ok(Body::from_stream(stream::once(async move { Err::<Bytes, _>(cut(hangup.as_ref())) })).into_response())
        }
        Err(error) => Err(refused(interpreter, context.as_deref(), error)),
    }
}

/// Sends what the code gives as it comes, and cuts the line when the sandbox ends. A client that goes away takes the code with it.
fn follow(execution: Execution, is_java: bool, hangup: Option<Hangup>) -> Response {
    let body = stream::unfold(Some(execution), move |execution| {
        let hangup = hangup.clone();
        async move {
            let mut execution = execution?;
            let session = execution.session().clone();
            let event = tokio::select! {
                biased;
                _ended = session.ended() => return Some((Err(cut(hangup.as_ref())), None)),
                event = execution.next() => event,
                () = tokio::time::sleep(KEEPALIVE) => return Some((Ok(line(&json!({ "type": "keepalive" }))), Some(execution))),
            };
            match event {
                Ok(Some(event)) => {
                    let lines = output_lines(event, is_java).iter().map(line).collect::<Vec<_>>().concat();
                    Some((Ok(Bytes::from(lines)), Some(execution)))
                }
                Ok(None) => None,
                Err(InterpreterError::Sandbox(CoreError::Ended { .. })) => Some((Err(cut(hangup.as_ref())), None)),
                Err(error) => {
                    let lost = json!({ "type": "error", "name": "UnexpectedEndOfExecution", "value": error.to_string(), "traceback": "" });
                    let lines = [line(&lost), line(&json!({ "type": "end_of_execution" }))].concat();
                    Some((Ok(Bytes::from(lines)), None))
                }
            }
        }
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::OK, headers, Body::from_stream(body)).into_response()
}

fn line(value: &serde_json::Value) -> Bytes {
    let mut text = value.to_string();
    text.push('\n');
    text.into()
}

async fn create(interpreter: &Interpreter, request: Request) -> Result<Response, Response> {
    let body: NewContext = read(request).await?;
    let language = body.language.as_deref().map(str::trim).filter(|language| !language.is_empty()).unwrap_or("python");
    let cwd = body.cwd.as_deref().filter(|cwd| !cwd.is_empty());
    match interpreter.create(language, cwd).await {
        Ok(context) => Ok(Json(shown(context)).into_response()),
        Err(error) => Err(refused(interpreter, None, error)),
    }
}

async fn list(interpreter: &Interpreter) -> Result<Response, Response> {
    match interpreter.contexts().await {
        Ok(contexts) => Ok(Json(contexts.into_iter().map(shown).collect::<Vec<_>>()).into_response()),
        Err(error) => Err(refused(interpreter, None, error)),
    }
}

async fn with_context(
    interpreter: &Interpreter,
    id: &str,
    work: impl AsyncFnOnce(&ContextId) -> Result<(), InterpreterError>,
) -> Result<Response, Response> {
    // What cannot be the name of a context is one that does not exist.
    match work(&id.parse().map_err(|_| no_context(id))?).await {
        Ok(()) => Ok(Json(serde_json::Value::Null).into_response()),
        Err(error) => Err(refused(interpreter, Some(id), error)),
    }
}

fn shown(Context { id, language, cwd }: Context) -> ContextDto {
    ContextDto { id: id.to_string(), language, cwd }
}

async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Response> {
    let bytes = read_limited(request.into_body(), LARGEST_BODY).await.map_err(|problem| ApiError::from(problem).into_response())?;
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(bytes)
        .map_err(|error| (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": error.to_string() }))).into_response())
}

fn no_context(id: &str) -> Response {
    plain(StatusCode::NOT_FOUND, &format!("Context {} not found", belljar_types::escape_untrusted(id.as_bytes())))
}

fn plain(status: StatusCode, words: &str) -> Response {
    (status, words.to_owned()).into_response()
}

fn refused(interpreter: &Interpreter, context: Option<&str>, error: InterpreterError) -> Response {
    match error {
        InterpreterError::Sandbox(CoreError::Ended { .. } | CoreError::NoSandbox { .. }) => {
            sandbox_gone(interpreter.session().sandbox().id.as_str())
        }
        InterpreterError::Sandbox(error) => ApiError::from(error).into_response(),
        InterpreterError::Invalid(invalid) => plain(StatusCode::BAD_REQUEST, &invalid.to_string()),
        InterpreterError::Refused { refusal: Refusal::NoContext, message } => {
            context.map_or_else(|| plain(StatusCode::NOT_FOUND, &message), no_context)
        }
        InterpreterError::Refused { refusal: Refusal::Invalid, message } => plain(StatusCode::BAD_REQUEST, &message),
        error => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}
