//! Snapshots in the store: entered before they are taken, shown when they are whole, forgotten when nothing is left of them.

use async_trait::async_trait;
use belljar_ports::{Family, SnapshotCursor, SnapshotFilter, SnapshotPage, SnapshotStore, StoreError, Unreadable};
use belljar_types::{
    Epoch, ProjectId, SandboxId, Snapshot, SnapshotId, SnapshotName, SnapshotPurpose, SnapshotState, Timestamp, escape_untrusted,
};
use sqlx::{QueryBuilder, Row as _};

use super::epochs::{commit, fenced};
use super::sandboxes::{read as read_sandbox, unreadable};
use super::{Backend, Database, Row, disk, locks};
use crate::convert::{moment, signed, unsigned};
use crate::errors::{failed, is_taken, refers_to_nothing};

const COLUMNS: &str = "SELECT id, project, state, created_at, body FROM snapshots";

#[async_trait]
impl SnapshotStore for Backend {
    async fn enter_snapshot(&self, epoch: Epoch, snapshot: &Snapshot) -> Result<(), StoreError> {
        debug_assert_eq!(snapshot.state, SnapshotState::Making, "a snapshot enters the store before it is taken");
        let mut transaction = fenced(self, epoch).await?;
        if snapshot.purpose == SnapshotPurpose::Kept {
            // What it has is known when it is there: a project that is over its quota by then gets no more of them.
            disk::find_room(&mut transaction, &snapshot.project, snapshot.bytes).await?;
        }
        let entered = sqlx::query(
            "INSERT INTO snapshots (id, project, state, source, root, name, bytes, created_at, expires_at, body)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(snapshot.id.as_str())
        .bind(snapshot.project.as_str())
        .bind(snapshot.state.as_str())
        .bind(snapshot.source.as_str())
        .bind(snapshot.root.as_str())
        .bind(snapshot.name.as_ref().map(SnapshotName::as_str))
        .bind(signed(counted(snapshot)))
        .bind(moment(snapshot.created_at))
        .bind(snapshot.expires_at.map(moment))
        .bind(body(snapshot)?)
        .execute(&mut *transaction)
        .await;
        match entered {
            Ok(_) => commit(transaction).await,
            Err(error) if is_taken(&error) => Err(StoreError::Exists { what: "snapshot", name: snapshot.id.to_string() }),
            Err(error) if refers_to_nothing(&error) => Err(StoreError::Absent { what: "project", name: snapshot.project.to_string() }),
            Err(error) => Err(failed("cannot enter a snapshot")(error)),
        }
    }

    async fn record_snapshot(&self, epoch: Epoch, was: SnapshotState, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        let state: Option<String> = sqlx::query_scalar(locks::SNAPSHOT)
            .bind(snapshot.id.as_str())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(failed("cannot read a snapshot"))?;
        let found = state.as_deref().unwrap_or("absent");
        if found != was.as_str() {
            return Err(StoreError::SnapshotConflict { id: snapshot.id.clone(), found: escape_untrusted(found.as_bytes()) });
        }
        sqlx::query("UPDATE snapshots SET state = $2, bytes = $3, expires_at = $4, body = $5 WHERE id = $1")
            .bind(snapshot.id.as_str())
            .bind(snapshot.state.as_str())
            .bind(signed(counted(snapshot)))
            .bind(snapshot.expires_at.map(moment))
            .bind(body(snapshot)?)
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot write a snapshot"))?;
        commit(transaction).await
    }

    async fn forget_snapshot(&self, epoch: Epoch, id: &SnapshotId) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        sqlx::query("DELETE FROM snapshots WHERE id = $1")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot forget a snapshot"))?;
        commit(transaction).await
    }

    async fn snapshot(&self, project: &ProjectId, id: &SnapshotId) -> Result<Option<Snapshot>, StoreError> {
        let mut sql = whole_of(project);
        sql.push(" AND id = ").push_bind(id.to_string());
        one(self, sql).await
    }

    async fn snapshot_named(&self, project: &ProjectId, name: &SnapshotName) -> Result<Option<Snapshot>, StoreError> {
        let mut sql = whole_of(project);
        sql.push(" AND name = ").push_bind(name.to_string()).push(" ORDER BY created_at DESC, id DESC LIMIT 1");
        one(self, sql).await
    }

    async fn list_snapshots(
        &self,
        project: &ProjectId,
        filter: &SnapshotFilter,
        after: Option<&SnapshotCursor>,
        limit: u32,
    ) -> Result<SnapshotPage, StoreError> {
        let limit = limit.max(1);
        let mut sql = whole_of(project);
        if let Some(source) = &filter.source {
            sql.push(" AND source = ").push_bind(source.to_string());
        }
        if let Some(name) = &filter.name {
            sql.push(" AND name = ").push_bind(name.to_string());
        }
        if let Some(cursor) = after {
            sql.push(" AND (created_at, id) < (")
                .push_bind(moment(cursor.created_at))
                .push(", ")
                .push_bind(cursor.id.to_string())
                .push(")");
        }
        sql.push(" ORDER BY created_at DESC, id DESC LIMIT ").push_bind(i64::from(limit) + 1);
        let mut rows = sql.build().fetch_all(&self.read).await.map_err(failed("cannot list snapshots"))?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = if more { rows.iter().rev().find_map(cursor) } else { None };
        let (snapshots, unreadable) = read_all(&rows);
        Ok(SnapshotPage { snapshots, unreadable, next })
    }

