//! Who may write: tables of the right version, the one current epoch, and whether writing works at all.
//!
//! This text is compiled once for each database, like all in this folder; `super` names the one at hand.

use belljar_ports::StoreError;
use belljar_types::Epoch;
use sqlx::AssertSqlSafe;

use super::{Backend, Transaction, locks};
use crate::convert::{signed, unsigned};
use crate::errors::{OpenProblem, failed};
use crate::migrations;

/// Brings the tables up to date, wholly or not at all. `adapt` turns a migration into what this database wants to hear.
pub(super) async fn migrate(store: &Backend, adapt: fn(&str) -> String) -> Result<(), OpenProblem> {
    let mut transaction = store.write.begin_with(locks::BEGIN).await.map_err(OpenProblem::of_connection)?;
    sqlx::query(locks::MIGRATION).execute(&mut *transaction).await.map_err(OpenProblem::of_connection)?;
    sqlx::query(migrations::VERSION_TABLE).execute(&mut *transaction).await.map_err(OpenProblem::of_connection)?;
    let done: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM belljar_schema").fetch_all(&mut *transaction).await.map_err(OpenProblem::Migration)?;
    let (found, known) = (done.iter().copied().max().unwrap_or(0), migrations::newest());
    if found > known {
        return Err(OpenProblem::Newer { found, known });
    }
    for (version, sql) in migrations::ALL.iter().filter(|(version, _)| !done.contains(version)) {
        sqlx::raw_sql(AssertSqlSafe(adapt(sql))).execute(&mut *transaction).await.map_err(OpenProblem::Migration)?;
        sqlx::query("INSERT INTO belljar_schema (version) VALUES ($1)")
            .bind(*version)
            .execute(&mut *transaction)
            .await
            .map_err(OpenProblem::Migration)?;
    }
    transaction.commit().await.map_err(OpenProblem::Migration)
}

/// A transaction for what no epoch guards.
pub(super) async fn open(store: &Backend) -> Result<Transaction, StoreError> {
    store.write.begin_with(locks::BEGIN).await.map_err(failed("cannot begin to write"))
}

/// A transaction that only the server of the current epoch gets.
pub(super) async fn fenced(store: &Backend, epoch: Epoch) -> Result<Transaction, StoreError> {
    let mut transaction = open(store).await?;
    let current: i64 =
        sqlx::query_scalar(locks::EPOCH).fetch_one(&mut *transaction).await.map_err(failed("cannot read the current epoch"))?;
    if current == signed(epoch.0) { Ok(transaction) } else { Err(StoreError::Fenced { current: unsigned(current), ours: epoch.0 }) }
}

/// Makes what was done since `open` or `fenced` last.
pub(super) async fn commit(transaction: Transaction) -> Result<(), StoreError> {
    transaction.commit().await.map_err(failed("cannot commit what was written"))
}

pub(super) async fn begin(store: &Backend) -> Result<Epoch, StoreError> {
    let mut transaction = open(store).await?;
    sqlx::query(locks::NEW_EPOCH).execute(&mut *transaction).await.map_err(failed("cannot start a new epoch"))?;
    let epoch: i64 = sqlx::query_scalar("UPDATE meta SET epoch = epoch + 1 RETURNING epoch")
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed("cannot start a new epoch"))?;
    sqlx::query(
        "UPDATE projects SET
            live_sandboxes = (SELECT COUNT(*) FROM sandboxes s WHERE s.project = projects.id AND s.ended_at IS NULL),
            live_cpu_millis = (SELECT COALESCE(SUM(s.cpu_millis), 0) FROM sandboxes s WHERE s.project = projects.id AND s.ended_at IS NULL),
            live_memory_bytes = (SELECT COALESCE(SUM(s.memory_bytes), 0) FROM sandboxes s WHERE s.project = projects.id AND s.ended_at IS NULL),
            live_disk_bytes = (SELECT COALESCE(SUM(s.disk_bytes), 0) FROM sandboxes s WHERE s.project = projects.id AND s.ended_at IS NULL)",
    )
    .execute(&mut *transaction)
    .await
    .map_err(failed("cannot sum up what each project has"))?;
    commit(transaction).await?;
    Ok(Epoch(unsigned(epoch)))
}

/// Writes something that differs from before: writing the same again may touch no disk.
pub(super) async fn check(store: &Backend) -> Result<(), StoreError> {
    let mut transaction = open(store).await?;
    sqlx::query("UPDATE health SET probes = probes + 1").execute(&mut *transaction).await.map_err(failed("cannot write a probe"))?;
    commit(transaction).await
}
