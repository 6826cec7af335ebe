//! One sandbox in the store: entered once, written only by whoever knows how it stands, and forgotten some time after its end.
//!
//! Reserve and record are on the way of every create: one transaction each, of as few statements as can be, all prepared.

use belljar_ports::{Once, Reserved, StoreError, Unreadable};
use belljar_types::{EndCause, Epoch, ExecutionId, ProjectId, Sandbox, SandboxId, SandboxState, Timestamp, escape_untrusted, hex};
use sqlx::Row as _;

use super::epochs::{commit, fenced};
use super::{Backend, Database, Row, Transaction, disk, locks, volumes};
use crate::convert::{moment, signed, unsigned};
use crate::digest;
use crate::errors::{failed, is_taken};

pub(super) async fn reserve(store: &Backend, epoch: Epoch, sandbox: &Sandbox, once: Option<&Once>) -> Result<Reserved, StoreError> {
    debug_assert_eq!(sandbox.state, SandboxState::Creating, "a sandbox enters the store before it is made");
    let mut transaction = fenced(store, epoch).await?;
    if let Some(once) = once
        && let Some(before) = claim(&mut transaction, sandbox, once).await?
    {
        return Ok(Reserved::Before(Box::new(before)));
    }
    charge(&mut transaction, sandbox).await?;
    enter(&mut transaction, sandbox).await?;
    volumes::mount(&mut transaction, sandbox).await?;
    commit(transaction).await?;
    Ok(Reserved::New)
}

/// Claims an idempotency key for this sandbox, or finds the sandbox that has it.
async fn claim(transaction: &mut Transaction, sandbox: &Sandbox, once: &Once) -> Result<Option<Sandbox>, StoreError> {
    let (key, fingerprint) = (digest::of(&once.key), hex(&once.fingerprint));
    // More than one round only if the owner is forgotten, or its key inherited, between the two statements.
    loop {
        let claimed = sqlx::query(
            "INSERT INTO idempotency (project, key, fingerprint, sandbox, used_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (project, key) DO NOTHING",
        )
        .bind(sandbox.project.as_str())
        .bind(&key)
        .bind(&fingerprint)
        .bind(sandbox.id.as_str())
        .bind(moment(sandbox.created_at))
        .execute(&mut **transaction)
        .await
        .map_err(failed("cannot claim an idempotency key"))?;
        if claimed.rows_affected() == 1 {
            return Ok(None);
        }
        match owner_of(&mut **transaction, &sandbox.project, once).await? {
            Some(owner) if !was_not_made(&owner) => return Ok(Some(owner)),
            Some(owner) if inherit(transaction, sandbox, &key, &owner.id).await? => return Ok(None),
            _ => {}
        }
    }
}

pub(super) async fn repeated(store: &Backend, project: &ProjectId, once: &Once) -> Result<Option<Sandbox>, StoreError> {
    Ok(owner_of(&store.read, project, once).await?.filter(|owner| !was_not_made(owner)))
}

/// A request that made nothing, because the server died over it or the engine failed, had no effect yet and may have it now.
fn was_not_made(sandbox: &Sandbox) -> bool {
    sandbox.end.as_ref().is_some_and(|end| sandbox.state.has_ended() && end.cause == EndCause::NotMade)
}

/// Takes a key over from a sandbox that was not made. Says `false` if somebody else was faster.
async fn inherit(transaction: &mut Transaction, sandbox: &Sandbox, key: &str, from: &SandboxId) -> Result<bool, StoreError> {
    let inherited = sqlx::query("UPDATE idempotency SET sandbox = $3, used_at = $5 WHERE project = $1 AND key = $2 AND sandbox = $4")
        .bind(sandbox.project.as_str())
        .bind(key)
        .bind(sandbox.id.as_str())
        .bind(from.as_str())
        .bind(moment(sandbox.created_at))
        .execute(&mut **transaction)
        .await
        .map_err(failed("cannot take over an idempotency key"))?;
    Ok(inherited.rows_affected() == 1)
}

