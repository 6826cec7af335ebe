//! Processes: start, find, read, wait, signal.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use belljar_http::{JsonBody, Problem, QueryOf};
use belljar_types::{Invalid, Offsets, ProcessId, ProcessInfo};
use std::time::Duration;

use crate::dto::{OutputLine, OutputQuery, ProcessList, ProcessView, PtyRequest, SignalRequest, StartRequest, WaitQuery, WaitResult};
use crate::errors::{Problems, no_process};
use crate::extract::{Opened, Process};
use crate::stream::{self, Format, OutputLines, Resume};
use crate::translate;

/// Start a process.
///
/// With `Accept: application/x-ndjson` or `text/event-stream`, the same answer goes on with its output: a line `started`, then what it writes, then `exit`.
/// If that connection breaks, the process goes on; read on with `/output`.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/processes", tag = "processes", operation_id = "startProcess",
    params(("id" = String, Path, description = "The sandbox")), request_body = StartRequest,
    responses(
        (status = 201, description = "It was started, or was there under this id.", body = ProcessView),
        (status = 200, description = "It was started; its output follows.", content((OutputLine = "application/x-ndjson"), (OutputLine = "text/event-stream"))),
        Problems
    )
)]
pub(crate) async fn start(sandbox: Opened, headers: HeaderMap, JsonBody(request): JsonBody<StartRequest>) -> Result<Response, Problem> {
    let spec = translate::start(request)?;
    let Some(format) = Format::asked(&headers) else {
        let info = sandbox.ask(sandbox.session.start(&spec)).await?;
        return Ok((StatusCode::CREATED, Json(translate::process_view(&info))).into_response());
    };
    let (info, events) = sandbox.ask(sandbox.session.start_attached(&spec)).await?;
    let lines = OutputLines::of(sandbox.session, events, Offsets::default(), Some(&info));
    Ok(stream::answer(format, &OutputLine::Heartbeat, lines))
}

/// List processes.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/processes", tag = "processes", operation_id = "listProcesses",
    params(("id" = String, Path, description = "The sandbox")),
    responses((status = 200, description = "Those started through the API that are still known.", body = ProcessList), Problems)
)]
pub(crate) async fn list(sandbox: Opened) -> Result<Json<ProcessList>, Problem> {
    let all = sandbox.ask(sandbox.session.processes()).await?;
    Ok(Json(ProcessList { processes: all.iter().map(translate::process_view).collect() }))
}

/// The process named in the path, as the agent knows it.
pub(super) async fn known(sandbox: &Opened, id: &ProcessId) -> Result<ProcessInfo, Problem> {
    let all = sandbox.ask(sandbox.session.processes()).await?;
    all.into_iter().find(|info| info.id == *id).ok_or_else(|| no_process(id))
}

/// Get a process.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/processes/{process}", tag = "processes", operation_id = "getProcess",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process")),
    responses((status = 200, description = "The process.", body = ProcessView), Problems)
)]
pub(crate) async fn get(sandbox: Opened, Process(process): Process) -> Result<Json<ProcessView>, Problem> {
    let info = known(&sandbox, &process).await?;
    Ok(Json(translate::process_view(&info)))
}

/// Read its output.
///
/// From any offset, by any number of readers, until it ends. NDJSON unless `Accept: text/event-stream`; then each event's `id` is where the next one
/// begins, and a browser that comes back with `Last-Event-ID` goes on there.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/processes/{process}/output", tag = "processes", operation_id = "readOutput",
    params(
        ("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process"), OutputQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that was seen", example = "0,0")
    ),
    responses(
        (status = 200, description = "What it wrote and writes.", content((OutputLine = "application/x-ndjson"), (OutputLine = "text/event-stream"))),
        Problems
    )
)]
pub(crate) async fn output(
    sandbox: Opened,
    Process(process): Process,
    QueryOf(query): QueryOf<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let from = Resume::offsets(&query, &headers)?;
    let events = sandbox.ask(sandbox.session.attach(&process, from)).await?;
    let lines = OutputLines::of(sandbox.session, events, from, None);
    Ok(stream::answer(Format::asked(&headers).unwrap_or(Format::Ndjson), &OutputLine::Heartbeat, lines))
}

/// Wait for its end.
#[utoipa::path(
    get, path = "/v1/sandboxes/{id}/processes/{process}/wait", tag = "processes", operation_id = "waitProcess",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process"), WaitQuery),
    responses((status = 200, description = "It ended, or the time did.", body = WaitResult), Problems)
)]
pub(crate) async fn wait(
    sandbox: Opened,
    Process(process): Process,
    QueryOf(query): QueryOf<WaitQuery>,
) -> Result<Json<WaitResult>, Problem> {
    let seconds = query.timeout_seconds.unwrap_or(60.0);
    let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| timeout.as_secs_f64() <= 300.0);
    let timeout = timeout.ok_or_else(|| Invalid::new("timeout_seconds", "0 to 300", seconds.to_string()))?;
    let exit = sandbox.ask(sandbox.session.wait(&process, timeout)).await?;
    Ok(Json(WaitResult { ended: exit.is_some(), exit: exit.map(translate::exit_view) }))
}

/// Send a signal.
///
/// To the process and to what it started.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/processes/{process}/signal", tag = "processes", operation_id = "signalProcess",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process")),
    request_body = SignalRequest, responses((status = 204, description = "It was sent."), Problems)
)]
pub(crate) async fn signal(
    sandbox: Opened,
    Process(process): Process,
    JsonBody(request): JsonBody<SignalRequest>,
) -> Result<StatusCode, Problem> {
    let signal = translate::signal(&request.signal)?;
    sandbox.ask(sandbox.session.signal(&process, signal)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Change the size of its terminal.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/processes/{process}/resize", tag = "processes", operation_id = "resizeTerminal",
    params(("id" = String, Path, description = "The sandbox"), ("process" = String, Path, description = "The process")),
    request_body = PtyRequest, responses((status = 204, description = "It has this size."), Problems)
)]
pub(crate) async fn resize(
    sandbox: Opened,
    Process(process): Process,
    JsonBody(request): JsonBody<PtyRequest>,
) -> Result<StatusCode, Problem> {
    if request.columns == 0 || request.rows == 0 {
        return Err(Invalid::new("columns", "at least 1 column and 1 row", "0").into());
    }
    sandbox.ask(sandbox.session.resize(&process, translate::pty(request))).await?;
    Ok(StatusCode::NO_CONTENT)
}
