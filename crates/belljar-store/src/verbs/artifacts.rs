//! Artifacts in the store: entered before their bytes are put, shown when they are there, forgotten after they are gone.

use async_trait::async_trait;
use belljar_ports::{ArtifactCursor, ArtifactPage, ArtifactStore, StoreError, Unreadable};
use belljar_types::{Artifact, ArtifactId, ArtifactState, Epoch, ProjectId, SandboxId, Timestamp};
use sqlx::{QueryBuilder, Row as _};

use super::epochs::{commit, fenced};
use super::sandboxes::unreadable;
use super::{Backend, Database, Row, disk};
use crate::convert::{moment, signed, unsigned};
use crate::errors::{failed, is_taken, refers_to_nothing};

const COLUMNS: &str = "SELECT id, project, state, created_at, body FROM artifacts";

#[async_trait]
impl ArtifactStore for Backend {
    async fn enter_artifact(&self, epoch: Epoch, artifact: &Artifact, most: u64) -> Result<(), StoreError> {
        debug_assert_eq!(artifact.state, ArtifactState::Keeping, "an artifact enters the store before its bytes are put");
        let mut transaction = fenced(self, epoch).await?;
        disk::find_room(&mut transaction, &artifact.project, artifact.bytes).await?;
        let there: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM artifacts WHERE project = $1 AND sandbox = $2")
            .bind(artifact.project.as_str())
            .bind(artifact.sandbox.as_str())
            .fetch_one(&mut *transaction)
            .await
            .map_err(failed("cannot count a sandbox's artifacts"))?;
        if unsigned(there) >= most {
            let (project, wanted) = (artifact.project.clone(), unsigned(there).saturating_add(1));
            return Err(StoreError::OverQuota { project, resource: "artifacts of one sandbox", allowed: most, wanted });
        }
        let entered = sqlx::query(
            "INSERT INTO artifacts (id, project, state, sandbox, bytes, created_at, expires_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(artifact.id.as_str())
        .bind(artifact.project.as_str())
        .bind(artifact.state.as_str())
        .bind(artifact.sandbox.as_str())
        .bind(signed(artifact.bytes))
        .bind(moment(artifact.created_at))
        .bind(artifact.expires_at.map(moment))
        .bind(body(artifact)?)
        .execute(&mut *transaction)
        .await;
        match entered {
            Ok(_) => commit(transaction).await,
            Err(error) if is_taken(&error) => Err(StoreError::Exists { what: "artifact", name: artifact.id.to_string() }),
            Err(error) if refers_to_nothing(&error) => Err(StoreError::Absent { what: "project", name: artifact.project.to_string() }),
            Err(error) => Err(failed("cannot enter an artifact")(error)),
        }
    }

    async fn record_artifact(&self, epoch: Epoch, was: ArtifactState, artifact: &Artifact) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        let written = sqlx::query("UPDATE artifacts SET state = $3, bytes = $4, expires_at = $5, body = $6 WHERE id = $1 AND state = $2")
            .bind(artifact.id.as_str())
            .bind(was.as_str())
            .bind(artifact.state.as_str())
            .bind(signed(artifact.bytes))
            .bind(artifact.expires_at.map(moment))
            .bind(body(artifact)?)
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot write an artifact"))?;
        if written.rows_affected() == 0 {
            return Err(StoreError::Absent { what: "artifact", name: artifact.id.to_string() });
        }
        if artifact.state == ArtifactState::Kept {
            // It may have grown since it was entered, and is counted by now.
            disk::find_room(&mut transaction, &artifact.project, 0).await?;
        }
        commit(transaction).await
    }

