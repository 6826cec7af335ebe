//! The store in one SQLite file: one connection that writes, and a few that read and never wait for it (write-ahead log).
//!
//! Writers queue for the one connection and then take the database's lock at the start of their transaction (`BEGIN IMMEDIATE`), so that none
//! fails half way because another was faster; a second process, which the epoch fences off, waits in the same way.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use belljar_ports::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
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
#[cfg(test)]
mod tests;
#[path = "verbs/volumes.rs"]
mod volumes;
#[path = "verbs/webhooks.rs"]
mod webhooks;

// The names that `verbs/` uses for the database at hand.
use self::SqliteStore as Backend;
use sqlx::Sqlite as Database;
use sqlx::sqlite::SqliteRow as Row;
type Transaction = sqlx::Transaction<'static, Database>;

/// What is read in order to be changed. The lock on the database is held already.
mod locks {
    pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";
    pub(super) const MIGRATION: &str = "SELECT 1";
    pub(super) const NEW_EPOCH: &str = "SELECT 1";
    pub(super) const EPOCH: &str = "SELECT epoch FROM meta";
    pub(super) const PROJECT_DISK: &str = "SELECT live_disk_bytes, quota_disk_bytes FROM projects WHERE id = $1";
    pub(super) const PROJECT: &str = "SELECT live_sandboxes FROM projects WHERE id = $1";
    pub(super) const VOLUME: &str = "SELECT state, body FROM volumes WHERE id = $1";
    pub(super) const SNAPSHOT: &str = "SELECT state FROM snapshots WHERE id = $1";
    pub(super) const SANDBOX: &str =
        "SELECT state, execution, metadata, cpu_millis, memory_bytes, disk_bytes FROM sandboxes WHERE id = $1 AND project = $2";
}

/// How long a writer waits: for its turn here, and for a writer in another process.
const PATIENCE: Duration = Duration::from_secs(20);
const READERS: u32 = 4;
/// Pages of 4 kB in the log before some writer has to merge it into the file, which waits for the disk. Eight times the usual: one write in
/// a thousand waits, not one in a hundred.
const LOG_PAGES: &str = "8000";

/// A store in one file.
pub struct SqliteStore {
    write: sqlx::SqlitePool,
    read: sqlx::SqlitePool,
}

impl SqliteStore {
    /// Opens the store at `path`, in a directory that exists; makes it, readable by its owner only, if there is none.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let location = path.display().to_string();
        let _turn = turn(path).await.map_err(|error| OpenProblem::File(error).at(&location))?;
        make_private(path).map_err(|error| OpenProblem::File(error).at(&location))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .foreign_keys(true)
            .busy_timeout(PATIENCE)
            .synchronous(SqliteSynchronous::Normal)
            .disable_statement_logging();
        let writing = options.clone().journal_mode(SqliteJournalMode::Wal).pragma("wal_autocheckpoint", LOG_PAGES);
        let reading = options.pragma("query_only", "on");

        let write = lasting(1)
            // SQLite undoes a transaction by itself when the disk is full; sqlx then takes it for open for ever. Such a connection is not used again.
            .after_release(|connection, _| {
                Box::pin(async move {
                    if connection.is_in_transaction() {
                        // A roll-back may still be on its way, ahead of this.
                        connection.ping().await?;
                    }
                    Ok(!connection.is_in_transaction())
                })
            })
            .connect_with(writing)
            .await
            .map_err(|error| OpenProblem::of_connection(error).at(&location))?;
        let store = Self { write, read: lasting(READERS).connect_lazy_with(reading) };
        epochs::migrate(&store, str::to_owned).await.map_err(|problem| problem.at(&location))?;
        Ok(store)
    }

    /// Waits for what is under way and closes the file; the write-ahead log is merged into it.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

/// A pool that keeps its connections, since opening a file anew would only forget the prepared statements.
fn lasting(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// A turn at opening the store, for as long as it is held. SQLite does not wait when two turn the write-ahead log on at once: it fails one of them.
async fn turn(path: &Path) -> io::Result<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    let wait = tokio::task::spawn_blocking(move || {
        let directory = File::open(directory)?;
        directory.lock()?;
        Ok(directory)
    });
    wait.await.map_err(io::Error::other)?
}

/// Makes the file if there is none; its log and index files take over its mode. One that is there is not opened: closing it again would drop
/// the locks that SQLite holds on it for other connections of this process.
fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::set_permissions(path, Permissions::from_mode(0o600)),
        made => made.map(drop),
    }
}
