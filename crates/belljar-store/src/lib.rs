//! `Store` on SQLite and PostgreSQL.
