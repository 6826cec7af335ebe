//! The store in a PostgreSQL database, which several servers can reach. Locks on rows do what SQLite's one writer does: the epoch's row is held
//! shared by every write and alone by [`begin_epoch`](belljar_ports::Store::begin_epoch), so that when that returns, no older write is still on its way.

use std::str::FromStr;
use std::time::Duration;

use belljar_ports::StoreError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};

use crate::errors::OpenProblem;

#[path = "verbs/artifacts.rs"]
mod artifacts;
#[path = "verbs/disk.rs"]
mod disk;
#[path = "verbs/epochs.rs"]
mod epochs;
#[path = "verbs/keys.rs"]
mod keys;
#[path = "verbs/metering.rs"]
mod metering;
#[path = "verbs/pages.rs"]
mod pages;
#[path = "verbs/port.rs"]
mod port;
#[path = "verbs/projects.rs"]
mod projects;
#[path = "verbs/sandboxes.rs"]
mod sandboxes;
#[path = "verbs/snapshots.rs"]
mod snapshots;
#[path = "verbs/volumes.rs"]
mod volumes;
#[path = "verbs/webhooks.rs"]
mod webhooks;

// The names that `verbs/` uses for the database at hand.
use self::PostgresStore as Backend;
use sqlx::Postgres as Database;
use sqlx::postgres::PgRow as Row;
type Transaction = sqlx::Transaction<'static, Database>;

/// What is read in order to be changed, and held until then.
mod locks {
    pub(super) const BEGIN: &str = "BEGIN";
    /// Any number will do that nobody else uses: "belljar" in ASCII.
    pub(super) const MIGRATION: &str = "SELECT pg_advisory_xact_lock(27695076574060914)";
    // Whoever begins an epoch queues for the table, which is fair; those who read the row to write under it would pass by for ever.
    pub(super) const NEW_EPOCH: &str = "LOCK TABLE meta IN EXCLUSIVE MODE";
    pub(super) const EPOCH: &str = "SELECT epoch FROM meta FOR SHARE";
    pub(super) const PROJECT_DISK: &str = "SELECT live_disk_bytes, quota_disk_bytes FROM projects WHERE id = $1 FOR UPDATE";
    pub(super) const PROJECT: &str = "SELECT live_sandboxes FROM projects WHERE id = $1 FOR UPDATE";
    pub(super) const VOLUME: &str = "SELECT state, body FROM volumes WHERE id = $1 FOR UPDATE";
    pub(super) const SNAPSHOT: &str = "SELECT state FROM snapshots WHERE id = $1 FOR UPDATE";
    pub(super) const SANDBOX: &str = "SELECT state, execution, metadata, cpu_millis, memory_bytes, disk_bytes FROM sandboxes \
                                      WHERE id = $1 AND project = $2 FOR UPDATE";
}

const CONNECTIONS: u32 = 10;
/// How long a verb waits for a connection.
const PATIENCE: Duration = Duration::from_secs(20);
/// A connection that stood still for longer is asked for a sign of life before it is used.
const STALE: Duration = Duration::from_secs(5);

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    write: sqlx::PgPool,
    read: sqlx::PgPool,
}

impl PostgresStore {
    /// Opens the store in the database that `url` names, and makes its tables if there are none.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| OpenProblem::Unreachable(error).at("postgres"))?;
        let location = format!("postgres://{}:{}/{}", options.get_host(), options.get_port(), options.get_database().unwrap_or_default());
        let options = options.application_name("belljar").disable_statement_logging();
        // Asked once without the pool, which would try again and again, and then have forgotten why it failed.
        let first = options.connect().await.map_err(|error| OpenProblem::Unreachable(error).at(&location))?;
        first.close().await.map_err(|error| OpenProblem::Unreachable(error).at(&location))?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .test_before_acquire(false)
            .before_acquire(|connection, about| Box::pin(async move { Ok(about.idle_for < STALE || connection.ping().await.is_ok()) }))
            .connect_lazy_with(options);
        let store = Self { write: pool.clone(), read: pool };
        // Text is compared byte by byte, as in SQLite: no locale, and no index that a new locale turns wrong.
        epochs::migrate(&store, |sql| sql.replace(" TEXT", " TEXT COLLATE \"C\"")).await.map_err(|problem| problem.at(&location))?;
        Ok(store)
    }

    /// Waits for what is under way and closes all connections.
    pub async fn close(&self) {
        self.write.close().await;
    }
}
