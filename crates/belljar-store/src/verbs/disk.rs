//! What a project has of disk, counted in one place: the limits of its live sandboxes and all that it keeps. Everything that is new is measured
//! by the same sum, so that no order in which things are made gives a project more than another order.
//!
//! Snapshots that nobody asked for (what forks and warm templates begin with) are entered as nothing, see `snapshots.rs`.

use belljar_ports::StoreError;
use belljar_types::ProjectId;

use super::{Transaction, locks};
use crate::convert::{signed, unsigned};
use crate::errors::failed;

// The sum of a BIGINT is of a type of its own in PostgreSQL.
const KEPT: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM (
        SELECT bytes FROM snapshots WHERE project = $1
        UNION ALL SELECT size_bytes AS bytes FROM volumes WHERE project = $1
        UNION ALL SELECT bytes FROM artifacts WHERE project = $1
    ) AS kept";

/// Refuses `more` bytes beside all that the project has in this transaction. The project's row is held from then on: whoever comes next counts
/// what this transaction enters.
pub(super) async fn find_room(transaction: &mut Transaction, project: &ProjectId, more: u64) -> Result<(), StoreError> {
    // A statement of its own, and the first: PostgreSQL shows the next one what others entered while this one waited.
    let held: Option<(i64, i64)> = sqlx::query_as(locks::PROJECT_DISK)
        .bind(project.as_str())
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed("cannot read a project"))?;
    let Some((live, quota)) = held else {
        return Err(StoreError::Absent { what: "project", name: project.to_string() });
    };
    let kept: i64 = sqlx::query_scalar(KEPT)
        .bind(project.as_str())
        .fetch_one(&mut **transaction)
        .await
        .map_err(failed("cannot sum up what a project keeps"))?;
    let wanted = live.saturating_add(kept).saturating_add(signed(more));
    if wanted <= quota {
        return Ok(());
    }
    let (allowed, wanted) = (unsigned(quota), unsigned(wanted));
    Err(StoreError::OverQuota { project: project.clone(), resource: "disk_bytes", allowed, wanted })
}
