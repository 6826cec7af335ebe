//! Commands of a session: each is written to a file, run by the session's shell in its turn, and followed by a relay.

use axum::Json;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use belljar_core::OutputStream;
use belljar_http::JsonBody;
use belljar_types::{GuestPath, OutputEvent, ProcessId, ProcessInfo, ProcessSpec, StreamKind, WriteOptions, escape_untrusted};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::inside::Inside;
use super::process::LARGEST_BODY;
use super::run::finish;
use super::sandboxes::Answer;
use super::session_logs::Reading;
use super::sessions::{Shell, command_dto, commands, directory, find, tag_of_commands};
use crate::dto::{CommandDto, Input, SessionExecute, SessionExecuted};
use crate::errors::ApiError;

/// Makes the pipes, says so with one byte, and lets through what the command says and is told until it has ended; then it ends as the command did.
/// Whoever reads its output passes over that first byte. Its input has a number of its own there: what a shell runs in the background has none.
const RELAY: &str = r#"p=$1
mkfifo "$p.code" "$p.in" "$p.out" "$p.err" || exit 126
exec 3<&0
printf .
cat "$p.err" >&2 & e=$!
case $2 in
echo) tee "$p.in" <&3 & i=$! ;;
open) cat <&3 >"$p.in" & i=$! ;;
*) : >"$p.in" & i=$! ;;
esac
cat "$p.out" & o=$!
read -r c <"$p.code"
wait "$o" "$e"
kill "$i" 2>/dev/null
rm -f "$p" "$p.code" "$p.in" "$p.out" "$p.err"
exit "${c:-1}""#;
/// The byte.
pub(super) const READY: u64 = 1;
/// What is shown of a command: a single argument has its bound.
const SHOWN: usize = 64 << 10;

/// `POST /process/session/{session}/exec`.
pub(super) async fn execute(
    inside: Inside,
    Path((_sandbox, id)): Path<(String, String)>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<SessionExecute, LARGEST_BODY>,
) -> Answer<Response> {
    if request.command.trim().is_empty() {
        return Err(ApiError::bad_request("command cannot be empty"));
    }
    let Shell { info: shell, .. } = find(&inside, &id).await?;
    let in_background = request.run_async.or(request.r#async) == Some(true);
    let input = match (in_background, request.suppress_input_echo) {
        (false, _) => "none",
        (true, Some(true)) => "open",
        (true, _) => "echo",
    };
    let (relay, output) = begin(&inside, &shell, &request.command, input).await?;
    let cmd_id = relay.id.to_string();
    if in_background {
        return Ok((StatusCode::ACCEPTED, Json(SessionExecuted { cmd_id, ..SessionExecuted::default() })).into_response());
    }
    let ran = match finish(&inside.session, &relay, output, None).await {
        Ok(ran) => ran,
        Err(error) => return Err(error.told(&inside).await),
    };
    let reading = Reading::of(&headers);
    let (stdout, stderr) = (ran.said.only(StreamKind::Stdout), ran.said.only(StreamKind::Stderr));
    let both = if reading.is_marked() { ran.said.marked() } else { ran.said.text() };
    let split = reading.is_split();
    let done = SessionExecuted {
        cmd_id,
        output: Some(both),
        stdout: split.then_some(stdout),
        stderr: split.then_some(stderr),
        exit_code: Some(ran.code()),
    };
    Ok(Json(done).into_response())
}

/// Starts the relay, then tells the shell.
async fn begin(inside: &Inside, shell: &ProcessInfo, command: &str, input: &str) -> Answer<(ProcessInfo, OutputStream)> {
    let id = ProcessId::random();
    let place = format!("{}/{id}", directory(&shell.id));
    let options = WriteOptions { user: inside.user.clone(), make_parents: true, mode: Some(0o600), ..WriteOptions::default() };
    let content = stream::iter([Ok(Bytes::from(command.to_owned()))]).boxed();
    let written = inside.session.write_file(&GuestPath::new(place.as_str())?, &options, content).await;
    inside.done(written).await?;
    let shown = command.get(..command.floor_char_boundary(SHOWN)).unwrap_or_default().replace('\0', "");
    let argv = ["/bin/sh", "-c", RELAY, "sh", &place, input, &shown];
    let tag = Some(tag_of_commands(&shell.id));
    let spec = ProcessSpec { id, tag, stdin: input != "none", ..inside.process(argv, std::collections::BTreeMap::new()) };
    let started = inside.session.start_attached(&spec).await;
    let (relay, mut output) = inside.done(started).await?;
    // The pipes are there from its first byte on. What follows is the command's own.
    let rest = loop {
        match output.next().await {
            Some(Ok(OutputEvent::Data { stream: StreamKind::Stdout, mut bytes, .. })) => break bytes.split_off(1.min(bytes.len())),
            Some(Ok(OutputEvent::Exit(_)) | Err(_)) | None => {
                return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the command's pipes could not be made (mkfifo)"));
            }
            Some(Ok(_)) => {}
        }
    };
    let line = format!("{{ . {place} 9>&- <{place}.in >{place}.out 2>{place}.err; echo $? >&9; }} 9>{place}.code\n");
    write_on(inside, &shell.id, Bytes::from(line)).await?;
    let first = (!rest.is_empty()).then_some(Ok(OutputEvent::Data { stream: StreamKind::Stdout, offset: READY, bytes: rest }));
    Ok((relay, stream::iter(first).chain(output).boxed()))
}

/// Writes behind what was written to a process before, in turn with whoever else does.
pub(super) async fn write_on(inside: &Inside, id: &ProcessId, bytes: Bytes) -> Answer<()> {
    let place = inside.state.turns.place((inside.session.sandbox().id.clone(), id.clone()));
    let _mine = place.mine().await;
    let known = inside.session.processes().await;
    let offset = inside.done(known).await?.into_iter().find(|info| info.id == *id).map_or(0, |info| info.stdin_offset);
    let written = inside.session.write_stdin(id, offset, bytes).await;
    inside.done(written).await
}

/// A command of a session.
pub(super) async fn command(inside: &Inside, session: &str, id: &str) -> Answer<ProcessInfo> {
    let shell = find(inside, session).await?;
    let found = commands(&shell.info.id, &shell.all).find(|info| info.id.as_str() == id).cloned();
    found
        .ok_or_else(|| ApiError::not_found(format!("command {} not found", escape_untrusted(id.as_bytes()))).with_code("PROCESS_NOT_FOUND"))
}

/// `GET …/command/{command}`.
pub(super) async fn show(inside: Inside, Path((_sandbox, session, id)): Path<(String, String, String)>) -> Answer<Json<CommandDto>> {
    Ok(Json(command_dto(&command(&inside, &session, &id).await?)))
}

/// `POST …/command/{command}/input`: a line of it.
pub(super) async fn input(
    inside: Inside,
    Path((_sandbox, session, id)): Path<(String, String, String)>,
    JsonBody(Input { mut data }): JsonBody<Input>,
) -> Answer<StatusCode> {
    let relay = command(&inside, &session, &id).await?;
    if let Some(exit) = &relay.exit {
        let code = crate::translate::exit_code(exit);
        let error = ApiError::new(StatusCode::GONE, format!("command has already completed with exit code {code}"));
        return Err(error.with_code("COMMAND_ALREADY_COMPLETED"));
    }
    if !data.ends_with('\n') {
        data.push('\n');
    }
    write_on(&inside, &relay.id, Bytes::from(data)).await?;
    Ok(StatusCode::NO_CONTENT)
}
