//! `process.Process`: starting, following, signalling.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_core::{GuestError, OutputStream, Session};
use belljar_http::Hangup;
use belljar_types::{
    KillCause, OutputEvent, ProcessId, ProcessInfo, ProcessSpec, PtySize, Sandbox, Signal, SpoolPolicy, StreamKind, UserName,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::daemon::{As, Message, Sandboxed};
use crate::dto::{OfProcess, PtySizeDto, Selector, SendSignal, Start, Update};
use crate::errors::{Code, RpcError};
use crate::stream::{self as connect_stream, Frames, Incoming};
use crate::translate::{end_event, guest_path};

const NO_SUCH_FILE: i32 = 2;

/// `Start`: begins a process and follows it. It outlives whoever follows it.
pub(super) async fn start(Sandboxed(inside): Sandboxed, As(user): As, request: Request) -> Response {
    let (headers, hangup, message) = match first_message::<Start>(request).await {
        Ok(parts) => parts,
        Err(error) => return connect_stream::refused(error),
    };
    let session = inside.session.clone();
    match begin(&session, user, &headers, message).await {
        Ok((info, output)) => {
            let pty = info.pty;
            follow(session, info.pid, pty, output, &headers, hangup)
        }
        Err(error) => connect_stream::refused(error),
    }
}

async fn begin(
    session: &Session,
    user: Option<UserName>,
    headers: &HeaderMap,
    start: Start,
) -> Result<(ProcessInfo, OutputStream), RpcError> {
    let config = start.process;
    let mut env = own_env(&session.sandbox());
    env.extend(config.envs);
    let spec = ProcessSpec {
        id: ProcessId::random(),
        argv: std::iter::once(config.cmd).chain(config.args).map(String::into_bytes).collect(),
        env,
        cwd: config.cwd.as_deref().filter(|cwd| !cwd.is_empty()).map(guest_path).transpose()?,
        user,
        // Clients before 2.2 do not say, and write to it.
        stdin: start.stdin.unwrap_or(true) && start.pty.is_none(),
        pty: start.pty.map(|pty| pty_size(pty.size)).transpose()?,
        tag: start.tag,
        deadline: deadline(headers)?,
        spool: SpoolPolicy::default(),
    };
    spec.validate().map_err(|invalid| RpcError::invalid(invalid.to_string()))?;
    match session.start_attached(&spec).await {
        Ok(started) => Ok(started),
        Err(GuestError::Refused { errno: NO_SUCH_FILE, message, .. }) if message.starts_with("could not enter the directory ") => {
            let cwd = config.cwd.unwrap_or_default();
            Err(RpcError::invalid(format!("cwd '{}' does not exist", belljar_types::escape_untrusted(cwd.as_bytes()))))
        }
        // A program that cannot be run is the client's mistake.
        Err(GuestError::Refused { errno: 2 | 13, message, .. }) => Err(RpcError::invalid(format!("error starting process: {message}"))),
        Err(error) => Err(RpcError::of_guest(session, spec.user.as_ref(), error).await),
    }
}

/// What every process of a sandbox finds in its environment under E2B.
pub(super) fn own_env(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let own = [("E2B_SANDBOX", "true"), ("E2B_SANDBOX_ID", sandbox.id.as_str()), ("E2B_TEMPLATE_ID", sandbox.template.as_str())];
    own.into_iter()
        .filter(|(name, _)| !sandbox.spec.env.contains_key(*name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn deadline(headers: &HeaderMap) -> Result<Option<Duration>, RpcError> {
    let Some(text) = headers.get("connect-timeout-ms") else { return Ok(None) };
    let millis = text.to_str().ok().and_then(|text| text.parse::<u64>().ok());
    let millis = millis.ok_or_else(|| RpcError::invalid("protocol error: invalid timeout"))?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

fn pty_size(size: PtySizeDto) -> Result<PtySize, RpcError> {
    let part = |number: u32| u16::try_from(number).map_err(|_| RpcError::invalid("the size of a terminal is at most 65535"));
    Ok(PtySize { columns: part(size.cols)?.max(1), rows: part(size.rows)?.max(1) })
}

/// `Connect`: follows a process from now on.
pub(super) async fn connect(Sandboxed(inside): Sandboxed, request: Request) -> Response {
    let (headers, hangup, message) = match first_message::<OfProcess>(request).await {
        Ok(parts) => parts,
        Err(error) => return connect_stream::refused(error),
    };
    let session = inside.session.clone();
    let attached = async {
        let info = find(&session, &message.process, Kept::Too).await?;
        let output = session.attach(&info.id, info.written).await;
        let output = match output {
            Ok(output) => output,
            Err(error) => return Err(RpcError::of_guest(&session, None, error).await),
        };
        Ok((info, output))
    };
    match attached.await {
        Ok((info, output)) => follow(session, info.pid, info.pty, output, &headers, hangup),
        Err(error) => connect_stream::refused(error),
    }
}

fn follow(session: Session, pid: u32, pty: bool, output: OutputStream, headers: &HeaderMap, hangup: Option<Hangup>) -> Response {
    let started = stream::once(async move { Ok(event(&serde_json::json!({ "start": { "pid": pid } }))) });
    let asking = session.clone();
    let told = output.then(move |next| {
        let session = asking.clone();
        async move {
            match next {
                Ok(next) => tell(&next, pty),
                Err(error) => Err(RpcError::of_guest(&session, None, error).await),
            }
        }
    });
    let frames: Frames = started.chain(told).boxed();
    connect_stream::serve(session, frames, headers, event(&serde_json::json!({ "keepalive": {} })), hangup)
}

fn tell(output: &OutputEvent, pty: bool) -> Result<Bytes, RpcError> {
    match output {
        OutputEvent::Data { stream, bytes, .. } => {
            let name = match (pty, stream) {
                (true, _) => "pty",
                (false, StreamKind::Stdout) => "stdout",
                (false, StreamKind::Stderr) => "stderr",
            };
            Ok(event(&serde_json::json!({ "data": { name: STANDARD.encode(bytes) } })))
        }
        OutputEvent::Gap { from, to, .. } => {
            Err(RpcError::new(Code::DataLoss, format!("bytes {from} to {to} of the output were not read in time and are gone")))
        }
        // The daemon's own deadline comes as an error, not as an end: clients tell the two apart.
        OutputEvent::Exit(exit) if exit.cause == Some(KillCause::Deadline) => {
            Err(RpcError::new(Code::DeadlineExceeded, "context deadline exceeded"))
        }
        OutputEvent::Exit(exit) => Ok(event(&serde_json::json!({ "end": end_event(exit) }))),
    }
}

fn event(event: &serde_json::Value) -> Bytes {
    connect_stream::frame(&serde_json::json!({ "event": event }))
}

/// The one message of a client that then only listens.
pub(super) async fn first_message<T: serde::de::DeserializeOwned>(request: Request) -> Result<(HeaderMap, Option<Hangup>, T), RpcError> {
    let hangup = request.extensions().get::<Hangup>().cloned();
    let (parts, body) = request.into_parts();
    let message = Incoming::new(body).next().await?.ok_or_else(|| RpcError::invalid("protocol error: no message"))?;
    Ok((parts.headers, hangup, message))
}

/// Whether processes that ended are looked for as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Too,
    Not,
}

/// A process by its number or its tag: the newest that fits.
pub(super) async fn find(session: &Session, selector: &Selector, kept: Kept) -> Result<ProcessInfo, RpcError> {
    let known = match session.processes().await {
        Ok(known) => known,
        Err(error) => return Err(RpcError::of_guest(session, None, error).await),
    };
    let fits = |info: &&ProcessInfo| match (selector.pid, &selector.tag) {
        (Some(pid), _) => info.pid == pid,
        (None, Some(tag)) => info.tag.as_ref() == Some(tag),
        (None, None) => false,
    };
    let running = known.iter().rev().find(|info| info.exit.is_none() && fits(info));
    let found = running.or_else(|| known.iter().rev().filter(|_| kept == Kept::Too).find(fits));
    found.cloned().ok_or_else(|| match (selector.pid, &selector.tag) {
        (Some(pid), _) => no_pid(pid),
        (None, Some(tag)) => {
            RpcError::new(Code::NotFound, format!("process with tag {} not found", belljar_types::escape_untrusted(tag.as_bytes())))
        }
        (None, None) => RpcError::invalid("no process selected"),
    })
}

/// The same process as it is now, if it still runs.
pub(super) async fn find_again(session: &Session, before: ProcessInfo) -> Result<ProcessInfo, RpcError> {
    let known = match session.processes().await {
        Ok(known) => known,
        Err(error) => return Err(RpcError::of_guest(session, None, error).await),
    };
    known.into_iter().find(|info| info.id == before.id && info.exit.is_none()).ok_or_else(|| no_pid(before.pid))
}

fn no_pid(pid: u32) -> RpcError {
    RpcError::new(Code::NotFound, format!("process with pid {pid} not found"))
}

/// `List`.
pub(super) async fn list(Sandboxed(inside): Sandboxed) -> Result<Json<serde_json::Value>, RpcError> {
    let known = match inside.session.processes().await {
        Ok(known) => known,
        Err(error) => return Err(RpcError::of_guest(&inside.session, None, error).await),
    };
    let shown: Vec<_> = known.iter().filter(|info| info.exit.is_none()).map(shown).collect();
    Ok(Json(serde_json::json!({ "processes": shown })))
}

fn shown(info: &ProcessInfo) -> serde_json::Value {
    let mut argv = info.argv.iter().map(|arg| String::from_utf8_lossy(arg));
    let command = argv.next().unwrap_or_default();
    let mut shown = serde_json::json!({ "pid": info.pid, "config": { "cmd": command, "args": argv.collect::<Vec<_>>() } });
    if let (Some(tag), Some(fields)) = (&info.tag, shown.as_object_mut()) {
        fields.insert("tag".to_owned(), tag.clone().into());
    }
    shown
}

/// `SendSignal`: the two that the daemon knows.
pub(super) async fn signal(Sandboxed(inside): Sandboxed, Message(message): Message<SendSignal>) -> Result<Response, RpcError> {
    let signal = match (message.signal.as_str(), message.signal.as_u64()) {
        (Some("SIGNAL_SIGKILL"), _) | (_, Some(9)) => Signal::KILL,
        (Some("SIGNAL_SIGTERM"), _) | (_, Some(15)) => Signal::TERM,
        _ => return Err(RpcError::new(Code::Unimplemented, format!("invalid signal: {}", message.signal))),
    };
    let info = find(&inside.session, &message.process, Kept::Not).await?;
    match inside.session.signal(&info.id, signal).await {
        Ok(()) => Ok(Json(serde_json::json!({})).into_response()),
        Err(error) => Err(RpcError::of_guest(&inside.session, None, error).await),
    }
}

/// `Update`: the size of a terminal.
pub(super) async fn update(Sandboxed(inside): Sandboxed, Message(message): Message<Update>) -> Result<Response, RpcError> {
    let info = find(&inside.session, &message.process, Kept::Not).await?;
    if let Some(pty) = message.pty
        && let Err(error) = inside.session.resize(&info.id, pty_size(pty.size)?).await
    {
        return Err(RpcError::of_guest(&inside.session, None, error).await);
    }
    Ok(Json(serde_json::json!({})).into_response())
}
