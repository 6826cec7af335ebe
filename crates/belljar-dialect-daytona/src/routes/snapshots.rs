//! What sandboxes are made from. For Daytona it is all snapshots: here those are templates, and the states of sandboxes that were kept. And forks.

use axum::Json;
use axum::extract::{Path, State};
use belljar_core::{CoreError, ForkRequest, ForkSource, SnapshotFilter, SnapshotKind, TakeSnapshot};
use belljar_http::{Authenticated, JsonBody, OptionalJson, QueryOf, moment};
use belljar_types::{Snapshot, SnapshotName, Timestamp};

use super::find::{Found, find};
use super::sandboxes::{Answer, with_name};
use crate::dto::{OldListQuery, SandboxDto};
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::translate::{Links, Marks, labels, named, sandbox_dto};

const PAGE: u32 = 100;
/// Most snapshots that are listed.
const MOST: u32 = 1000;
const GIB: u64 = 1 << 30;

/// A name, where one may or must be given.
#[derive(Default, serde::Deserialize)]
pub(super) struct Named {
    name: Option<String>,
}

pub(super) async fn list(
    State(state): State<DaytonaState>,
    who: Authenticated,
    QueryOf(query): QueryOf<OldListQuery>,
) -> Answer<Json<serde_json::Value>> {
    let (page, limit) = (query.page.unwrap_or(1).max(1) as usize, query.limit.unwrap_or(PAGE).clamp(1, MOST) as usize);
    let all = all(&state, &who).await?;
    let items: Vec<_> = all.iter().skip((page - 1).saturating_mul(limit)).take(limit).collect();
    Ok(Json(serde_json::json!({ "items": items, "total": all.len(), "page": page, "totalPages": all.len().div_ceil(limit) })))
}

/// Templates first; then what was kept of sandboxes, if it has a name to be found by.
async fn all(state: &DaytonaState, who: &Authenticated) -> Answer<Vec<serde_json::Value>> {
    let limits = &state.service.config().default_limits;
    let bytes = (limits.memory_bytes, limits.disk_bytes, limits.cpu_millis);
    let mut all: Vec<_> = state
        .service
        .templates(who)
        .await?
        .into_iter()
        .map(|owned| {
            let (name, made) = (owned.template.name.to_string(), Timestamp(owned.template.created_at.saturating_mul(1000)));
            dto(&name, &name, owned.owner.is_none(), made, None, bytes)
        })
        .collect();
    let kept = state.service.snapshots(who, &SnapshotFilter::default(), None, MOST).await?;
    all.extend(kept.snapshots.iter().filter(|snapshot| snapshot.name.is_some()).map(of_snapshot));
    Ok(all)
}

fn of_snapshot(snapshot: &Snapshot) -> serde_json::Value {
    let (id, limits) = (snapshot.id.to_string(), &snapshot.spec.limits);
    let name = snapshot.name.as_ref().map_or_else(|| id.clone(), ToString::to_string);
    let mut told =
        dto(&id, &name, false, snapshot.created_at, Some(snapshot.bytes), (limits.memory_bytes, limits.disk_bytes, limits.cpu_millis));
    if let Some(fields) = told.as_object_mut() {
        fields.insert("sourceSandboxId".to_owned(), snapshot.source.to_string().into());
    }
    told
}

fn dto(id: &str, name: &str, general: bool, made: Timestamp, size: Option<u64>, (memory, disk, cpu): (u64, u64, u32)) -> serde_json::Value {
    let made = moment(made);
    #[expect(clippy::cast_precision_loss, reason = "clients read it in GiB, with a fraction")]
    let size = size.map(|bytes| bytes as f64 / GIB as f64);
    serde_json::json!({
        "id": id, "name": name, "imageName": name, "general": general, "state": "active", "size": size, "entrypoint": null,
        "cpu": cpu.div_ceil(1000).max(1), "gpu": 0, "mem": memory.div_ceil(GIB).max(1), "disk": disk.div_ceil(GIB).max(1),
        "errorReason": null, "createdAt": made, "updatedAt": made, "lastUsedAt": made, "sourceSandboxId": null,
    })
}

pub(super) async fn show(
    State(state): State<DaytonaState>,
    who: Authenticated,
    Path(which): Path<String>,
) -> Answer<Json<serde_json::Value>> {
    let found = all(&state, &who).await?.into_iter().find(|one| one["name"] == which.as_str() || one["id"] == which.as_str());
    found.map(Json).ok_or_else(|| missing(&which))
}

fn missing(which: &str) -> ApiError {
    ApiError::not_found(format!("Snapshot with ID or name {} not found", belljar_types::escape_untrusted(which.as_bytes())))
}

/// Templates are removed by those who make them: `belljar template rm`.
pub(super) async fn remove(State(state): State<DaytonaState>, who: Authenticated, Path(which): Path<String>) -> Answer<()> {
    match state.service.remove_snapshot(&who, &which).await {
        Err(CoreError::NoSnapshot { .. }) => {}
        done => return Ok(done?),
    }
    let name = which.parse().map_err(|_| missing(&which))?;
    match state.service.template(&who, &name).await {
        Ok(_) => Err(ApiError::unsupported("removing a template (use `belljar template rm`)")),
        Err(_) => Err(missing(&which)),
    }
}

/// Keeps the files of a sandbox under a name that new ones can be made from.
pub(super) async fn take(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    links: Links,
    JsonBody(new): JsonBody<Named>,
) -> Answer<Json<SandboxDto>> {
    let wrong = |_| ApiError::bad_request("name must be 1 to 64 letters, digits, dots, dashes and underscores");
    let name: SnapshotName = new.name.unwrap_or_default().parse().map_err(wrong)?;
    let request = TakeSnapshot { name: Some(name), kind: Some(SnapshotKind::Filesystem), ..TakeSnapshot::default() };
    state.service.take_snapshot(&who, &sandbox.id, request).await?;
    Ok(Json(sandbox_dto(&*find(&state, &who, sandbox.id.as_str()).await?, &links)))
}

/// A copy that goes on from where it is, processes included where the engine can copy them.
pub(super) async fn fork(
    State(state): State<DaytonaState>,
    Found { who, sandbox }: Found,
    links: Links,
    OptionalJson(new): OptionalJson<Named>,
) -> Answer<Json<SandboxDto>> {
    let mut metadata = labels(&sandbox.metadata);
    Marks::of(&sandbox.metadata).unwrap_or_default().put(&mut metadata);
    let name = new.name.filter(|name| !name.is_empty());
    if let Some(name) = &name {
        named(name, &mut metadata)?;
    }
    let lease = Some(state.service.config().max_lease);
    let request = ForkRequest { count: 1, metadata: Some(metadata), lease, ..ForkRequest::default() };
    let made = with_name(&state, &who, name.as_deref(), || state.service.fork(&who, ForkSource::Sandbox(&sandbox.id), request)).await?;
    let fork =
        made.into_iter().next().ok_or_else(|| ApiError::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "no fork was made"))??;
    state.known.note(&fork.id, &fork.project);
    Ok(Json(sandbox_dto(&fork, &links)))
}
