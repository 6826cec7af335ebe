//! The tables, version by version. Never change a file that was released: add the next one.

/// Each with its number, in order. Numbers are given out beforehand, so that a gap may be filled later.
pub(crate) const ALL: &[(i64, &str)] = &[
    (1, include_str!("../migrations/0001_initial.sql")),
    (2, include_str!("../migrations/0002_snapshots.sql")),
    (3, include_str!("../migrations/0003_metering.sql")),
    (4, include_str!("../migrations/0004_volumes.sql")),
    (5, include_str!("../migrations/0005_artifacts.sql")),
    (7, include_str!("../migrations/0007_webhooks.sql")),
];

/// Where a database says which version it has. Not itself a migration, so that any version can ask.
pub(crate) const VERSION_TABLE: &str = "CREATE TABLE IF NOT EXISTS belljar_schema (version BIGINT NOT NULL PRIMARY KEY)";

/// The newest version known here.
pub(crate) fn newest() -> i64 {
    ALL.iter().map(|(version, _)| *version).max().unwrap_or(0)
}
