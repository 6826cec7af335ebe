//! Volumes in the store: entered before they are made, shown when they are ready, and never in two hands that do not go together.

use async_trait::async_trait;
use belljar_ports::{Holder, StoreError, Unreadable, VolumePage, VolumeStore};
use belljar_types::{Epoch, MountMode, ProjectId, Sandbox, SandboxId, Volume, VolumeId, VolumeName, VolumeState, escape_untrusted};
use sqlx::{QueryBuilder, Row as _};

use super::epochs::{commit, fenced};
use super::sandboxes::unreadable;
use super::{Backend, Database, Row, Transaction, disk, locks};
use crate::convert::{moment, signed};
use crate::errors::{failed, is_taken};

const COLUMNS: &str = "SELECT id, project, name, state, body FROM volumes";

#[async_trait]
impl VolumeStore for Backend {
    async fn enter_volume(&self, epoch: Epoch, volume: &Volume) -> Result<(), StoreError> {
        debug_assert_eq!(volume.state, VolumeState::Making, "a volume enters the store before it is made");
        let mut transaction = fenced(self, epoch).await?;
        // Its size is promised, whether or not it is used.
        disk::find_room(&mut transaction, &volume.project, volume.size_bytes).await?;
        let entered =
            sqlx::query("INSERT INTO volumes (id, project, name, state, size_bytes, created_at, body) VALUES ($1, $2, $3, $4, $5, $6, $7)")
                .bind(volume.id.as_str())
                .bind(volume.project.as_str())
                .bind(volume.name.as_str())
                .bind(volume.state.as_str())
                .bind(signed(volume.size_bytes))
                .bind(moment(volume.created_at))
                .bind(body(volume)?)
                .execute(&mut *transaction)
                .await;
        match entered {
            Ok(_) => commit(transaction).await,
            Err(error) if is_taken(&error) => Err(StoreError::Exists { what: "volume", name: volume.name.to_string() }),
            Err(error) => Err(failed("cannot enter a volume")(error)),
        }
    }

    async fn record_volume(&self, epoch: Epoch, was: VolumeState, volume: &Volume) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        let state = locked(&mut transaction, &volume.id).await?.map(|(state, _)| state);
        let found = state.as_deref().unwrap_or("absent");
        if found != was.as_str() {
            return Err(StoreError::VolumeConflict { id: volume.id.clone(), found: escape_untrusted(found.as_bytes()) });
        }
        if volume.state == VolumeState::Removing
            && let Some((holder, mode)) = holders_of(&mut transaction, &volume.id).await?.into_iter().next()
        {
            return Err(in_use(&volume.name, &holder, &mode)?);
        }
        sqlx::query("UPDATE volumes SET state = $2, body = $3 WHERE id = $1")
            .bind(volume.id.as_str())
            .bind(volume.state.as_str())
            .bind(body(volume)?)
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot write a volume"))?;
        commit(transaction).await
    }

    async fn forget_volume(&self, epoch: Epoch, id: &VolumeId) -> Result<(), StoreError> {
        let mut transaction = fenced(self, epoch).await?;
        sqlx::query("DELETE FROM volumes WHERE id = $1")
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await
            .map_err(failed("cannot forget a volume"))?;
        commit(transaction).await
    }

    async fn volume(&self, project: &ProjectId, id: &VolumeId) -> Result<Option<Volume>, StoreError> {
        let mut sql = ready_of(project);
        sql.push(" AND id = ").push_bind(id.to_string());
        one(self, sql).await
    }

    async fn volume_named(&self, project: &ProjectId, name: &VolumeName) -> Result<Option<Volume>, StoreError> {
        let mut sql = ready_of(project);
        sql.push(" AND name = ").push_bind(name.to_string());
        one(self, sql).await
    }

    async fn list_volumes(&self, project: &ProjectId, after: Option<&VolumeName>, limit: u32) -> Result<VolumePage, StoreError> {
        let limit = limit.max(1);
        let mut sql = ready_of(project);
        if let Some(after) = after {
            sql.push(" AND name > ").push_bind(after.to_string());
        }
        sql.push(" ORDER BY name LIMIT ").push_bind(i64::from(limit) + 1);
        let mut rows = sql.build().fetch_all(&self.read).await.map_err(failed("cannot list volumes"))?;
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let named = |row: &Row| row.try_get::<String, _>("name").ok()?.parse().ok();
        let next = if more { rows.iter().rev().find_map(named) } else { None };
        let (volumes, unreadable) = read_all(&rows);
        Ok(VolumePage { volumes, unreadable, next })
    }

    async fn all_volumes(&self) -> Result<(Vec<Volume>, Vec<Unreadable>), StoreError> {
        let rows = QueryBuilder::<Database>::new(COLUMNS).build().fetch_all(&self.read).await;
        Ok(read_all(&rows.map_err(failed("cannot list all volumes"))?))
    }

    async fn holders(&self, id: &VolumeId, limit: u32) -> Result<Vec<Holder>, StoreError> {
        let rows: Vec<(String, String)> =
            sqlx::query_as("SELECT sandbox, mode FROM volume_mounts WHERE volume = $1 ORDER BY sandbox LIMIT $2")
                .bind(id.as_str())
                .bind(i64::from(limit))
                .fetch_all(&self.read)
                .await
                .map_err(failed("cannot look for who has a volume"))?;
        rows.iter().map(|(sandbox, mode)| Ok(Holder { sandbox: holder(sandbox)?, mode: mode_of(sandbox, mode)? })).collect()
    }
}