    async fn all_snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Unreadable>), StoreError> {
        let rows = QueryBuilder::<Database>::new(COLUMNS).build().fetch_all(&self.read).await;
        Ok(read_all(&rows.map_err(failed("cannot list all snapshots"))?))
    }

    async fn expiring_snapshots(&self, before: Timestamp, limit: u32) -> Result<Vec<Snapshot>, StoreError> {
        let mut sql = QueryBuilder::<Database>::new(COLUMNS);
        sql.push(" WHERE state = 'whole' AND expires_at < ").push_bind(moment(before));
        sql.push(" ORDER BY expires_at LIMIT ").push_bind(i64::from(limit));
        let rows = sql.build().fetch_all(&self.read).await.map_err(failed("cannot look for snapshots that expire"))?;
        Ok(read_all(&rows).0)
    }

    async fn family(&self, project: &ProjectId, root: &SandboxId, limit: u32) -> Result<Family, StoreError> {
        let mut sql = whole_of(project);
        sql.push(" AND root = ").push_bind(root.to_string());
        sql.push(" ORDER BY created_at, id LIMIT ").push_bind(i64::from(limit));
        let snapshots = sql.build().fetch_all(&self.read).await.map_err(failed("cannot list a family's snapshots"))?;
        let rows = sqlx::query(
            "SELECT id, project, state, execution, created_at, body FROM sandboxes WHERE project = $1 AND (id = $2 OR root = $2)
             ORDER BY created_at, id LIMIT $3",
        )
        .bind(project.as_str())
        .bind(root.as_str())
        .bind(i64::from(limit))
        .fetch_all(&self.read)
        .await
        .map_err(failed("cannot list a family's sandboxes"))?;
        let sandboxes = rows.iter().filter_map(|row| read_sandbox(row).ok()).collect();
        Ok(Family { sandboxes, snapshots: read_all(&snapshots).0 })
    }
}

/// What a snapshot counts for the disk. Those that the server takes for itself are nobody's to pay for: a fork that fits must not be refused because of
/// the snapshot that it begins with.
fn counted(snapshot: &Snapshot) -> u64 {
    if snapshot.purpose == SnapshotPurpose::Kept { snapshot.bytes } else { 0 }
}

fn whole_of(project: &ProjectId) -> QueryBuilder<Database> {
    let mut sql = QueryBuilder::new(COLUMNS);
    sql.push(" WHERE state = 'whole' AND project = ").push_bind(project.to_string());
    sql
}

async fn one(store: &Backend, mut sql: QueryBuilder<Database>) -> Result<Option<Snapshot>, StoreError> {
    let row = sql.build().fetch_optional(&store.read).await.map_err(failed("cannot look up a snapshot"))?;
    let corrupt = |row: Unreadable| StoreError::Corrupt { what: "snapshot", id: row.id, detail: row.detail };
    row.map(|row| read(&row).map_err(corrupt)).transpose()
}

fn read_all(rows: &[Row]) -> (Vec<Snapshot>, Vec<Unreadable>) {
    let (mut good, mut bad) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match read(row) {
            Ok(snapshot) => good.push(snapshot),
            Err(unreadable) => bad.push(unreadable),
        }
    }
    (good, bad)
}

/// A snapshot from its row. Body and columns have to agree: the columns are what writers compare.
fn read(row: &Row) -> Result<Snapshot, Unreadable> {
    let id: String = row.try_get("id").map_err(|error| unreadable("unknown", &error))?;
    let text = |column: &'static str| row.try_get::<String, _>(column).map_err(|error| unreadable(&id, &error));
    let (project, state) = (text("project")?, text("state")?);
    let snapshot: Snapshot = serde_json::from_str(&text("body")?).map_err(|error| unreadable(&id, &error))?;
    let agrees = snapshot.id.as_str() == id && snapshot.project.as_str() == project && snapshot.state.as_str() == state;
    if agrees { Ok(snapshot) } else { Err(unreadable(&id, &"its id, project or state differs in its body")) }
}

fn cursor(row: &Row) -> Option<SnapshotCursor> {
    let created_at: i64 = row.try_get("created_at").ok()?;
    let id: String = row.try_get("id").ok()?;
    Some(SnapshotCursor { created_at: Timestamp(unsigned(created_at)), id: id.parse().ok()? })
}

fn body(snapshot: &Snapshot) -> Result<String, StoreError> {
    serde_json::to_string(snapshot)
        .map_err(|error| StoreError::Database { operation: "cannot write a snapshot as JSON", source: Box::new(error) })
}
