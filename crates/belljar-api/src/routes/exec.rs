//! One command, one answer: for scripts, and for whoever wants no stream. One round trip to the agent.

use axum::Json;
use axum::extract::State;
use belljar_core::{GuestError, OutputStream, Session};
use belljar_http::{JsonBody, Problem};
use belljar_output::Provenance;
use belljar_types::{ExitStatus, Invalid, OutputEvent, ProcessId, Signal, StreamKind};
use bytes::Bytes;
use futures_util::StreamExt;

use super::keep::Gathered;
use crate::dto::{ExecRequest, ExecResult, ProvenanceView};
use crate::errors::Problems;
use crate::extract::Opened;
use crate::state::ApiState;
use crate::stream::how_it_ended;
use crate::translate;

const DEFAULT_KEPT: u32 = 1 << 20;
const MOST_KEPT: u32 = 16 << 20;
/// A body may hold this much standard input, and its base64.
const BODY_LIMIT: usize = 8 << 20;

/// Run a command to its end.
///
/// Answers when it has ended, with what it wrote. If the request is given up, the command is killed. For output as it comes, start a process.
#[utoipa::path(
    post, path = "/v1/sandboxes/{id}/exec", tag = "processes", operation_id = "exec",
    params(("id" = String, Path, description = "The sandbox")), request_body = ExecRequest,
    responses((status = 200, description = "It ended, well or not.", body = ExecResult), Problems)
)]
pub(crate) async fn exec(
    State(state): State<ApiState>,
    sandbox: Opened,
    JsonBody(mut request): JsonBody<ExecRequest, BODY_LIMIT>,
) -> Result<Json<ExecResult>, Problem> {
    let rules = state.service.output_rules(&sandbox.session.sandbox())?;
    let asked = translate::bounded("max_output_bytes", request.max_output_bytes, DEFAULT_KEPT, 0, MOST_KEPT)? as usize;
    let most = rules.as_ref().and_then(|rules| rules.bytes).map_or(asked, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let room = asked.min(most);
    let hygiene = translate::hygiene(request.output.take(), rules, room)?;
    let input = input(&mut request)?;
    let spec = translate::exec(request)?;
    let (info, stream) = sandbox.ask(sandbox.session.start_attached(&spec)).await?;
    let running = Running { session: sandbox.session.clone(), id: Some(info.id.clone()) };
    let (mut stdout, mut stderr) = (Gathered::new(room, hygiene.as_ref()), Gathered::new(room, hygiene.as_ref()));
    let reading = read(stream, &mut stdout, &mut stderr);
    let ended = match input {
        None => reading.await,
        Some(input) => {
            let writing = write(&sandbox.session, &info.id, input);
            tokio::pin!(reading);
            tokio::select! {
                ended = &mut reading => ended,
                () = writing => reading.await,
            }
        }
    };
    running.ended();
    let exit = match ended {
        Ok(Some(exit)) => translate::exit_view(exit),
        Ok(None) => return Err(how_it_ended(&sandbox.session).into()),
        Err(error) => return Err(sandbox.session.explain(error).await.into()),
    };
    let (stdout, stderr) = (stdout.finish(), stderr.finish());
    let provenance = Provenance::of(sandbox.id, info.id.clone());
    Ok(Json(ExecResult {
        process: info.id.to_string(),
        exit_code: exit.exit_code,
        signal: exit.signal,
        cause: exit.cause,
        provenance: ProvenanceView {
            trust: provenance.trust,
            sandbox: provenance.sandbox.to_string(),
            process: provenance.process.to_string(),
        },
        truncated: stdout.omitted.is_some() || stderr.omitted.is_some(),
        stdout: stdout.text,
        stderr: stderr.text,
        stdout_encoding: stdout.encoding,
        stderr_encoding: stderr.encoding,
        stdout_cleaning: stdout.cleaning,
        stderr_cleaning: stderr.cleaning,
        stdout_omitted: stdout.omitted,
        stderr_omitted: stderr.omitted,
    }))
}

/// Standard input from the two ways to say it. The request keeps a mark that there is some.
fn input(request: &mut ExecRequest) -> Result<Option<Bytes>, Invalid> {
    match (&mut request.stdin, &request.stdin_base64) {
        (Some(text), None) => Ok(Some(std::mem::take(text).into())),
        (None, Some(base64)) => translate::from_base64("stdin_base64", base64).map(|bytes| Some(bytes.into())),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Invalid::new("stdin_base64", "nothing, because `stdin` is given too", "both")),
    }
}

async fn read(mut stream: OutputStream, stdout: &mut Gathered, stderr: &mut Gathered) -> Result<Option<ExitStatus>, GuestError> {
    while let Some(event) = stream.next().await {
        match event? {
            OutputEvent::Data { stream: StreamKind::Stdout, bytes, .. } => stdout.push(&bytes),
            OutputEvent::Data { stream: StreamKind::Stderr, bytes, .. } => stderr.push(&bytes),
            OutputEvent::Gap { stream: StreamKind::Stdout, from, to } => stdout.skip(to.saturating_sub(from)),
            OutputEvent::Gap { stream: StreamKind::Stderr, from, to } => stderr.skip(to.saturating_sub(from)),
            OutputEvent::Exit(exit) => return Ok(Some(exit)),
        }
    }
    Ok(None)
}

/// A command that does not want its input, or ends without reading it, is no failure: how it ended says enough.
async fn write(session: &Session, id: &ProcessId, input: Bytes) {
    let written = async {
        if !input.is_empty() {
            session.write_stdin(id, 0, input).await?;
        }
        session.close_stdin(id).await
    };
    if let Err(error) = written.await {
        tracing::debug!(%error, "a command did not take its input");
    }
}

/// A command that somebody waits for. If nobody does any more, it is killed: its output goes nowhere, and it would wait for ever.
struct Running {
    session: Session,
    id: Option<ProcessId>,
}

impl Running {
    fn ended(mut self) {
        self.id = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let session = self.session.clone();
        tokio::spawn(async move {
            if let Err(error) = session.signal(&id, Signal::KILL).await {
                tracing::debug!(%error, process = %id, "a command that nobody waits for could not be killed");
            }
        });
    }
}
