//! Code in contexts that remember, on the sandbox's kernels.

use std::time::Duration;

use axum::Json;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket};
use axum::extract::{Path, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use belljar_http::{OptionalJson, moment};
use belljar_interpreter::{Context, Event, Execution, Interpreter, InterpreterError, Refusal, Run, Where};
use belljar_types::Timestamp;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;

use super::inside::Inside;
use super::sandboxes::Answer;
use crate::dto::{ContextDto, NewContext, RunCode};
use crate::errors::ApiError;
use crate::stream::{Closing, accept, close};

/// How long a client may take to say what is to be run.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);
/// Seconds that code may take when its sender does not say.
const TIMEOUT: u64 = 600;
/// What the kernels call an error that is none of the code's.
const TIMED_OUT: &str = "DeadlineExceeded";
const BY_TIME: u16 = 4008;
const BY_RULE: u16 = 1008;
const BY_FAULT: u16 = 1011;

/// `POST /process/interpreter/context`.
pub(super) async fn create(inside: Inside, OptionalJson(new): OptionalJson<NewContext>) -> Answer<Json<ContextDto>> {
    let language = new.language.as_deref().unwrap_or("python");
    let cwd = new.cwd.as_deref().filter(|cwd| !cwd.is_empty());
    Ok(Json(shown(Interpreter::new(inside.session).create(language, cwd).await.map_err(refused)?)))
}

/// `GET /process/interpreter/context`.
pub(super) async fn list(inside: Inside) -> Answer<Json<serde_json::Value>> {
    let contexts = Interpreter::new(inside.session).contexts().await.map_err(refused)?;
    Ok(Json(json!({ "contexts": contexts.into_iter().map(shown).collect::<Vec<_>>() })))
}

/// `DELETE /process/interpreter/context/{id}`.
pub(super) async fn remove(inside: Inside, Path((_sandbox, id)): Path<(String, String)>) -> Answer<Json<serde_json::Value>> {
    let missing = |_| ApiError::not_found("context not found");
    Interpreter::new(inside.session).remove(&id.parse().map_err(missing)?).await.map_err(refused)?;
    Ok(Json(json!({ "message": "Context deleted successfully" })))
}

/// The kernels do not tell when a context was made.
fn shown(context: Context) -> ContextDto {
    let Context { id, language, cwd } = context;
    ContextDto { id: id.to_string(), cwd, created_at: moment(Timestamp::now()), active: true, language }
}

fn refused(error: InterpreterError) -> ApiError {
    match error {
        InterpreterError::Sandbox(error) => error.into(),
        InterpreterError::Invalid(invalid) => invalid.into(),
        InterpreterError::NotInstalled { .. } => ApiError::new(StatusCode::NOT_IMPLEMENTED, error.to_string()).with_code("NOT_SUPPORTED"),
        InterpreterError::Refused { refusal: Refusal::NoContext, message } => ApiError::not_found(message),
        InterpreterError::Refused { message, .. } => ApiError::bad_request(message),
        error => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// `GET /process/interpreter/execute`: the first message says what, and those that come back what it gives.
pub(super) async fn execute(
    inside: Inside,
    headers: HeaderMap,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let (asked, _) = accept(asked, &headers)?;
    let interpreter = Interpreter::new(inside.session.clone());
    if !interpreter.is_installed().await.map_err(refused)? {
        let template = inside.session.sandbox().template.to_string();
        return Err(refused(InterpreterError::NotInstalled { template }));
    }
    let always_env = inside.own_env();
    Ok(asked.on_upgrade(move |socket| run(socket, interpreter, always_env)))
}

async fn run(socket: WebSocket, interpreter: Interpreter, always_env: std::collections::BTreeMap<String, String>) {
    let (mut sink, mut stream) = socket.split();
    let first = match tokio::time::timeout(FIRST_MESSAGE, stream.next()).await {
        Ok(Some(Ok(Message::Text(text)))) => serde_json::from_str::<RunCode>(&text).ok(),
        Ok(Some(Ok(Message::Binary(bytes)))) => serde_json::from_slice(&bytes).ok(),
        _ => None,
    };
    let Some(request) = first else { return close(&mut sink, Closing::because(BY_RULE, "invalid JSON payload")).await };
    let place = match request.context_id.as_deref().map(str::parse) {
        None => Where::Language("python".to_owned()),
        Some(Ok(id)) => Where::Context(id),
        Some(Err(_)) => return close(&mut sink, Closing::because(BY_RULE, "context not found")).await,
    };
    let seconds = request.timeout.unwrap_or(TIMEOUT);
    let deadline = (seconds > 0).then(|| Duration::from_secs(seconds));
    let run = Run { place, code: request.code, env: request.envs.unwrap_or_default(), always_env, deadline };
    // Dropping the execution interrupts the code: a client that goes away takes it with it.
    let left = async { while let Some(Ok(_)) = stream.next().await {} };
    let told = async {
        let closing = match interpreter.execute(&run).await {
            Ok(execution) => follow(&mut sink, execution).await,
            Err(error) => Closing::because(BY_RULE, error.to_string()),
        };
        close(&mut sink, closing).await;
    };
    tokio::select! { () = told => {}, () = left => {} }
}

async fn follow(sink: &mut SplitSink<WebSocket, Message>, mut execution: Execution) -> Closing {
    let mut out_of_time = false;
    loop {
        let message = match execution.next().await {
            Ok(Some(Event::Stdout { text, .. })) => json!({ "type": "stdout", "text": text }),
            Ok(Some(Event::Stderr { text, .. })) => json!({ "type": "stderr", "text": text }),
            Ok(Some(Event::Error { name, .. })) if name == TIMED_OUT => {
                out_of_time = true;
                continue;
            }
            Ok(Some(Event::Error { name, value, traceback })) => {
                json!({ "type": "error", "name": name, "value": value, "traceback": traceback.join("\n") })
            }
            Ok(Some(Event::Lost { message })) => json!({ "type": "error", "name": "KernelDied", "value": message, "traceback": "" }),
            Ok(Some(Event::End) | None) if out_of_time => return Closing::because(BY_TIME, "execution timeout"),
            Ok(Some(Event::End) | None) => {
                let done = json!({ "type": "control", "text": "completed" });
                let _ = sink.send(Message::Text(done.to_string().into())).await;
                return Closing::normal();
            }
            // Values and pictures have no place in Daytona's interpreter: what is to be seen is printed.
            Ok(Some(_)) => continue,
            Err(InterpreterError::Silent { .. }) => return Closing::because(BY_TIME, "execution timeout"),
            Err(error) => return Closing::because(BY_FAULT, error.to_string()),
        };
        if sink.send(Message::Text(message.to_string().into())).await.is_err() {
            return Closing::normal();
        }
    }
}
