//! Lists of sandboxes: by cursor for newer clients, by number for older ones.

use axum::Json;
use axum::extract::{RawQuery, State};
use belljar_core::{Cursor, Order, PageRequest, SandboxFilter};
use belljar_http::{Authenticated, QueryOf, page_cursor, page_token};
use belljar_types::{Sandbox, TemplateName};

use super::sandboxes::Answer;
use crate::dto::{ListQuery, OldListQuery};
use crate::errors::ApiError;
use crate::state::DaytonaState;
use crate::translate::{Links, listed_states, name_of, read_labels, read_list_query, sandbox_dto};

const LARGEST_PAGE: u32 = 200;
const PAGE: u32 = 100;
/// Pages of older clients are numbered, so all before one have to be read; nobody turns so many.
const MOST_NUMBERED: usize = 10_000;

pub(super) async fn page(
    State(state): State<DaytonaState>,
    who: Authenticated,
    links: Links,
    RawQuery(query): RawQuery,
) -> Answer<Json<serde_json::Value>> {
    let query = read_list_query(query.as_deref().unwrap_or_default())?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit must be between 1 and {LARGEST_PAGE}")));
    }
    let (found, next) = read(&state, &who, &query, limit as usize).await?;
    let items: Vec<_> = found.iter().map(|sandbox| sandbox_dto(sandbox, &links)).collect();
    Ok(Json(serde_json::json!({ "items": items, "nextCursor": next.as_ref().map(page_token) })))
}

pub(super) async fn numbered_page(
    State(state): State<DaytonaState>,
    who: Authenticated,
    links: Links,
    QueryOf(query): QueryOf<OldListQuery>,
) -> Answer<Json<serde_json::Value>> {
    let (page, limit) = (query.page.unwrap_or(1) as usize, query.limit.unwrap_or(PAGE));
    if page == 0 || !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("page must be 1 or more, and limit between 1 and {LARGEST_PAGE}")));
    }
    let (limit, labels) = (limit as usize, read_labels(query.labels.as_deref().unwrap_or_default())?);
    let (all, _) = read(&state, &who, &ListQuery { labels, ..ListQuery::default() }, MOST_NUMBERED).await?;
    let items: Vec<_> = all.iter().skip((page - 1).saturating_mul(limit)).take(limit).map(|sandbox| sandbox_dto(sandbox, &links)).collect();
    let pages = all.len().div_ceil(limit);
    Ok(Json(serde_json::json!({ "items": items, "total": all.len(), "page": page, "totalPages": pages })))
}

/// Reads on until there are as many as were asked for. The store looks at labels, states and the template; the rest is looked at here.
async fn read(state: &DaytonaState, who: &Authenticated, query: &ListQuery, limit: usize) -> Answer<(Vec<Sandbox>, Option<Cursor>)> {
    let states = listed_states(&query.states);
    let template = match query.snapshots.as_slice() {
        [one] => Some(one.parse::<TemplateName>()),
        _ => None,
    };
    // An empty filter would let all through.
    if states.is_empty() || matches!(template, Some(Err(_))) {
        return Ok((Vec::new(), None));
    }
    let filter = SandboxFilter { states, metadata: query.labels.clone(), template: template.and_then(Result::ok) };
    let order = if query.oldest_first { Order::OldestFirst } else { Order::NewestFirst };
    let after =
        query.cursor.as_deref().map(|token| page_cursor(token).ok_or_else(|| ApiError::bad_request("invalid cursor"))).transpose()?;
    let mut page = PageRequest { order, after, limit: u32::try_from(limit).unwrap_or(LARGEST_PAGE).min(LARGEST_PAGE) };
    let mut found = Vec::new();
    loop {
        let read = state.service.list(who, &filter, &page).await?;
        let mut left = read.sandboxes.into_iter().filter(|sandbox| takes(query, sandbox)).peekable();
        while let Some(sandbox) = left.next() {
            let here = Cursor { created_at: sandbox.created_at, id: sandbox.id.clone() };
            found.push(sandbox);
            if found.len() == limit {
                let is_last = left.peek().is_none() && read.next.is_none();
                return Ok((found, (!is_last).then_some(here)));
            }
        }
        match read.next {
            Some(next) => page.after = Some(next),
            None => return Ok((found, None)),
        }
    }
}

/// Ids and names are asked for by how they begin.
fn takes(query: &ListQuery, sandbox: &Sandbox) -> bool {
    let begins = |text: &str, with: &Option<String>| with.as_ref().is_none_or(|with| text.to_lowercase().starts_with(with));
    begins(sandbox.id.as_str(), &query.id)
        && begins(name_of(&sandbox.metadata).unwrap_or(sandbox.id.as_str()), &query.name)
        && (query.snapshots.is_empty() || query.snapshots.iter().any(|name| name == sandbox.template.as_str()))
}
