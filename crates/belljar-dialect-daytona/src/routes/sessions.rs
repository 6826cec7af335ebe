//! Sessions: a shell that goes on, so that what one command sets the next one finds.
//!
//! ```text
//!  session's shell ◄── stdin: a line for each command ── host
//!        │ runs it with its own input and outputs:
//!        ▼
//!   in, out, err, code (named pipes) ◄──► a relay, a process of the agent's ◄──► readers, by offset, live or later
//! ```
//!
//! All of it is in the sandbox: a session is found again by the tag of its shell, and a command by that of its relay, whatever became of the server
//! meanwhile. The agent remembers the last processes that ended, and the end of what each of them wrote.

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use belljar_http::JsonBody;
use belljar_types::{ProcessId, ProcessInfo, ProcessSpec, Signal, escape_untrusted};

use super::inside::Inside;
use super::run::start_with_shell;
use super::sandboxes::Answer;
use crate::dto::{CommandDto, NewSession, SessionDto};
use crate::errors::ApiError;
use crate::translate::exit_code;

const SESSION: &str = "daytona.session.";
const COMMAND: &str = "daytona.command.";
/// The image's own, which nobody makes.
const ENTRYPOINT: &str = "entrypoint";
const LONGEST_ID: usize = 200;
/// Where the command's text stands in the arguments of its relay.
const COMMAND_TEXT: usize = 6;

/// A session's shell, if it still runs.
pub(super) struct Shell {
    pub(super) info: ProcessInfo,
    /// Everything that was started through the agent, oldest first.
    pub(super) all: Vec<ProcessInfo>,
}

fn checked(id: &str) -> Answer<&str> {
    let fits = (1..=LONGEST_ID).contains(&id.len()) && id != ENTRYPOINT;
    if fits { Ok(id) } else { Err(ApiError::bad_request(format!("sessionId must be 1 to {LONGEST_ID} bytes, and not `{ENTRYPOINT}`"))) }
}

/// The tag of a session's commands.
pub(super) fn tag_of_commands(shell: &ProcessId) -> String {
    format!("{COMMAND}{shell}")
}

/// The directory of a session's pipes.
pub(super) fn directory(shell: &ProcessId) -> String {
    format!("/tmp/.{shell}")
}

/// The session of that name.
pub(super) async fn find(inside: &Inside, id: &str) -> Answer<Shell> {
    let all = inside.session.processes().await;
    let all = inside.done(all).await?;
    let tag = format!("{SESSION}{id}");
    let found = all.iter().rev().find(|info| info.exit.is_none() && info.tag.as_deref() == Some(&tag)).cloned();
    match found {
        Some(info) => Ok(Shell { info, all }),
        None => Err(ApiError::not_found(format!("session {} not found", escape_untrusted(id.as_bytes()))).with_code("PROCESS_NOT_FOUND")),
    }
}

/// The commands of a session, oldest first.
pub(super) fn commands<'a>(shell: &ProcessId, all: &'a [ProcessInfo]) -> impl Iterator<Item = &'a ProcessInfo> {
    let tag = tag_of_commands(shell);
    all.iter().filter(move |info| info.tag.as_deref() == Some(&tag))
}

/// A command as clients know it.
pub(super) fn command_dto(info: &ProcessInfo) -> CommandDto {
    let text = info.argv.get(COMMAND_TEXT).map(|text| String::from_utf8_lossy(text).into_owned());
    CommandDto { id: info.id.to_string(), command: text.unwrap_or_default(), exit_code: info.exit.as_ref().map(exit_code) }
}

/// `POST /process/session`.
pub(super) async fn create(inside: Inside, JsonBody(new): JsonBody<NewSession>) -> Answer<StatusCode> {
    let id = checked(&new.session_id)?;
    let place = inside.making();
    let _mine = place.mine().await;
    match find(&inside, id).await {
        Ok(_) => return Err(ApiError::conflict("session already exists")),
        Err(error) if error.status() == StatusCode::NOT_FOUND => {}
        Err(error) => return Err(error),
    }
    let tag = format!("{SESSION}{id}");
    let spec =
        |shell: &str| ProcessSpec { stdin: true, tag: Some(tag.clone()), ..inside.process([shell], std::collections::BTreeMap::new()) };
    let started = start_with_shell(&inside.session, spec).await.map(drop);
    inside.done(started).await?;
    Ok(StatusCode::CREATED)
}

/// `GET /process/session`.
pub(super) async fn list(inside: Inside) -> Answer<Json<Vec<SessionDto>>> {
    let all = inside.session.processes().await;
    let all = inside.done(all).await?;
    let sessions =
        all.iter().filter(|info| info.exit.is_none()).filter_map(|info| Some((info.tag.as_deref()?.strip_prefix(SESSION)?, info)));
    Ok(Json(sessions.map(|(id, info)| session_dto(id, info, &all)).collect()))
}

/// `GET /process/session/{session}`.
pub(super) async fn show(inside: Inside, Path((_sandbox, id)): Path<(String, String)>) -> Answer<Json<SessionDto>> {
    let shell = find(&inside, &id).await?;
    Ok(Json(session_dto(&id, &shell.info, &shell.all)))
}

fn session_dto(id: &str, info: &ProcessInfo, all: &[ProcessInfo]) -> SessionDto {
    SessionDto { session_id: id.to_owned(), commands: commands(&info.id, all).map(command_dto).collect() }
}

/// `DELETE /process/session/{session}`: the shell ends with all that it runs.
pub(super) async fn delete(inside: Inside, Path((_sandbox, id)): Path<(String, String)>) -> Answer<StatusCode> {
    let shell = find(&inside, &id).await?;
    let killed = inside.session.signal(&shell.info.id, Signal::KILL).await;
    inside.done(killed).await?;
    for relay in commands(&shell.info.id, &shell.all).filter(|info| info.exit.is_none()) {
        // It may end by itself just now.
        let _ = inside.session.signal(&relay.id, Signal::KILL).await;
    }
    if let Ok(path) = belljar_types::GuestPath::new(directory(&shell.info.id)) {
        // A session that ran nothing has none.
        let _ = inside.session.remove(&path, inside.user()).await;
    }
    Ok(StatusCode::NO_CONTENT)
}
