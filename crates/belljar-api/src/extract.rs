//! What a path names. A sandbox that is to be used is opened before the rest of the request is judged: one of another project is not there,
//! however the rest looks.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use belljar_core::{GuestError, Session};
use belljar_http::{Authenticated, PathOf, Problem, about_sandbox};
use belljar_types::{ProcessId, SandboxId};
use serde::Deserialize;

use crate::errors::{port, process_id, sandbox_id};
use crate::state::ApiState;

#[derive(Deserialize)]
struct WithId {
    id: String,
}

/// The sandbox named in the path, and who asks. It may belong to somebody else: only the core tells.
pub(crate) struct Named {
    pub(crate) id: SandboxId,
    pub(crate) caller: Authenticated,
}

impl FromRequestParts<ApiState> for Named {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let PathOf(WithId { id }) = PathOf::from_request_parts(parts, state).await?;
        let id = sandbox_id(&id)?;
        about_sandbox(&parts.extensions, &id);
        Ok(Self { id, caller: Authenticated::from_request_parts(parts, state).await? })
    }
}

/// The sandbox named in the path, the caller's own and running.
pub(crate) struct Opened {
    pub(crate) id: SandboxId,
    pub(crate) caller: Authenticated,
    pub(crate) session: Session,
}

impl FromRequestParts<ApiState> for Opened {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let Named { id, caller } = Named::from_request_parts(parts, state).await?;
        let session = state.service.open(&caller, &id).await?;
        Ok(Self { id, caller, session })
    }
}

impl Opened {
    /// The answer of the agent, or why there is none.
    pub(crate) async fn ask<T>(&self, answer: impl Future<Output = Result<T, GuestError>>) -> Result<T, Problem> {
        match answer.await {
            Ok(value) => Ok(value),
            Err(error) => Err(self.session.explain(error).await.into()),
        }
    }
}

#[derive(Deserialize)]
struct WithProcess {
    process: String,
}

/// The process named in the path.
pub(crate) struct Process(pub(crate) ProcessId);

impl<S: Send + Sync> FromRequestParts<S> for Process {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathOf(WithProcess { process }) = PathOf::from_request_parts(parts, state).await?;
        process_id(&process).map(Self)
    }
}

#[derive(Deserialize)]
struct WithPort {
    port: String,
}

/// The port named in the path.
pub(crate) struct Port(pub(crate) u16);

impl<S: Send + Sync> FromRequestParts<S> for Port {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let PathOf(WithPort { port: number }) = PathOf::from_request_parts(parts, state).await?;
        port(&number).map(Self)
    }
}
