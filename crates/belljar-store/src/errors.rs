//! What databases say, in the port's words. A full disk is told apart, because people can do something about it.

use belljar_ports::StoreError;
use sqlx::error::ErrorKind;

/// SQLite's `SQLITE_FULL` and `SQLITE_IOERR_SHMSIZE` (its shared-memory file cannot grow), and PostgreSQL's `disk_full`.
const DISK_FULL: [&str; 3] = ["13", "4874", "53100"];

/// SQLite's `SQLITE_NOTADB` and `SQLITE_CORRUPT`.
const NOT_A_DATABASE: [&str; 2] = ["26", "11"];

/// Why a store cannot be opened: the source of [`StoreError::Open`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenProblem {
    /// The URL is of no kind that is known.
    #[error("expected sqlite:PATH or postgres://USER@HOST/DATABASE")]
    UnknownKind,
    /// The file cannot be made or opened.
    #[error("its file cannot be made or opened; the directory has to exist")]
    File(#[source] std::io::Error),
    /// The file is something else, or damaged.
    #[error("it is no SQLite database, or a damaged one; move it away, put back a copy, or give another path")]
    NotADatabase(#[source] sqlx::Error),
    /// A newer version has been here.
    #[error(
        "a newer version has written it (schema {found}, this version knows {known}); use that version, or a copy from before the upgrade"
    )]
    Newer {
        /// The schema it has.
        found: i64,
        /// The newest one known here.
        known: i64,
    },
    /// It cannot be reached, or does not let us in.
    #[error("the database does not answer as it should")]
    Unreachable(#[source] sqlx::Error),
    /// Its tables cannot be brought up to date.
    #[error("its tables cannot be made or brought up to date")]
    Migration(#[source] sqlx::Error),
}

impl OpenProblem {
    /// The port's error for this problem with the store at `location`.
    pub(crate) fn at(self, location: &str) -> StoreError {
        match &self {
            Self::NotADatabase(error) | Self::Unreachable(error) | Self::Migration(error) if has_code(error, &DISK_FULL) => {
                StoreError::Full
            }
            _ => StoreError::Open { location: location.to_owned(), source: Box::new(self) },
        }
    }

    /// The problem behind a database's refusal to work at all.
    pub(crate) fn of_connection(error: sqlx::Error) -> Self {
        if has_code(&error, &NOT_A_DATABASE) { Self::NotADatabase(error) } else { Self::Unreachable(error) }
    }
}

/// Turns a failure of the database into the port's, for `map_err`. `operation` starts with "cannot".
pub(crate) fn failed(operation: &'static str) -> impl FnOnce(sqlx::Error) -> StoreError {
    move |error| {
        if has_code(&error, &DISK_FULL) { StoreError::Full } else { StoreError::Database { operation, source: Box::new(error) } }
    }
}

/// Whether the name is taken.
pub(crate) fn is_taken(error: &sqlx::Error) -> bool {
    has_kind(error, &ErrorKind::UniqueViolation)
}

/// Whether it refers to something that is not there.
pub(crate) fn refers_to_nothing(error: &sqlx::Error) -> bool {
    has_kind(error, &ErrorKind::ForeignKeyViolation)
}

fn has_kind(error: &sqlx::Error, kind: &ErrorKind) -> bool {
    error.as_database_error().is_some_and(|database| std::mem::discriminant(&database.kind()) == std::mem::discriminant(kind))
}

fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| codes.contains(&code.as_ref()))
}
