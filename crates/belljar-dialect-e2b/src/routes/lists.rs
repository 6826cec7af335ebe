//! Lists of sandboxes, and of what they said.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use belljar_core::Cursor;
use belljar_http::{Authenticated, page_token};
use belljar_types::Sandbox;

use super::extract::{Asked, Domain, Which};
use super::sandboxes::live;
use crate::dto::{ListQuery, SandboxDetail};
use crate::errors::ApiError;
use crate::state::E2bState;
use crate::translate::{ListPlan, detail};

pub(super) const NEXT: HeaderName = HeaderName::from_static("x-next-token");

pub(super) async fn all(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    Asked(query): Asked<ListQuery>,
) -> Result<(HeaderMap, Json<Vec<SandboxDetail>>), ApiError> {
    let mut headers = HeaderMap::new();
    let (sandboxes, next) = page(&state, &who, &query).await?;
    if let Some(next) = next.and_then(|next| HeaderValue::try_from(page_token(&next)).ok()) {
        headers.insert(NEXT, next);
    }
    Ok((headers, Json(details(&state, &who, domain.as_deref(), &sandboxes))))
}

/// The older list: all that run, without pages.
pub(super) async fn running(
    State(state): State<E2bState>,
    who: Authenticated,
    Domain(domain): Domain,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<Vec<SandboxDetail>>, ApiError> {
    let mut query = ListQuery { metadata: query.metadata, state: Some("running".to_owned()), ..ListQuery::default() };
    let mut found = Vec::new();
    loop {
        let (sandboxes, next) = page(&state, &who, &query).await?;
        found.extend(details(&state, &who, domain.as_deref(), &sandboxes));
        match next {
            Some(next) => query.next_token = Some(page_token(&next)),
            None => return Ok(Json(found)),
        }
    }
}

fn details(state: &E2bState, who: &Authenticated, domain: Option<&str>, sandboxes: &[Sandbox]) -> Vec<SandboxDetail> {
    sandboxes.iter().map(|sandbox| detail(sandbox, who, &state.tokens, domain)).collect()
}

async fn page(state: &E2bState, who: &Authenticated, query: &ListQuery) -> Result<(Vec<Sandbox>, Option<Cursor>), ApiError> {
    let mut plan = ListPlan::of(query)?;
    let limit = plan.page.limit as usize;
    let mut found: Vec<Sandbox> = Vec::new();
    loop {
        let page = state.service.list(who, &plan.filter, &plan.page).await?;
        let mut left = page.sandboxes.into_iter().peekable();
        while let Some(sandbox) = left.next() {
            if plan.ends_with(&sandbox) {
                return Ok((found, None));
            }
            if !plan.takes(&sandbox) {
                continue;
            }
            let here = Cursor { created_at: sandbox.created_at, id: sandbox.id.clone() };
            found.push(sandbox);
            if found.len() == limit {
                let is_last = left.peek().is_none() && page.next.is_none();
                return Ok((found, (!is_last).then_some(here)));
            }
        }
        match page.next {
            Some(next) => plan.page.after = Some(next),
            None => return Ok((found, None)),
        }
    }
}

/// What a sandbox's daemon said. Belljar keeps no such log; programs' output is read from the programs.
pub(super) async fn logs(State(state): State<E2bState>, who: Authenticated, Which(id): Which) -> Result<Json<serde_json::Value>, ApiError> {
    live(&state, &who, &id).await?;
    Ok(Json(serde_json::json!({ "logs": [], "logEntries": [] })))
}
