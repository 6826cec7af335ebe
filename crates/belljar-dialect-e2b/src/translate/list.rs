//! Lists: which sandboxes, in which order, and where the last page ended.

use std::collections::BTreeMap;

use belljar_core::{Order, PageRequest, SandboxFilter};
use belljar_http::page_cursor;
use belljar_types::{Sandbox, SandboxState, Timestamp};
use percent_encoding::percent_decode_str;

use super::template_name;
use crate::dto::ListQuery;
use crate::errors::ApiError;

const LARGEST_PAGE: u32 = 100;

/// What is asked of the core, and what is left to look at afterwards.
pub(crate) struct ListPlan {
    pub(crate) filter: SandboxFilter,
    pub(crate) page: PageRequest,
    started_after: Option<Timestamp>,
}

impl ListPlan {
    pub(crate) fn of(query: &ListQuery) -> Result<Self, ApiError> {
        let states = match query.state.as_deref().unwrap_or("running,paused") {
            "" => states_of("running,paused")?,
            asked => states_of(asked)?,
        };
        let order = match query.order.as_deref() {
            None | Some("" | "desc") => Order::NewestFirst,
            Some("asc") => Order::OldestFirst,
            Some(_) => return Err(ApiError::bad_request("order must be asc or desc")),
        };
        let limit = query.limit.unwrap_or(LARGEST_PAGE);
        if !(1..=LARGEST_PAGE).contains(&limit) {
            return Err(ApiError::bad_request(format!("limit must be between 1 and {LARGEST_PAGE}")));
        }
        let after = query
            .next_token
            .as_deref()
            .filter(|token| !token.is_empty())
            .map(|token| page_cursor(token).ok_or_else(|| ApiError::bad_request("invalid next token")))
            .transpose()?;
        let template = query.template.as_deref().filter(|name| !name.is_empty()).map(template_name).transpose()?;
        let started_after = query.started_after.as_deref().map(moment).transpose()?;
        let metadata = query.metadata.as_deref().map(metadata_of).unwrap_or_default();
        Ok(Self { filter: SandboxFilter { states, metadata, template }, page: PageRequest { order, after, limit }, started_after })
    }

    /// Whether it is in the list.
    pub(crate) fn takes(&self, sandbox: &Sandbox) -> bool {
        self.started_after.is_none_or(|after| sandbox.started_at.unwrap_or(sandbox.created_at) >= after)
    }

    /// Whether nothing after this one can be in the list.
    pub(crate) fn ends_with(&self, sandbox: &Sandbox) -> bool {
        // A sandbox is never started before it was asked for, but may well be after.
        let long_before =
            |after: Timestamp| sandbox.started_at.unwrap_or(sandbox.created_at).plus(std::time::Duration::from_secs(600)) < after;
        self.page.order == Order::NewestFirst && self.started_after.is_some_and(long_before)
    }
}

fn states_of(text: &str) -> Result<Vec<SandboxState>, ApiError> {
    let mut states = Vec::new();
    for state in text.split(',') {
        match state.trim() {
            "running" => states.push(SandboxState::Running),
            "paused" => states.extend([SandboxState::Pausing, SandboxState::Paused, SandboxState::Resuming]),
            _ => return Err(ApiError::bad_request("state must be running or paused")),
        }
    }
    Ok(states)
}

fn moment(text: &str) -> Result<Timestamp, ApiError> {
    let wrong = || ApiError::bad_request("startedAfter must be a time as in RFC 3339");
    let at: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
    u64::try_from(at.as_millisecond()).map(Timestamp).map_err(|_| wrong())
}

/// Clients escape the pairs, then the whole, and the query is escaped once more on its way.
fn metadata_of(text: &str) -> BTreeMap<String, String> {
    let unescape = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = unescape(text);
    let pairs = pairs.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(name, value)| (unescape(name), unescape(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_unescaped_as_often_as_clients_escape_it() {
        let expected = BTreeMap::from([("a b".to_owned(), "1&2".to_owned()), ("c".to_owned(), String::new())]);
        assert_eq!(
            metadata_of("a%2520b%3D1%252526%32%26c%3D"),
            BTreeMap::from([("a b".into(), "1%262".into()), ("c".into(), String::new())])
        );
        assert_eq!(metadata_of("a+b=1%2526%32&c="), expected);
    }

    #[test]
    fn nonsense_is_refused() {
        for query in [r#"{"state":"dead"}"#, r#"{"limit":0}"#, r#"{"limit":101}"#, r#"{"order":"up"}"#, r#"{"startedAfter":"now"}"#] {
            assert!(ListPlan::of(&serde_json::from_str(query).unwrap()).is_err(), "{query}");
        }
        let both = ListPlan::of(&ListQuery::default()).unwrap();
        assert_eq!(both.filter.states.len(), 4);
    }
}