/// Gives a sandbox that was just entered its volumes, or refuses it all.
pub(super) async fn mount(transaction: &mut Transaction, sandbox: &Sandbox) -> Result<(), StoreError> {
    let mut mounts: Vec<_> = sandbox.spec.volumes.iter().collect();
    // In one order, so that two who want the same ones do not wait for each other.
    mounts.sort_by(|one, other| one.volume.cmp(&other.volume));
    for mount in mounts {
        let absent = || StoreError::Absent { what: "volume", name: mount.name.to_string() };
        let (state, body) = locked(transaction, &mount.volume).await?.ok_or_else(absent)?;
        let volume: Volume = serde_json::from_str(&body).map_err(|error| corrupt(unreadable(mount.volume.as_str(), &error)))?;
        if volume.project != sandbox.project || state != VolumeState::Ready.as_str() {
            return Err(absent());
        }
        if volume.read_only && mount.mode != MountMode::ReadOnly {
            return Err(StoreError::VolumeReadOnly { name: volume.name });
        }
        for (holder, mode) in holders_of(transaction, &mount.volume).await? {
            if !mode_of(&holder, &mode)?.goes_with(mount.mode) {
                return Err(in_use(&volume.name, &holder, &mode)?);
            }
        }
        sqlx::query("INSERT INTO volume_mounts (volume, sandbox, mode) VALUES ($1, $2, $3)")
            .bind(mount.volume.as_str())
            .bind(sandbox.id.as_str())
            .bind(mount.mode.as_str())
            .execute(&mut **transaction)
            .await
            .map_err(failed("cannot give a sandbox its volume"))?;
    }
    Ok(())
}

/// Takes the volumes of a sandbox that has ended.
pub(super) async fn unmount(transaction: &mut Transaction, id: &SandboxId) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM volume_mounts WHERE sandbox = $1")
        .bind(id.as_str())
        .execute(&mut **transaction)
        .await
        .map_err(failed("cannot take back a sandbox's volumes"))?;
    Ok(())
}

async fn locked(transaction: &mut Transaction, id: &VolumeId) -> Result<Option<(String, String)>, StoreError> {
    let row = sqlx::query_as(locks::VOLUME).bind(id.as_str()).fetch_optional(&mut **transaction).await;
    row.map_err(failed("cannot read a volume"))
}

async fn holders_of(transaction: &mut Transaction, id: &VolumeId) -> Result<Vec<(String, String)>, StoreError> {
    let rows = sqlx::query_as("SELECT sandbox, mode FROM volume_mounts WHERE volume = $1 ORDER BY sandbox")
        .bind(id.as_str())
        .fetch_all(&mut **transaction)
        .await;
    rows.map_err(failed("cannot look for who has a volume"))
}

fn in_use(name: &VolumeName, sandbox: &str, mode: &str) -> Result<StoreError, StoreError> {
    Ok(StoreError::VolumeInUse { name: name.clone(), holder: holder(sandbox)?, mode: mode_of(sandbox, mode)?.to_string() })
}

fn holder(sandbox: &str) -> Result<SandboxId, StoreError> {
    sandbox.parse().map_err(|error| corrupt(unreadable(sandbox, &error)))
}

fn mode_of(sandbox: &str, mode: &str) -> Result<MountMode, StoreError> {
    mode.parse().map_err(|error| corrupt(unreadable(sandbox, &error)))
}

fn ready_of(project: &ProjectId) -> QueryBuilder<Database> {
    let mut sql = QueryBuilder::new(COLUMNS);
    sql.push(" WHERE state = 'ready' AND project = ").push_bind(project.to_string());
    sql
}

async fn one(store: &Backend, mut sql: QueryBuilder<Database>) -> Result<Option<Volume>, StoreError> {
    let row = sql.build().fetch_optional(&store.read).await.map_err(failed("cannot look up a volume"))?;
    row.map(|row| read(&row).map_err(corrupt)).transpose()
}

fn corrupt(row: Unreadable) -> StoreError {
    StoreError::Corrupt { what: "volume", id: row.id, detail: row.detail }
}

fn read_all(rows: &[Row]) -> (Vec<Volume>, Vec<Unreadable>) {
    let (mut good, mut bad) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        match read(row) {
            Ok(volume) => good.push(volume),
            Err(unreadable) => bad.push(unreadable),
        }
    }
    (good, bad)
}

/// A volume from its row. Body and columns have to agree: the columns are what writers compare.
fn read(row: &Row) -> Result<Volume, Unreadable> {
    let id: String = row.try_get("id").map_err(|error| unreadable("unknown", &error))?;
    let text = |column: &'static str| row.try_get::<String, _>(column).map_err(|error| unreadable(&id, &error));
    let (project, name, state) = (text("project")?, text("name")?, text("state")?);
    let volume: Volume = serde_json::from_str(&text("body")?).map_err(|error| unreadable(&id, &error))?;
    let agrees =
        volume.id.as_str() == id && volume.project.as_str() == project && volume.name.as_str() == name && volume.state.as_str() == state;
    if agrees { Ok(volume) } else { Err(unreadable(&id, &"its id, project, name or state differs in its body")) }
}

fn body(volume: &Volume) -> Result<String, StoreError> {
    serde_json::to_string(volume)
        .map_err(|error| StoreError::Database { operation: "cannot write a volume as JSON", source: Box::new(error) })
}
