//! One command, run by a shell to its end.

use axum::Json;
use belljar_core::GuestError;
use belljar_http::JsonBody;
use belljar_types::ProcessSpec;
use bytes::Bytes;

use super::inside::Inside;
use super::run::{NotRun, Ran, deadline, finish, start_with_shell};
use super::sandboxes::Answer;
use crate::dto::{Execute, Executed};
use crate::errors::ApiError;

/// Commands and code may be long: files are sent in them.
pub(super) const LARGEST_BODY: usize = 16 << 20;
/// Linux takes no single argument above 128 KiB; what is longer is read by the shell from its input.
const LONGEST_ARGUMENT: usize = 100 << 10;

/// `POST /process/execute`.
pub(super) async fn execute(inside: Inside, JsonBody(request): JsonBody<Execute, LARGEST_BODY>) -> Answer<Json<Executed>> {
    if request.command.trim().is_empty() {
        return Err(ApiError::bad_request("command cannot be empty or whitespace-only"));
    }
    let cwd = request.cwd.filter(|cwd| !cwd.is_empty());
    let cwd = cwd.map(|cwd| inside.path(&cwd)).transpose()?;
    let (by_input, env) = (request.command.len() > LONGEST_ARGUMENT, request.envs.unwrap_or_default());
    let spec = |shell: &str| {
        let argv: Vec<&str> = if by_input { vec![shell] } else { vec![shell, "-c", &request.command] };
        ProcessSpec { cwd: cwd.clone(), stdin: by_input, deadline: deadline(request.timeout), ..inside.process(argv, env.clone()) }
    };
    check(&spec("/bin/sh"))?;
    let input = by_input.then(|| Bytes::from(request.command.clone()));
    match start_with_shell(&inside.session, spec).await {
        Ok((info, output)) => answer(&inside, finish(&inside.session, &info, output, input).await).await,
        Err(error) => not_started(&inside, error).await,
    }
}

/// Refuses what no kernel would take.
pub(super) fn check(spec: &ProcessSpec) -> Answer<()> {
    Ok(spec.validate()?)
}

pub(super) async fn answer(inside: &Inside, ran: Result<Ran, NotRun>) -> Answer<Json<Executed>> {
    match ran {
        Ok(ran) => {
            let ran = ran.in_time()?;
            Ok(Json(Executed { exit_code: ran.code(), result: ran.said.text() }))
        }
        Err(error) => Err(error.told(inside).await),
    }
}

/// A program that cannot be started is an answer to Daytona's clients, as one that fails.
pub(super) async fn not_started(inside: &Inside, error: GuestError) -> Answer<Json<Executed>> {
    match error {
        GuestError::Refused { errno: 2, message, .. } if !message.starts_with("could not enter the directory ") => {
            Ok(Json(Executed { exit_code: 127, result: message }))
        }
        GuestError::Refused { message, .. } => Ok(Json(Executed { exit_code: -1, result: message })),
        other => Err(crate::errors::of_guest(&inside.session, other).await),
    }
}
