//! Snapshots, forks and trees: requests, views and cursors.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::{
    CoreError, Family, ForkRequest as CoreFork, Forks, ImportSnapshot, Pushed, SnapshotCursor, SnapshotFilter, SnapshotKind, SnapshotPage,
    TakeSnapshot,
};
use belljar_http::Problem;
use belljar_types::{Invalid, Origin, Sandbox, Snapshot, Timestamp};

use super::{bounded, limits_view, moment, renamed, sandbox_view, seconds, word};
use crate::dto::{
    ForkErrorView, ForkListView, ForkRequest, ForkView, ImportQuery, OriginView, PushedView, SnapshotPageView, SnapshotQuery,
    SnapshotRequest, SnapshotView, TreeView,
};

pub(crate) fn take_snapshot(request: SnapshotRequest) -> Result<TakeSnapshot, Invalid> {
    let kinds = [("memory", SnapshotKind::Memory), ("filesystem", SnapshotKind::Filesystem)];
    Ok(TakeSnapshot {
        name: request.name.map(|name| name.parse()).transpose().map_err(|error| renamed("name", error))?,
        kind: request.kind.map(|text| word("kind", &text, &kinds)).transpose()?,
        lifetime: request.expires_in_seconds.map(|value| seconds("expires_in_seconds", value)).transpose()?,
    })
}

pub(crate) fn import(query: ImportQuery) -> Result<ImportSnapshot, Invalid> {
    Ok(ImportSnapshot {
        name: query.name.map(|name| name.parse()).transpose().map_err(|error| renamed("name", error))?,
        lifetime: query.expires_in_seconds.map(|value| seconds("expires_in_seconds", value)).transpose()?,
    })
}

pub(crate) fn pushed_view(pushed: &Pushed) -> PushedView {
    PushedView {
        name: pushed.name.clone(),
        snapshot: pushed.snapshot.to_string(),
        kind: pushed.kind.as_str(),
        bytes: pushed.bytes,
        sha256: pushed.sha256.clone(),
    }
}

pub(crate) fn snapshot_view(snapshot: &Snapshot) -> SnapshotView {
    SnapshotView {
        id: snapshot.id.to_string(),
        name: snapshot.name.as_ref().map(ToString::to_string),
        project: snapshot.project.to_string(),
        kind: snapshot.kind.as_str(),
        isolation: snapshot.class.as_str(),
        sandbox: snapshot.source.to_string(),
        parent: snapshot.parent.as_ref().map(ToString::to_string),
        template: snapshot.template.to_string(),
        limits: limits_view(&snapshot.spec.limits),
        bytes: snapshot.bytes,
        stood_still_micros: u64::try_from(snapshot.stood_still.as_micros()).unwrap_or(u64::MAX),
        created_at: moment(snapshot.created_at),
        expires_at: snapshot.expires_at.map(moment),
    }
}

pub(crate) fn origin_view(origin: &Origin) -> OriginView {
    OriginView { sandbox: origin.sandbox.to_string(), snapshot: origin.snapshot.as_ref().map(ToString::to_string) }
}

/// Which snapshots, after which, and how many.
pub(crate) fn snapshot_query(query: SnapshotQuery) -> Result<(SnapshotFilter, Option<SnapshotCursor>, u32), Invalid> {
    let filter = SnapshotFilter {
        source: query.sandbox.map(|id| id.parse()).transpose().map_err(|error| renamed("sandbox", error))?,
        name: query.name.map(|name| name.parse()).transpose().map_err(|error| renamed("name", error))?,
    };
    let limit = bounded("limit", query.limit, 100, 1, 1000)?;
    Ok((filter, query.cursor.map(|text| read_cursor(&text)).transpose()?, limit))
}

pub(crate) fn snapshot_page(page: &SnapshotPage) -> SnapshotPageView {
    let write_cursor = |cursor: &SnapshotCursor| URL_SAFE_NO_PAD.encode(format!("{}.{}", cursor.created_at.0, cursor.id));
    SnapshotPageView { snapshots: page.snapshots.iter().map(snapshot_view).collect(), next_cursor: page.next.as_ref().map(write_cursor) }
}

fn read_cursor(text: &str) -> Result<SnapshotCursor, Invalid> {
    let read = || {
        let plain = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let (at, id) = plain.split_once('.')?;
        // The store counts in signed numbers.
        let at = at.parse::<u64>().ok().filter(|at| i64::try_from(*at).is_ok())?;
        Some(SnapshotCursor { created_at: Timestamp(at), id: id.parse().ok()? })
    };
    read().ok_or_else(|| Invalid::new("cursor", "what `next_cursor` said", text))
}

pub(crate) fn fork(request: ForkRequest) -> Result<CoreFork, Invalid> {
    Ok(CoreFork {
        count: request.count.unwrap_or(1),
        together: request.all_or_nothing,
        env: request.env,
        metadata: request.metadata,
        lease: request.lease_seconds.map(|value| seconds("lease_seconds", value)).transpose()?,
        idle_timeout: request.idle_timeout_seconds.map(|value| seconds("idle_timeout_seconds", value)).transpose()?,
        on_timeout: None,
        auto_resume: None,
    })
}

pub(crate) fn fork_list(forks: Forks) -> ForkListView {
    let failed = |error: CoreError| {
        let code = error.code();
        ForkErrorView { code, detail: Problem::from(error).detail().to_owned() }
    };
    let view = |fork: Result<Arc<Sandbox>, CoreError>| match fork {
        Ok(sandbox) => ForkView { sandbox: Some(sandbox_view(&sandbox)), error: None },
        Err(error) => ForkView { sandbox: None, error: Some(failed(error)) },
    };
    ForkListView { forks: forks.into_iter().map(view).collect() }
}

pub(crate) fn tree_view(of: &Sandbox, family: &Family) -> TreeView {
    TreeView {
        root: of.root().to_string(),
        sandboxes: family.sandboxes.iter().map(sandbox_view).collect(),
        snapshots: family.snapshots.iter().map(snapshot_view).collect(),
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::SnapshotId;

    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was() {
        let cursor = SnapshotCursor { created_at: Timestamp(1234), id: SnapshotId::random() };
        let page = SnapshotPage { snapshots: Vec::new(), unreadable: Vec::new(), next: Some(cursor.clone()) };
        assert_eq!(read_cursor(&snapshot_page(&page).next_cursor.unwrap()).unwrap(), cursor);
        let far = URL_SAFE_NO_PAD.encode(format!("{}.nabcdefghijkmnpqrstu", u64::MAX));
        for wrong in ["", "x", far.as_str()] {
            assert_eq!(read_cursor(wrong).unwrap_err().field, "cursor");
        }
    }
}
