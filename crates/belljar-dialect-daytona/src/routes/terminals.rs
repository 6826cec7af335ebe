//! Terminals: a shell each, found again by the tag of its process. What clients said about one when they made it is remembered here, because the agent
//! does not; a server that comes back knows the terminal, and tells its usual size.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::OutputStream;
use belljar_http::{JsonBody, QueryOf, moment};
use belljar_types::{ProcessId, ProcessInfo, ProcessSpec, PtySize, SandboxId, Signal, Timestamp, escape_untrusted};

use super::inside::Inside;
use super::run::start_with_shell;
use super::sandboxes::Answer;
use crate::dto::{NewTerminal, Size, TerminalDto};
use crate::errors::ApiError;
use crate::stream::{accept, attached};

const TERMINAL: &str = "daytona.pty.";
const LONGEST_ID: usize = 200;
const LARGEST: u16 = 1000;
const USUAL: PtySize = PtySize { columns: 80, rows: 24 };
/// What clients offer who want to hear of the end before the connection ends.
const EXIT_CONTROL: &str = "X-Daytona-Pty-Exit-Control";
/// What carries the environment of a new terminal.
const ENVIRONMENT: &str = "X-Daytona-Pty-Envs~";
/// Of more than this many some are told as usual ones.
const MOST: usize = 10_000;

/// What was said about a terminal.
#[derive(Clone)]
struct Said {
    cwd: String,
    envs: BTreeMap<String, String>,
    size: PtySize,
}

/// What was said about terminals that may still run.
#[derive(Default)]
pub(crate) struct Terminals(Mutex<HashMap<(SandboxId, ProcessId), Said>>);

impl Terminals {
    fn lock(&self) -> MutexGuard<'_, HashMap<(SandboxId, ProcessId), Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, sandbox: &SandboxId, id: &ProcessId, said: Said) {
        let mut all = self.lock();
        if all.len() >= MOST
            && let Some(one) = all.keys().next().cloned()
        {
            all.remove(&one);
        }
        all.insert((sandbox.clone(), id.clone()), said);
    }

    /// All processes of a sandbox have ended.
    pub(crate) fn forget(&self, sandbox: &SandboxId) {
        self.lock().retain(|(of, _), _| of != sandbox);
    }
}

fn size(columns: Option<u16>, rows: Option<u16>) -> Answer<PtySize> {
    let part = |name: &str, asked: Option<u16>, usual: u16| match asked.unwrap_or(usual) {
        fits @ 1..=LARGEST => Ok(fits),
        _ => Err(ApiError::bad_request(format!("{name} must be between 1 and {LARGEST}"))),
    };
    Ok(PtySize { columns: part("cols", columns, USUAL.columns)?, rows: part("rows", rows, USUAL.rows)? })
}

async fn find(inside: &Inside, id: &str) -> Answer<ProcessInfo> {
    let all = inside.session.processes().await;
    let tag = format!("{TERMINAL}{id}");
    let found = inside.done(all).await?.into_iter().rev().find(|info| info.exit.is_none() && info.tag.as_deref() == Some(&tag));
    let missing =
        || ApiError::not_found(format!("PTY session {} not found", escape_untrusted(id.as_bytes()))).with_code("PROCESS_NOT_FOUND");
    found.ok_or_else(missing)
}

async fn start(inside: &Inside, new: NewTerminal) -> Answer<(ProcessInfo, OutputStream)> {
    if !(1..=LONGEST_ID).contains(&new.id.len()) {
        return Err(ApiError::bad_request(format!("session ID must be 1 to {LONGEST_ID} bytes")));
    }
    let place = inside.making();
    let _mine = place.mine().await;
    match find(inside, &new.id).await {
        Ok(_) => {
            let id = escape_untrusted(new.id.as_bytes());
            return Err(ApiError::conflict(format!("PTY session with ID '{id}' already exists")));
        }
        Err(error) if error.status() == StatusCode::NOT_FOUND => {}
        Err(error) => return Err(error),
    }
    let size = size(new.cols, new.rows)?;
    let cwd = new.cwd.filter(|cwd| !cwd.is_empty());
    let directory = cwd.as_deref().map(|cwd| inside.path(cwd)).transpose()?;
    let mut envs = new.envs.unwrap_or_default();
    envs.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    let tag = format!("{TERMINAL}{}", new.id);
    let spec = |shell: &str| ProcessSpec {
        pty: Some(size),
        cwd: directory.clone(),
        tag: Some(tag.clone()),
        ..inside.process([shell, "-l"], envs.clone())
    };
    super::process::check(&spec("/bin/sh"))?;
    let started = start_with_shell(&inside.session, spec).await;
    let started = inside.done(started).await?;
    let said = Said { cwd: cwd.unwrap_or_default(), envs, size };
    inside.state.terminals.note(&inside.session.sandbox().id, &started.0.id, said);
    Ok(started)
}

fn shown(inside: &Inside, info: &ProcessInfo) -> TerminalDto {
    let id = info.tag.as_deref().and_then(|tag| tag.strip_prefix(TERMINAL)).unwrap_or_default().to_owned();
    let said = inside.state.terminals.lock().get(&(inside.session.sandbox().id.clone(), info.id.clone())).cloned();
    let said = said.unwrap_or_else(|| Said { cwd: String::new(), envs: BTreeMap::new(), size: USUAL });
    TerminalDto {
        id,
        cwd: said.cwd,
        envs: said.envs,
        cols: said.size.columns,
        rows: said.size.rows,
        created_at: moment(Timestamp(info.started_at_millis)),
        active: info.exit.is_none(),
        lazy_start: false,
    }
}

