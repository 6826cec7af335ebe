//! The tables, version by version. Never change a file that was released: add the next one.

/// In order; the first is version 1.
pub(crate) const ALL: &[&str] = &[include_str!("../migrations/0001_initial.sql"), include_str!("../migrations/0002_snapshots.sql")];

/// Where a database says which version it has. Not itself a migration, so that any version can ask.
pub(crate) const VERSION_TABLE: &str = "CREATE TABLE IF NOT EXISTS belljar_schema (version BIGINT NOT NULL PRIMARY KEY)";

/// The newest version known here.
pub(crate) fn newest() -> i64 {
    i64::try_from(ALL.len()).unwrap_or(i64::MAX)
}
