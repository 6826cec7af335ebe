//! The audit log: look, check, take it away.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use belljar_core::{AuditPage, AuditQuery, CoreError};
use belljar_http::{Authenticated, Problem, QueryOf};
use belljar_types::{AuditAction, Invalid, ProjectId};
use bytes::Bytes;

use crate::dto::{AuditList, AuditProjectParams, AuditQueryParams, AuditVerdictView};
use crate::errors::{Problems, project_id};
use crate::state::ApiState;
use crate::translate;

const LINES_AT_A_TIME: usize = 1000;

/// Read the audit log.
///
/// Oldest first. To follow it, give `next_after` as `after` again and again, with `wait_seconds`.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit", operation_id = "readAudit", params(AuditQueryParams),
    responses((status = 200, description = "Some events.", body = AuditList), Problems)
)]
pub(crate) async fn read(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(params): QueryOf<AuditQueryParams>,
) -> Result<Json<AuditList>, Problem> {
    let project = named(params.project.as_deref())?;
    let wait = translate::bounded("wait_seconds", params.wait_seconds, 0, 0, 60)?;
    let mut query = query(&params)?;
    if params.last.is_some() {
        let last = translate::bounded("last", params.last, 0, 0, 1000)?;
        let end = state.service.audit_checkpoint(&caller, project.as_ref()).await?.map_or(0, |checkpoint| checkpoint.sequence);
        query.after = end.saturating_sub(last.into());
        if last > 0 {
            // What is written between the two looks comes with the next page.
            query.limit = query.limit.min(last as usize);
        }
    }
    let page = state.service.audit(&caller, project.as_ref(), &query, Duration::from_secs(wait.into())).await?;
    Ok(Json(list(&page)))
}

/// Check the audit log.
///
/// Reads all of it, follows the chain of hashes and compares its end with the signed head.
#[utoipa::path(
    get, path = "/v1/audit/verify", tag = "audit", operation_id = "verifyAudit", params(AuditProjectParams),
    responses((status = 200, description = "Whether it is as it was written.", body = AuditVerdictView), Problems)
)]
pub(crate) async fn verify(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(params): QueryOf<AuditProjectParams>,
) -> Result<Json<AuditVerdictView>, Problem> {
    let project = named(params.project.as_deref())?;
    let verdict = state.service.verify_audit(&caller, project.as_ref()).await?;
    Ok(Json(AuditVerdictView {
        whole: verdict.faults.is_empty(),
        events: verdict.events,
        checkpoint: verdict.checkpoint.as_ref().map(translate::checkpoint_view),
        faults: verdict.faults,
    }))
}

/// Export the audit log.
///
/// Its lines, byte for byte, and at the end a line `{"checkpoint": …}`: enough to check it anywhere.
#[utoipa::path(
    get, path = "/v1/audit/export", tag = "audit", operation_id = "exportAudit", params(AuditProjectParams),
    responses((status = 200, description = "One event a line.", body = String, content_type = "application/x-ndjson"), Problems)
)]
pub(crate) async fn export(
    State(state): State<ApiState>,
    caller: Authenticated,
    QueryOf(params): QueryOf<AuditProjectParams>,
) -> Result<Response, Problem> {
    let project = named(params.project.as_deref())?;
    // What is written meanwhile is left for the next export: the checkpoint is to fit what comes before it.
    let checkpoint = state.service.audit_checkpoint(&caller, project.as_ref()).await?;
    let last = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.sequence);
    let trailer =
        checkpoint.map(|checkpoint| serde_json::json!({ "checkpoint": translate::checkpoint_view(&checkpoint) }).to_string() + "\n");
    let lines = futures_util::stream::try_unfold((0, trailer), move |(after, trailer)| {
        let (state, caller, project) = (state.clone(), caller.clone(), project.clone());
        async move {
            if after >= last {
                return Ok::<_, CoreError>(trailer.map(|trailer| (Bytes::from(trailer), (last, None))));
            }
            let query = AuditQuery { after, limit: LINES_AT_A_TIME, ..AuditQuery::default() };
            let page = state.service.audit(&caller, project.as_ref(), &query, Duration::ZERO).await?;
            let mut text = String::new();
            for (_, line) in page.records.iter().filter(|(record, _)| record.sequence <= last) {
                text.push_str(line);
                text.push('\n');
            }
            let next = if page.looked_until > after { page.looked_until } else { last };
            Ok(Some((Bytes::from(text), (next, trailer))))
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

fn named(project: Option<&str>) -> Result<Option<ProjectId>, Problem> {
    project.map(project_id).transpose()
}

fn query(params: &AuditQueryParams) -> Result<AuditQuery, Invalid> {
    let kinds: Vec<String> = params.kinds.iter().flat_map(|kinds| kinds.split(',')).map(|kind| kind.trim().to_owned()).collect();
    if let Some(unknown) = kinds.iter().find(|kind| !AuditAction::KINDS.contains(&kind.as_str())) {
        return Err(Invalid::new("kinds", AuditAction::KINDS.join(", "), unknown));
    }
    let moment = |field: &str, text: &Option<String>| text.as_deref().map(|text| translate::at(field, text)).transpose();
    Ok(AuditQuery {
        after: params.after.unwrap_or(0),
        sandbox: params.sandbox.as_deref().map(str::parse).transpose().map_err(|error| translate::renamed("sandbox", error))?,
        kinds,
        since: moment("since", &params.since)?,
        until: moment("until", &params.until)?,
        limit: translate::bounded("limit", params.limit, 100, 1, 1000)? as usize,
    })
}

fn list(page: &AuditPage) -> AuditList {
    AuditList {
        events: page.records.iter().filter_map(|(_, line)| serde_json::from_str(line).ok()).collect(),
        next_after: page.looked_until,
        more: page.more,
    }
}