/// The sandbox that has an idempotency key, if the request was the same.
async fn owner_of<'c>(
    database: impl sqlx::Executor<'c, Database = Database>,
    project: &ProjectId,
    once: &Once,
) -> Result<Option<Sandbox>, StoreError> {
    let row = sqlx::query(
        "SELECT i.fingerprint, s.id, s.project, s.state, s.execution, s.created_at, s.body
         FROM idempotency i JOIN sandboxes s ON s.id = i.sandbox WHERE i.project = $1 AND i.key = $2",
    )
    .bind(project.as_str())
    .bind(digest::of(&once.key))
    .fetch_optional(database)
    .await
    .map_err(failed("cannot look up an idempotency key"))?;
    let Some(row) = row else { return Ok(None) };
    let first: String = row.try_get("fingerprint").map_err(failed("cannot read an idempotency key"))?;
    if first == hex(&once.fingerprint) {
        read(&row).map(Some).map_err(corrupt)
    } else {
        Err(StoreError::KeyReused { key: once.key.clone() })
    }
}

/// Adds the sandbox to what its project has, if there is room.
async fn charge(transaction: &mut Transaction, sandbox: &Sandbox) -> Result<(), StoreError> {
    let limits = &sandbox.spec.limits;
    let charged = sqlx::query(
        "UPDATE projects SET live_sandboxes = live_sandboxes + 1, live_cpu_millis = live_cpu_millis + $2,
            live_memory_bytes = live_memory_bytes + $3, live_disk_bytes = live_disk_bytes + $4
         WHERE id = $1 AND live_sandboxes + 1 <= quota_sandboxes AND live_cpu_millis + $2 <= quota_cpu_millis
            AND live_memory_bytes + $3 <= quota_memory_bytes",
    )
    .bind(sandbox.project.as_str())
    .bind(i64::from(limits.cpu_millis))
    .bind(signed(limits.memory_bytes))
    .bind(signed(limits.disk_bytes))
    .execute(&mut **transaction)
    .await
    .map_err(failed("cannot charge a project"))?;
    if charged.rows_affected() == 0 {
        return Err(why_not_charged(transaction, sandbox).await?);
    }
    // Its disk is among the live ones by now.
    disk::find_room(transaction, &sandbox.project, 0).await
}

async fn why_not_charged(transaction: &mut Transaction, sandbox: &Sandbox) -> Result<StoreError, StoreError> {
    let project = sqlx::query_as::<_, (i64, i64, i64, i64, i64, i64)>(
        "SELECT live_sandboxes, quota_sandboxes, live_cpu_millis, quota_cpu_millis, live_memory_bytes, quota_memory_bytes
         FROM projects WHERE id = $1",
    )
    .bind(sandbox.project.as_str())
    .fetch_optional(&mut **transaction)
    .await
    .map_err(failed("cannot read a project"))?;
    let Some(row) = project else {
        return Ok(StoreError::Absent { what: "project", name: sandbox.project.to_string() });
    };
    let limits = &sandbox.spec.limits;
    let resources = [("cpu_millis", row.2, row.3, u64::from(limits.cpu_millis)), ("memory_bytes", row.4, row.5, limits.memory_bytes)];
    // Where none of the others is over, it is the number of sandboxes.
    let (resource, live, allowed, asked) = resources
        .into_iter()
        .find(|(_, live, allowed, asked)| live.saturating_add(signed(*asked)) > *allowed)
        .unwrap_or(("sandboxes", row.0, row.1, 1));
    let wanted = unsigned(live).saturating_add(asked);
    Ok(StoreError::OverQuota { project: sandbox.project.clone(), resource, allowed: unsigned(allowed), wanted })
}

