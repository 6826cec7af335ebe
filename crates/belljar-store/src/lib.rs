//! What the service remembers: [`belljar_ports::Store`] on SQLite, for one machine, and on PostgreSQL, for a fleet.
//!
//! ```text
//!   open(url) ──► SqliteStore ─┐  one writer, a few readers that never wait for it
//!             └─► PostgresStore┤  one pool
//!                              ├── verbs/   each verb once, as text that is compiled for either database
//!                              └── migrations/   one set, taken by both
//! ```
//!
//! ## What is kept, and when
//! * SQLite: a verb that returned survives the death of the server (`kill -9`) at any later moment, because what was written is with the kernel by
//!   then. A *power cut or kernel crash* can lose the verbs of the last moments, those since the write-ahead log was last flushed
//!   (`synchronous = NORMAL`); what is left is always a consistent state from before, never half a verb. Sandboxes do not survive
//!   such a crash either, so nothing that still runs is forgotten by it.
//! * PostgreSQL: as its `synchronous_commit` says; by default nothing that returned is lost.
//!
//! ## Versions
//! Migrations run when a store is opened, all in one transaction. A database that a newer version has written is refused.
#![expect(clippy::duplicate_mod, reason = "verbs/ is one text for two databases, compiled with the types of each")]

mod convert;
mod digest;
mod errors;
mod migrations;
mod postgres;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use belljar_ports::{Store, StoreError};

pub use errors::OpenProblem;
pub use postgres::PostgresStore;
pub use sqlite::SqliteStore;

/// Opens the store that `url` names: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return Ok(Arc::new(SqliteStore::open(Path::new(path)).await?));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Arc::new(PostgresStore::connect(url).await?));
    }
    // Whatever it is, it may hold a password: only what stands before the colon is shown.
    let kind = url.split_once(':').map_or("without a kind", |(kind, _)| kind);
    Err(OpenProblem::UnknownKind.at(&belljar_types::escape_untrusted(kind.as_bytes())))
}