    async fn forget_artifact(&self, epoch: Epoch, id: &ArtifactId) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        sqlx::query("DELETE FROM artifacts WHERE id = $1")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot forget an artifact"))?;
        commit(transaction).await
    }

    async fn artifact(&self, project: &ProjectId, id: &ArtifactId) -> Result<Option<Artifact>, StoreError> {
        let mut sql = QueryBuilder::<Database>::new(COLUMNS);
        sql.push(" WHERE state = 'kept' AND project = ").push_bind(project.to_string()).push(" AND id = ").push_bind(id.to_string());
        let row = sql.build().fetch_optional(&self.read).await.map_err(failed("cannot look up an artifact"))?;
        let corrupt = |row: Unreadable| StoreError::Corrupt { what: "artifact", id: row.id, detail: row.detail };
        row.map(|row| read(&row).map_err(corrupt)).transpose()
    }

    async fn list_artifacts(
        &self,
        project: &ProjectId,
        sandbox: Option<&SandboxId>,
        after: Option<&ArtifactCursor>,
        limit: u32,
    ) -> Result<ArtifactPage, StoreError> {
        let limit = limit.max(1);
        let mut sql = QueryBuilder::<Database>::new(COLUMNS);
        sql.push(" WHERE state = 'kept' AND project = ").push_bind(project.to_string());
        if let Some(sandbox) = sandbox {
            sql.push(" AND sandbox = ").push_bind(sandbox.to_string());
        }
        if let Some(cursor) = after {
            sql.push(" AND (created_at, id) < (")
                .push_bind(moment(cursor.created_at))
                .push(", ")
                .push_bind(cursor.id.to_string())
                .push(")");
        }
        sql.push(" ORDER BY created_at DESC, id DESC LIMIT ").push_bind(i64::from(limit) + 1);
        let mut rows = sql.build().fetch_all(&self.read).await.map_err(failed("cannot list artifacts"))?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = if more { rows.iter().rev().find_map(cursor) } else { None };
        Ok(ArtifactPage { artifacts: readable(&rows), next })
    }

    async fn expiring_artifacts(&self, before: Timestamp, limit: u32) -> Result<Vec<Artifact>, StoreError> {
        let mut sql = QueryBuilder::<Database>::new(COLUMNS);
        sql.push(" WHERE state = 'kept' AND expires_at < ").push_bind(moment(before));
        sql.push(" ORDER BY expires_at LIMIT ").push_bind(i64::from(limit));
        let rows = sql.build().fetch_all(&self.read).await.map_err(failed("cannot look for artifacts that expire"))?;
        Ok(readable(&rows))
    }

    async fn unfinished_artifacts(&self) -> Result<Vec<ArtifactId>, StoreError> {
        let ids: Vec<String> = sqlx::query_scalar("SELECT id FROM artifacts WHERE state <> 'kept'")
            .fetch_all(&self.read)
            .await
            .map_err(failed("cannot look for unfinished artifacts"))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }
}

fn body(artifact: &Artifact) -> Result<String, StoreError> {
    serde_json::to_string(artifact)
        .map_err(|error| StoreError::Database { operation: "cannot write an artifact as JSON", source: Box::new(error) })
}

/// One bad row must not hide the others: it is logged and left out; asking for it by its id says more.
fn readable(rows: &[Row]) -> Vec<Artifact> {
    let good = |row| match read(row) {
        Ok(artifact) => Some(artifact),
        Err(bad) => {
            tracing::error!(artifact = bad.id, detail = bad.detail, "left out an artifact whose row cannot be read");
            None
        }
    };
    rows.iter().filter_map(good).collect()
}

fn read(row: &Row) -> Result<Artifact, Unreadable> {
    let id: String = row.try_get("id").map_err(|error| unreadable("unknown", &error))?;
    let text = |column: &'static str| row.try_get::<String, _>(column).map_err(|error| unreadable(&id, &error));
    let (project, state, body) = (text("project")?, text("state")?, text("body")?);
    let artifact: Artifact = serde_json::from_str(&body).map_err(|error| unreadable(&id, &error))?;
    let agrees = artifact.id.as_str() == id && artifact.project.as_str() == project && artifact.state.as_str() == state;
    if agrees { Ok(artifact) } else { Err(unreadable(&id, &"its body names another artifact, project or state")) }
}

fn cursor(row: &Row) -> Option<ArtifactCursor> {
    let created_at: i64 = row.try_get("created_at").ok()?;
    let id: String = row.try_get("id").ok()?;
    Some(ArtifactCursor { created_at: Timestamp(unsigned(created_at)), id: id.parse().ok()? })
}
