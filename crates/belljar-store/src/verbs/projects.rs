//! Projects and how much each may have. What each has is counted by `sandboxes.rs`.

use belljar_ports::StoreError;
use belljar_types::{Project, ProjectId, Quota, Timestamp, escape_untrusted};
use sqlx::{FromRow, Row as _};

use super::epochs::{commit, open};
use super::{Backend, Row, locks};
use crate::convert::{moment, quota, signed, unsigned};
use crate::errors::{failed, is_taken};

type Columns = (String, i64, i64, i64, i64, i64);

pub(super) async fn add(store: &Backend, project: &Project) -> Result<(), StoreError> {
    let mut transaction = open(store).await?;
    let added = sqlx::query(
        "INSERT INTO projects (id, created_at, quota_sandboxes, quota_cpu_millis, quota_memory_bytes, quota_disk_bytes)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(project.id.as_str())
    .bind(moment(project.created_at))
    .bind(i64::from(project.quota.sandboxes))
    .bind(signed(project.quota.cpu_millis))
    .bind(signed(project.quota.memory_bytes))
    .bind(signed(project.quota.disk_bytes))
    .execute(&mut *transaction)
    .await;
    match added {
        Ok(_) => commit(transaction).await,
        Err(error) if is_taken(&error) => Err(StoreError::Exists { what: "project", name: project.id.to_string() }),
        Err(error) => Err(failed("cannot enter a project")(error)),
    }
}

pub(super) async fn all(store: &Backend) -> Result<Vec<Project>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, created_at, quota_sandboxes, quota_cpu_millis, quota_memory_bytes, quota_disk_bytes FROM projects ORDER BY id",
    )
    .fetch_all(&store.read)
    .await
    .map_err(failed("cannot list projects"))?;
    let readable = |row| match read(row) {
        Ok(project) => Some(project),
        Err(error) => {
            tracing::error!(%error, "left out a project");
            None
        }
    };
    Ok(rows.iter().filter_map(readable).collect())
}

pub(super) async fn find(store: &Backend, id: &ProjectId) -> Result<Option<Project>, StoreError> {
    let row = sqlx::query(
        "SELECT id, created_at, quota_sandboxes, quota_cpu_millis, quota_memory_bytes, quota_disk_bytes FROM projects WHERE id = $1",
    )
    .bind(id.as_str())
    .fetch_optional(&store.read)
    .await
    .map_err(failed("cannot look up a project"))?;
    row.map(|row| read(&row)).transpose()
}

fn read(row: &Row) -> Result<Project, StoreError> {
    let corrupt = |problem: &dyn std::fmt::Display| unreadable("project", row, problem);
    let (id, created_at, sandboxes, cpu_millis, memory_bytes, disk_bytes) = Columns::from_row(row).map_err(|error| corrupt(&error))?;
    Ok(Project {
        id: id.parse().map_err(|error| corrupt(&error))?,
        quota: quota((sandboxes, cpu_millis, memory_bytes, disk_bytes)),
        created_at: Timestamp(unsigned(created_at)),
    })
}

/// A row that cannot be read, by its id as far as that can be.
pub(super) fn unreadable(what: &'static str, row: &Row, problem: &dyn std::fmt::Display) -> StoreError {
    let safe = |text: &str| escape_untrusted(text.as_bytes());
    let id = row.try_get::<String, _>("id").unwrap_or_default();
    StoreError::Corrupt { what, id: safe(&id), detail: safe(&problem.to_string()) }
}

pub(super) async fn set_quota(store: &Backend, id: &ProjectId, quota: &Quota) -> Result<(), StoreError> {
    let mut transaction = open(store).await?;
    let changed = sqlx::query(
        "UPDATE projects SET quota_sandboxes = $2, quota_cpu_millis = $3, quota_memory_bytes = $4, quota_disk_bytes = $5 WHERE id = $1",
    )
    .bind(id.as_str())
    .bind(i64::from(quota.sandboxes))
    .bind(signed(quota.cpu_millis))
    .bind(signed(quota.memory_bytes))
    .bind(signed(quota.disk_bytes))
    .execute(&mut *transaction)
    .await
    .map_err(failed("cannot change a quota"))?;
    if changed.rows_affected() == 0 {
        return Err(absent(id));
    }
    commit(transaction).await
}

pub(super) async fn remove(store: &Backend, id: &ProjectId) -> Result<(), StoreError> {
    let mut transaction = open(store).await?;
    let live: Option<i64> = sqlx::query_scalar(locks::PROJECT)
        .bind(id.as_str())
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed("cannot look up a project"))?;
    match live {
        None => return Err(absent(id)),
        Some(0) => {}
        Some(_) => return Err(StoreError::Exists { what: "a live sandbox of project", name: id.to_string() }),
    }
    let kept = [
        ("SELECT COUNT(*) FROM snapshots WHERE project = $1", "a snapshot of project"),
        ("SELECT COUNT(*) FROM volumes WHERE project = $1", "a volume of project"),
    ];
    for (sql, what) in kept {
        let count: i64 = sqlx::query_scalar(sql)
            .bind(id.as_str())
            .fetch_one(&mut *transaction)
            .await
            .map_err(failed("cannot count what a project keeps"))?;
        if count != 0 {
            return Err(StoreError::Exists { what, name: id.to_string() });
        }
    }
    let kept: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM artifacts WHERE project = $1")
        .bind(id.as_str())
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed("cannot count a project's artifacts"))?;
    if kept != 0 {
        return Err(StoreError::Exists { what: "an artifact of project", name: id.to_string() });
    }
    let theirs = [
        "DELETE FROM deliveries WHERE webhook IN (SELECT id FROM webhooks WHERE project = $1)",
        "DELETE FROM webhooks WHERE project = $1",
        "DELETE FROM budgets WHERE subject = 'project:' || $1",
        "DELETE FROM sandboxes WHERE project = $1",
        "DELETE FROM keys WHERE project = $1",
        "DELETE FROM projects WHERE id = $1",
    ];
    for sql in theirs {
        sqlx::query(sql).bind(id.as_str()).execute(&mut *transaction).await.map_err(failed("cannot remove a project"))?;
    }
    commit(transaction).await
}

fn absent(id: &ProjectId) -> StoreError {
    StoreError::Absent { what: "project", name: id.to_string() }
}