async fn enter(transaction: &mut Transaction, sandbox: &Sandbox) -> Result<(), StoreError> {
    let (metadata, pairs) = digest::metadata(&sandbox.metadata);
    let limits = &sandbox.spec.limits;
    let entered = sqlx::query(
        "INSERT INTO sandboxes (id, project, state, execution, class, template, created_at, expires_at,
            cpu_millis, memory_bytes, disk_bytes, metadata, body, root)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(sandbox.id.as_str())
    .bind(sandbox.project.as_str())
    .bind(sandbox.state.as_str())
    .bind(sandbox.execution().as_str())
    .bind(sandbox.class.as_str())
    .bind(sandbox.template.as_str())
    .bind(moment(sandbox.created_at))
    .bind(sandbox.expires_at.map(moment))
    .bind(i64::from(limits.cpu_millis))
    .bind(signed(limits.memory_bytes))
    .bind(signed(limits.disk_bytes))
    .bind(metadata)
    .bind(body(sandbox)?)
    .bind(sandbox.origin.as_ref().map(|origin| origin.root.as_str()))
    .execute(&mut **transaction)
    .await;
    match entered {
        Ok(_) => write_pairs(transaction, sandbox, &pairs).await,
        Err(error) if is_taken(&error) => Err(StoreError::Exists { what: "sandbox", name: sandbox.id.to_string() }),
        Err(error) => Err(failed("cannot enter a sandbox")(error)),
    }
}

async fn write_pairs(transaction: &mut Transaction, sandbox: &Sandbox, pairs: &[String]) -> Result<(), StoreError> {
    if pairs.is_empty() {
        return Ok(());
    }
    let mut query = sqlx::QueryBuilder::<Database>::new("INSERT INTO sandbox_metadata (sandbox, pair, project, created_at) ");
    query.push_values(pairs, |mut row, pair| {
        row.push_bind(sandbox.id.as_str()).push_bind(pair).push_bind(sandbox.project.as_str()).push_bind(moment(sandbox.created_at));
    });
    query.build().execute(&mut **transaction).await.map_err(failed("cannot write a sandbox's metadata"))?;
    Ok(())
}

pub(super) async fn record(
    store: &Backend,
    epoch: Epoch,
    was: SandboxState,
    execution: &ExecutionId,
    sandbox: &Sandbox,
) -> Result<(), StoreError> {
    let mut transaction = fenced(store, epoch).await?;
    write(&mut transaction, was, execution, sandbox).await?;
    commit(transaction).await
}

/// Writes a sandbox as it is to be, if it is as its writer thinks.
pub(super) async fn write(
    transaction: &mut Transaction,
    was: SandboxState,
    execution: &ExecutionId,
    sandbox: &Sandbox,
) -> Result<(), StoreError> {
    let conflict = |found: &str| StoreError::Conflict { id: sandbox.id.clone(), found: escape_untrusted(found.as_bytes()) };
    let row = sqlx::query_as::<_, (String, String, String, i64, i64, i64)>(locks::SANDBOX)
        .bind(sandbox.id.as_str())
        .bind(sandbox.project.as_str())
        .fetch_optional(&mut **transaction)
        .await
        .map_err(failed("cannot read a sandbox"))?;
    let Some((state, run, metadata_before, cpu_millis, memory_bytes, disk_bytes)) = row else {
        return Err(conflict("absent"));
    };
    if state != was.as_str() {
        return Err(conflict(&state));
    }
    if run != execution.as_str() {
        return Err(conflict("another execution"));
    }

    let (metadata, pairs) = digest::metadata(&sandbox.metadata);
    let ended_at = sandbox.state.has_ended().then(|| moment(sandbox.end.as_ref().map_or(sandbox.created_at, |end| end.at)));
    sqlx::query("UPDATE sandboxes SET state = $2, execution = $3, expires_at = $4, ended_at = $5, metadata = $6, body = $7 WHERE id = $1")
        .bind(sandbox.id.as_str())
        .bind(sandbox.state.as_str())
        .bind(sandbox.execution().as_str())
        .bind(sandbox.expires_at.map(moment))
        .bind(ended_at)
        .bind(&metadata)
        .bind(body(sandbox)?)
        .execute(&mut **transaction)
        .await
        .map_err(failed("cannot write a sandbox"))?;
    if metadata != metadata_before {
        sqlx::query("DELETE FROM sandbox_metadata WHERE sandbox = $1")
            .bind(sandbox.id.as_str())
            .execute(&mut **transaction)
            .await
            .map_err(failed("cannot write a sandbox's metadata"))?;
        write_pairs(transaction, sandbox, &pairs).await?;
    }
    if sandbox.state.has_ended() {
        volumes::unmount(transaction, &sandbox.id).await?;
    }
    let change = i64::from(!sandbox.state.has_ended()) - i64::from(!was.has_ended());
    if change != 0 {
        sqlx::query(
            "UPDATE projects SET live_sandboxes = live_sandboxes + $2, live_cpu_millis = live_cpu_millis + $3,
                live_memory_bytes = live_memory_bytes + $4, live_disk_bytes = live_disk_bytes + $5 WHERE id = $1",
        )
        .bind(sandbox.project.as_str())
        .bind(change)
        .bind(change * cpu_millis)
        .bind(change * memory_bytes)
        .bind(change * disk_bytes)
        .execute(&mut **transaction)
        .await
        .map_err(failed("cannot give back what a sandbox had"))?;
    }
    Ok(())
}

