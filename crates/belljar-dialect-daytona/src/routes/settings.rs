//! What is changed about a sandbox that is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use belljar_core::SandboxChange;
use belljar_http::{Authenticated, JsonBody};
use belljar_types::{OnTimeout, Sandbox};

use super::find::{Found, number};
use super::sandboxes::Answer;
use crate::dto::{NetworkSettings, SandboxDto};
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::translate::{Links, Marks, check_labels, idle_timeout, labels as labels_of, on_timeout, outgoing, sandbox_dto};

/// Labels in a request and in the answer to it.
#[derive(serde::Deserialize, serde::Serialize)]
pub(super) struct Labels {
    labels: BTreeMap<String, String>,
}

/// Replaces all labels.
pub(super) async fn labels(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    JsonBody(new): JsonBody<Labels>,
) -> Answer<Json<Labels>> {
    check_labels(&new.labels)?;
    let before = labels_of(&sandbox.metadata);
    let ours = sandbox.metadata.iter().filter(|(name, _)| !before.contains_key(*name));
    let metadata = new.labels.into_iter().chain(ours.map(|(name, value)| (name.clone(), value.clone()))).collect();
    let change = SandboxChange { metadata: Some(metadata), ..SandboxChange::default() };
    let changed = state.service.update(&who, &sandbox.id, change).await?;
    Ok(Json(Labels { labels: labels_of(&changed.metadata) }))
}

/// Changes what Belljar has no field for.
pub(super) async fn mark(
    state: &DaytonaState,
    who: &Authenticated,
    sandbox: &Sandbox,
    set: impl FnOnce(&mut Marks),
) -> Answer<Arc<Sandbox>> {
    let mut marks = Marks::of(&sandbox.metadata).unwrap_or_default();
    set(&mut marks);
    let mut metadata = sandbox.metadata.clone();
    marks.put(&mut metadata);
    Ok(state.service.update(who, &sandbox.id, SandboxChange { metadata: Some(metadata), ..SandboxChange::default() }).await?)
}

pub(super) async fn public(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    Path((_sandbox, public)): Path<(String, String)>,
    links: Links,
) -> Answer<Json<SandboxDto>> {
    let public = public.parse().map_err(|_| ApiError::bad_request("expected true or false"))?;
    Ok(Json(sandbox_dto(&*mark(&state, &who, &sandbox, |marks| marks.public = public).await?, &links)))
}

pub(super) async fn auto_stop(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    Path((_sandbox, interval)): Path<(String, String)>,
    links: Links,
) -> Answer<Json<SandboxDto>> {
    let ends = sandbox.on_timeout == OnTimeout::Kill;
    let then = if ends { OnTimeout::Kill } else { OnTimeout::PauseFiles };
    idle(&state, &who, &sandbox, number("interval", &interval)?, then, &links).await
}

pub(super) async fn auto_pause(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    Path((_sandbox, interval)): Path<(String, String)>,
    links: Links,
) -> Answer<Json<SandboxDto>> {
    let minutes: u64 = number("interval", &interval)?;
    match (minutes, sandbox.on_timeout) {
        (1.., OnTimeout::Kill) => Err(ApiError::bad_request("a sandbox that is deleted as soon as it stops cannot be paused")),
        // It was never to be paused: what happens instead stays.
        (0, OnTimeout::Kill | OnTimeout::PauseFiles) => Ok(Json(sandbox_dto(&sandbox, &links))),
        (0, OnTimeout::Pause) => idle(&state, &who, &sandbox, 0, OnTimeout::PauseFiles, &links).await,
        (minutes, _) => idle(&state, &who, &sandbox, minutes, OnTimeout::Pause, &links).await,
    }
}

async fn idle(
    state: &DaytonaState,
    who: &Authenticated,
    sandbox: &Sandbox,
    minutes: u64,
    then: OnTimeout,
    links: &Links,
) -> Answer<Json<SandboxDto>> {
    let change = SandboxChange { idle_timeout: Some(idle_timeout(minutes)?), on_timeout: Some(then), ..SandboxChange::default() };
    Ok(Json(sandbox_dto(&*state.service.update(who, &sandbox.id, change).await?, links)))
}

pub(super) async fn auto_archive(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    Path((_sandbox, interval)): Path<(String, String)>,
    links: Links,
) -> Answer<Json<SandboxDto>> {
    let minutes = number("interval", &interval)?;
    Ok(Json(sandbox_dto(&*mark(&state, &who, &sandbox, |marks| marks.auto_archive = minutes).await?, &links)))
}

pub(super) async fn auto_delete(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    Path((_sandbox, interval)): Path<(String, String)>,
    links: Links,
) -> Answer<Json<SandboxDto>> {
    let then = on_timeout(sandbox.on_timeout == OnTimeout::Pause, number("interval", &interval)?)?;
    let change = SandboxChange { on_timeout: Some(then), ..SandboxChange::default() };
    Ok(Json(sandbox_dto(&*state.service.update(&who, &sandbox.id, change).await?, &links)))
}

/// Replaces all rules about what goes out; connections that are not allowed any more are cut.
pub(super) async fn network(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    links: Links,
    JsonBody(new): JsonBody<NetworkSettings>,
) -> Answer<Json<SandboxDto>> {
    let mut marks = Marks::of(&sandbox.metadata).unwrap_or_default();
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    // Lists imply that not all is blocked, and unblocking forgets them.
    let (allow_list, domains) = (given(new.network_allow_list), given(new.domain_allow_list));
    let block_all = new.network_block_all == Some(true);
    (marks.block_all, marks.allow_list, marks.domains) = (block_all, allow_list, domains);
    let wanted = outgoing(marks.block_all, marks.allow_list.as_deref(), marks.domains.as_deref())?;
    let changed = state.service.set_outgoing(&who, &sandbox, wanted).await?;
    let changed = changed.ok_or_else(|| ApiError::unsupported("changing the network of a sandbox that was made without the proxy"))?;
    Ok(Json(sandbox_dto(&*mark(&state, &who, &changed, |now| *now = marks).await?, &links)))
}
