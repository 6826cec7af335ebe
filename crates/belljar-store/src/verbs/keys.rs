//! API keys: found by the hash of their secret, which is all that is kept of it.

use belljar_ports::StoreError;
use belljar_types::{ApiKey, KeyHash, KeyId, ProjectId, hex};
use sqlx::FromRow;

use super::epochs::{commit, open};
use super::projects::unreadable;
use super::{Backend, Row};
use crate::errors::{failed, is_taken, refers_to_nothing};

pub(super) const BY_HASH: &str = "SELECT id, project, body FROM keys WHERE hash = $1";

pub(super) async fn add(store: &Backend, key: &ApiKey, hash: &KeyHash) -> Result<(), StoreError> {
    let body = serde_json::to_string(key)
        .map_err(|error| StoreError::Database { operation: "cannot write a key as JSON", source: Box::new(error) })?;
    let mut transaction = open(store).await?;
    let added = sqlx::query("INSERT INTO keys (id, project, hash, body) VALUES ($1, $2, $3, $4)")
        .bind(key.id.as_str())
        .bind(key.project.as_str())
        .bind(hex(&hash.0))
        .bind(body)
        .execute(&mut *transaction)
        .await;
    match added {
        Ok(_) => commit(transaction).await,
        Err(error) if is_taken(&error) => Err(StoreError::Exists { what: "key", name: key.id.to_string() }),
        Err(error) if refers_to_nothing(&error) => Err(StoreError::Absent { what: "project", name: key.project.to_string() }),
        Err(error) => Err(failed("cannot enter a key")(error)),
    }
}

pub(super) async fn by_hash(store: &Backend, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
    let row = sqlx::query(BY_HASH).bind(hex(&hash.0)).fetch_optional(&store.read).await.map_err(failed("cannot look up a key"))?;
    row.map(|row| read(&row)).transpose()
}

pub(super) async fn all(store: &Backend, project: Option<&ProjectId>) -> Result<Vec<ApiKey>, StoreError> {
    let query = match project {
        Some(project) => sqlx::query("SELECT id, project, body FROM keys WHERE project = $1 ORDER BY id").bind(project.as_str()),
        None => sqlx::query("SELECT id, project, body FROM keys ORDER BY project, id"),
    };
    let rows = query.fetch_all(&store.read).await.map_err(failed("cannot list keys"))?;
    let readable = |row| match read(row) {
        Ok(key) => Some(key),
        Err(error) => {
            tracing::error!(%error, "left out a key, which is refused too");
            None
        }
    };
    Ok(rows.iter().filter_map(readable).collect())
}

pub(super) async fn remove(store: &Backend, id: &KeyId) -> Result<bool, StoreError> {
    let mut transaction = open(store).await?;
    let removed = sqlx::query("DELETE FROM keys WHERE id = $1")
        .bind(id.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(failed("cannot remove a key"))?;
    commit(transaction).await?;
    Ok(removed.rows_affected() > 0)
}

/// A key acts for the project of its column, which remove_project goes by: a body that says otherwise is not believed.
fn read(row: &Row) -> Result<ApiKey, StoreError> {
    let corrupt = |problem: &dyn std::fmt::Display| unreadable("key", row, problem);
    let (id, project, body) = <(String, String, String)>::from_row(row).map_err(|error| corrupt(&error))?;
    let key: ApiKey = serde_json::from_str(&body).map_err(|error| corrupt(&error))?;
    if key.id.as_str() != id || key.project.as_str() != project {
        return Err(corrupt(&"its body names another key or project"));
    }
    Ok(key)
}
