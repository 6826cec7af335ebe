//! Lists: which sandboxes are asked for. A filter that is not known is refused: an answer that leaves it out would be a wrong one.

use std::collections::BTreeMap;

use belljar_types::{Invalid, SandboxState};

use crate::dto::ListQuery;
use crate::errors::ApiError;

/// The query of `GET /sandbox`.
pub(crate) fn read_list_query(query: &str) -> Result<ListQuery, ApiError> {
    let mut read = ListQuery::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let text = || value.clone().into_owned();
        match name.as_ref() {
            "labels" => read.labels = read_labels(&value)?,
            "cursor" => read.cursor = Some(text()),
            "limit" => read.limit = Some(value.parse().map_err(|_| Invalid::new("limit", "a number", value.as_bytes()))?),
            "id" => read.id = Some(value.to_lowercase()),
            "name" => read.name = Some(value.to_lowercase()),
            "states" | "states[]" => read.states.extend(value.split(',').map(str::to_owned)),
            "snapshots" | "snapshots[]" => read.snapshots.extend(value.split(',').map(str::to_owned)),
            "order" if matches!(value.as_ref(), "asc" | "desc") => read.oldest_first = value == "asc",
            "sort" if value == "createdAt" => {}
            // There is one region, and what has ended is not listed.
            "verbose" | "includeErroredDeleted" | "regionIds" | "regionIds[]" => {}
            _ if value.is_empty() => {}
            other => {
                let other = belljar_types::escape_untrusted(other.as_bytes());
                return Err(ApiError::unsupported(&format!(
                    "the filter {other}={} of lists",
                    belljar_types::escape_untrusted(value.as_bytes())
                )));
            }
        }
    }
    Ok(read)
}

/// Labels as clients write them into a query.
pub(crate) fn read_labels(json: &str) -> Result<BTreeMap<String, String>, ApiError> {
    match json {
        "" | "null" => Ok(BTreeMap::new()),
        json => serde_json::from_str(json).map_err(|_| ApiError::bad_request("Invalid labels JSON format")),
    }
}

/// Belljar's states for Daytona's; all that live when none are asked for.
pub(crate) fn listed_states(asked: &[String]) -> Vec<SandboxState> {
    use SandboxState::{Creating, Paused, Pausing, Resuming, Running};
    if asked.is_empty() {
        return vec![Creating, Running, Pausing, Paused, Resuming];
    }
    asked
        .iter()
        .flat_map(|state| match state.as_str() {
            "creating" => &[Creating] as &[SandboxState],
            "started" => &[Running],
            "stopping" | "pausing" => &[Pausing],
            "stopped" | "paused" => &[Paused],
            "starting" | "resuming" => &[Resuming],
            // Nothing here is ever in another.
            _ => &[],
        })
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_clients_write_it() {
        let read = read_list_query("labels=%7B%22a%22%3A%22b%22%7D&states=started&states=stopped&limit=3&order=asc&cursor=x").unwrap();
        assert_eq!(read.labels, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert_eq!((read.states.len(), read.limit, read.oldest_first, read.cursor.as_deref()), (2, Some(3), true, Some("x")));
        assert_eq!(read_list_query("").unwrap(), ListQuery::default());
    }

    #[test]
    fn what_would_be_left_out_is_refused() {
        for query in ["labels=x", "limit=x", "sort=cpu", "minCpu=2", "labels=%7B%22a%22%3A1%7D"] {
            assert!(read_list_query(query).is_err(), "{query}");
        }
    }

    #[test]
    fn states_that_nothing_is_in_find_nothing() {
        let states = |asked: &[&str]| listed_states(&asked.iter().map(|state| (*state).to_owned()).collect::<Vec<_>>());
        assert_eq!(states(&["archived"]), []);
        assert_eq!(states(&["started", "stopped"]), [SandboxState::Running, SandboxState::Paused]);
        assert_eq!(states(&[]).len(), 5);
    }
}