pub(super) async fn find(store: &Backend, project: &ProjectId, id: &SandboxId) -> Result<Option<Sandbox>, StoreError> {
    let row = sqlx::query("SELECT id, project, state, execution, created_at, body FROM sandboxes WHERE id = $1 AND project = $2")
        .bind(id.as_str())
        .bind(project.as_str())
        .fetch_optional(&store.read)
        .await
        .map_err(failed("cannot look up a sandbox"))?;
    row.map(|row| read(&row).map_err(corrupt)).transpose()
}

pub(super) async fn forget(store: &Backend, epoch: Epoch, before: Timestamp) -> Result<u64, StoreError> {
    let mut transaction = fenced(store, epoch).await?;
    sqlx::query("DELETE FROM idempotency WHERE used_at < $1")
        .bind(moment(before))
        .execute(&mut *transaction)
        .await
        .map_err(failed("cannot forget idempotency keys"))?;
    let forgotten = sqlx::query("DELETE FROM sandboxes WHERE ended_at < $1")
        .bind(moment(before))
        .execute(&mut *transaction)
        .await
        .map_err(failed("cannot forget sandboxes that ended"))?;
    commit(transaction).await?;
    Ok(forgotten.rows_affected())
}

/// A sandbox from its row. Body and columns have to agree: the columns are what writers compare and quotas are summed up by.
pub(super) fn read(row: &Row) -> Result<Sandbox, Unreadable> {
    let id: String = row.try_get("id").map_err(|error| unreadable("unknown", &error))?;
    let text = |column: &'static str| row.try_get::<String, _>(column).map_err(|error| unreadable(&id, &error));
    let (project, state, execution) = (text("project")?, text("state")?, text("execution")?);
    let sandbox: Sandbox = serde_json::from_str(&text("body")?).map_err(|error| unreadable(&id, &error))?;
    let agrees = [
        ("id", id.as_str(), sandbox.id.as_str()),
        ("project", &project, sandbox.project.as_str()),
        ("state", &state, sandbox.state.as_str()),
        ("execution", &execution, sandbox.execution().as_str()),
    ];
    if let Some((name, column, body)) = agrees.iter().find(|(_, column, body)| column != body) {
        return Err(unreadable(&id, &format!("its {name} is {column} in one place and {body} in another")));
    }
    Ok(sandbox)
}

pub(super) fn unreadable(id: &str, problem: &dyn std::fmt::Display) -> Unreadable {
    let safe = |text: &str| escape_untrusted(text.as_bytes());
    Unreadable { id: safe(id), detail: safe(&problem.to_string()) }
}

fn corrupt(row: Unreadable) -> StoreError {
    StoreError::Corrupt { what: "sandbox", id: row.id, detail: row.detail }
}

fn body(sandbox: &Sandbox) -> Result<String, StoreError> {
    serde_json::to_string(sandbox)
        .map_err(|error| StoreError::Database { operation: "cannot write a sandbox as JSON", source: Box::new(error) })
}
