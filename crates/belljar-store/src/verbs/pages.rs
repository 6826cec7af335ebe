//! Many sandboxes at once: a project's, page by page, and all that have not ended.
//!
//! A page is read off an index in its order, so that its cost does not grow with the sandboxes of a project: the index of the first metadata
//! pair asked for, or of the template, or of those that live where only such states are asked for, or of all.

use belljar_ports::{Cursor, Order, Page, PageRequest, SandboxFilter, StoreError, Unreadable};
use belljar_types::{ProjectId, Sandbox, Timestamp};
use sqlx::{QueryBuilder, Row as _};

use super::sandboxes::read;
use super::{Backend, Database, Row};
use crate::convert::{moment, unsigned};
use crate::digest;
use crate::errors::failed;

pub(super) const UNENDED: &str = "SELECT id, project, state, execution, created_at, body FROM sandboxes \
                                  WHERE ended_at IS NULL ORDER BY project, created_at, id";

pub(super) async fn list(store: &Backend, project: &ProjectId, filter: &SandboxFilter, page: &PageRequest) -> Result<Page, StoreError> {
    let limit = page.limit.max(1);
    let mut rows = query(project, filter, page, limit).build().fetch_all(&store.read).await.map_err(failed("cannot list sandboxes"))?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next = if more { rows.iter().rev().find_map(cursor) } else { None };
    let (sandboxes, unreadable) = read_all(&rows);
    Ok(Page { sandboxes, unreadable, next })
}

pub(super) async fn unended(store: &Backend) -> Result<(Vec<Sandbox>, Vec<Unreadable>), StoreError> {
    let rows = sqlx::query(UNENDED).fetch_all(&store.read).await.map_err(failed("cannot list sandboxes that have not ended"))?;
    Ok(read_all(&rows))
}

fn read_all(rows: &[Row]) -> (Vec<Sandbox>, Vec<Unreadable>) {
    let (mut good, mut bad) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match read(row) {
            Ok(sandbox) => good.push(sandbox),
            Err(unreadable) => bad.push(unreadable),
        }
    }
    (good, bad)
}

/// From the columns, which are what the order is by; the body may be unreadable.
fn cursor(row: &Row) -> Option<Cursor> {
    let created_at: i64 = row.try_get("created_at").ok()?;
    let id: String = row.try_get("id").ok()?;
    Some(Cursor { created_at: Timestamp(unsigned(created_at)), id: id.parse().ok()? })
}

/// The statement for a page, and one row more, which tells whether another follows.
pub(super) fn query(project: &ProjectId, filter: &SandboxFilter, page: &PageRequest, limit: u32) -> QueryBuilder<Database> {
    let mut pairs = filter.metadata.iter().map(|(key, value)| digest::pair(key, value));
    let mut sql = QueryBuilder::new("SELECT s.id, s.project, s.state, s.execution, s.created_at, s.body FROM ");
    // CROSS JOIN says nothing new to PostgreSQL, and tells SQLite to begin on the left.
    let (created_at, id) = match pairs.next() {
        Some(pair) => {
            sql.push("sandbox_metadata m CROSS JOIN sandboxes s WHERE s.id = m.sandbox AND m.project = ").push_bind(project.to_string());
            sql.push(" AND m.pair = ").push_bind(pair);
            ("m.created_at", "m.sandbox")
        }
        None => {
            sql.push("sandboxes s WHERE s.project = ").push_bind(project.to_string());
            ("s.created_at", "s.id")
        }
    };
    for pair in pairs {
        sql.push(" AND EXISTS (SELECT 1 FROM sandbox_metadata n WHERE n.sandbox = s.id AND n.pair = ").push_bind(pair).push(")");
    }
    if let Some(template) = &filter.template {
        sql.push(" AND s.template = ").push_bind(template.to_string());
    }
    if !filter.states.is_empty() {
        if filter.states.iter().all(|state| !state.has_ended()) {
            sql.push(" AND s.ended_at IS NULL");
        }
        let mut states = sql.push(" AND s.state IN (").separated(", ");
        for state in &filter.states {
            states.push_bind(state.as_str());
        }
        sql.push(")");
    }
    let (after, direction) = match page.order {
        Order::NewestFirst => ("<", "DESC"),
        Order::OldestFirst => (">", "ASC"),
    };
    if let Some(cursor) = &page.after {
        sql.push(format_args!(" AND ({created_at}, {id}) {after} (")).push_bind(moment(cursor.created_at));
        sql.push(", ").push_bind(cursor.id.to_string()).push(")");
    }
    sql.push(format_args!(" ORDER BY {created_at} {direction}, {id} {direction} LIMIT ")).push_bind(i64::from(limit) + 1);
    sql
}
