//! How SQLite goes about what is asked often: off an index, in its order, never through a whole table.

use std::collections::BTreeMap;

use belljar_ports::{Cursor, Order, PageRequest, SandboxFilter};
use belljar_types::{SandboxId, SandboxState, Timestamp};
use sqlx::AssertSqlSafe;

use super::{SqliteStore, keys, pages};

async fn plan(store: &SqliteStore, sql: &str) -> String {
    let rows: Vec<(i64, i64, i64, String)> =
        sqlx::query_as(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"))).fetch_all(&store.read).await.unwrap();
    rows.into_iter().map(|(_, _, _, detail)| detail).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn nothing_asked_often_goes_through_a_whole_table() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("store.db")).await.unwrap();

    let any = SandboxFilter::default();
    let live = SandboxFilter { states: vec![SandboxState::Running, SandboxState::Creating], ..any.clone() };
    let ended = SandboxFilter { states: vec![SandboxState::Failed], ..any.clone() };
    let template = SandboxFilter { template: Some("base".parse().unwrap()), ..any.clone() };
    let two: BTreeMap<String, String> = [("a".to_owned(), "b".to_owned()), ("c".to_owned(), "d".to_owned())].into();
    let metadata = SandboxFilter { metadata: two, ..live.clone() };
    let cases = [
        (any, "INDEX sandboxes_pages (project=?"),
        (live, "INDEX sandboxes_live (project=?"),
        (ended, "INDEX sandboxes_pages (project=?"),
        (template, "INDEX sandboxes_of_template (project=? AND template=?"),
        (metadata, "INDEX sandbox_metadata_pages (project=? AND pair=?"),
    ];
    for (filter, index) in cases {
        for order in [Order::NewestFirst, Order::OldestFirst] {
            for after in [None, Some(Cursor { created_at: Timestamp(1), id: SandboxId::random() })] {
                let continued = after.is_some();
                let page = PageRequest { order, after, limit: 10 };
                let sql = pages::query(&"first".parse().unwrap(), &filter, &page, 10).into_string();
                let plan = plan(&store, &sql).await;
                assert!(plan.contains(index), "{filter:?}: {plan}");
                assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
                assert!(!continued || plan.contains("created_at"), "a later page starts where the last one ended: {plan}");
            }
        }
    }

    let unended = plan(&store, pages::UNENDED).await;
    assert_eq!(unended, "SCAN sandboxes USING INDEX sandboxes_live", "only those that live are in that index");
    for (sql, index) in [
        (keys::BY_HASH, "keys USING INDEX sqlite_autoindex_keys_2 (hash=?)"),
        ("DELETE FROM sandboxes WHERE ended_at < $1", "INDEX sandboxes_ended (ended_at<?)"),
        ("DELETE FROM idempotency WHERE used_at < $1", "INDEX idempotency_by_age (used_at<?)"),
    ] {
        let plan = plan(&store, sql).await;
        assert!(plan.contains(index) && !plan.contains("SCAN"), "{sql}: {plan}");
    }
    store.close().await;
}