/// `POST /process/pty`.
pub(super) async fn create(inside: Inside, JsonBody(new): JsonBody<NewTerminal>) -> Answer<(StatusCode, Json<serde_json::Value>)> {
    let id = new.id.clone();
    // It is followed by whoever connects.
    drop(start(&inside, new).await?);
    Ok((StatusCode::CREATED, Json(serde_json::json!({ "sessionId": id }))))
}

/// `GET /process/pty`.
pub(super) async fn list(inside: Inside) -> Answer<Json<serde_json::Value>> {
    let all = inside.session.processes().await;
    let all = inside.done(all).await?;
    let is_one = |info: &&ProcessInfo| info.exit.is_none() && info.tag.as_deref().is_some_and(|tag| tag.starts_with(TERMINAL));
    let sessions: Vec<_> = all.iter().filter(is_one).map(|info| shown(&inside, info)).collect();
    Ok(Json(serde_json::json!({ "sessions": sessions })))
}

/// `GET /process/pty/{terminal}`.
pub(super) async fn show(inside: Inside, Path((_sandbox, id)): Path<(String, String)>) -> Answer<Json<TerminalDto>> {
    let info = find(&inside, &id).await?;
    Ok(Json(shown(&inside, &info)))
}

/// `DELETE /process/pty/{terminal}`.
pub(super) async fn delete(inside: Inside, Path((_sandbox, id)): Path<(String, String)>) -> Answer<Json<serde_json::Value>> {
    let info = find(&inside, &id).await?;
    let killed = inside.session.signal(&info.id, Signal::KILL).await;
    inside.done(killed).await?;
    inside.state.terminals.lock().remove(&(inside.session.sandbox().id.clone(), info.id));
    Ok(Json(serde_json::json!({ "message": "PTY session deleted" })))
}

/// `POST /process/pty/{terminal}/resize`.
pub(super) async fn resize(
    inside: Inside,
    Path((_sandbox, id)): Path<(String, String)>,
    JsonBody(asked): JsonBody<Size>,
) -> Answer<Json<TerminalDto>> {
    let (info, size) = (find(&inside, &id).await?, size(Some(asked.cols), Some(asked.rows))?);
    let resized = inside.session.resize(&info.id, size).await;
    inside.done(resized).await?;
    if let Some(said) = inside.state.terminals.lock().get_mut(&(inside.session.sandbox().id.clone(), info.id.clone())) {
        said.size = size;
    }
    Ok(Json(shown(&inside, &info)))
}

/// `GET /process/pty/{terminal}/connect`: what it shows from now on, to as many as like to see it.
pub(super) async fn connect(
    inside: Inside,
    Path((_sandbox, id)): Path<(String, String)>,
    headers: HeaderMap,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let (asked, offered) = accept(asked, &headers)?;
    let info = find(&inside, &id).await?;
    let output = inside.session.attach(&info.id, info.written).await;
    let output = inside.done(output).await?;
    let tells_end = offered.iter().any(|word| word == EXIT_CONTROL);
    Ok(asked.on_upgrade(move |socket| attached(socket, inside.session, inside.state.turns, info.id, output, tells_end)))
}

/// `GET /process/pty/create-connect`: both in one.
pub(super) async fn create_and_connect(
    inside: Inside,
    QueryOf(new): QueryOf<NewTerminal>,
    headers: HeaderMap,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let (asked, offered) = accept(asked, &headers)?;
    let (info, output) = start(&inside, NewTerminal { envs: environment(&offered)?, ..new }).await?;
    let tells_end = offered.iter().any(|word| word == EXIT_CONTROL);
    Ok(asked.on_upgrade(move |socket| attached(socket, inside.session, inside.state.turns, info.id, output, tells_end)))
}

fn environment(offered: &[String]) -> Answer<Option<BTreeMap<String, String>>> {
    let Some(word) = offered.iter().find_map(|word| word.strip_prefix(ENVIRONMENT)) else { return Ok(None) };
    let envs = URL_SAFE_NO_PAD.decode(word).ok().and_then(|json| serde_json::from_slice(&json).ok());
    envs.map(Some).ok_or_else(|| ApiError::bad_request("the environment is base64url of a JSON object of text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_comes_in_a_protocol() {
        let word = |json: &str| vec!["x".to_owned(), format!("{ENVIRONMENT}{}", URL_SAFE_NO_PAD.encode(json))];
        assert_eq!(environment(&word(r#"{"A":"b"}"#)).unwrap(), Some(BTreeMap::from([("A".to_owned(), "b".to_owned())])));
        assert_eq!(environment(&["x".to_owned()]).unwrap(), None);
        assert!(environment(&word("[1]")).is_err());
    }

    #[test]
    fn a_size_that_no_terminal_has_is_refused() {
        assert_eq!(size(None, Some(50)).unwrap(), PtySize { columns: 80, rows: 50 });
        assert!(size(Some(0), None).is_err() && size(None, Some(1001)).is_err());
    }
}
