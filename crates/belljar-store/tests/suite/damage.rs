//! A store that somebody or something has damaged: one bad row is one bad row, and what cannot be used at all says why.

use std::error::Error;
use std::os::unix::fs::PermissionsExt;

use belljar_ports::{Order, PageRequest, SandboxFilter, StoreError};
use belljar_types::{ApiKey, KeyHash, KeyId, SandboxState, Timestamp};

use crate::bed::{Bed, UNBOUNDED, become_state};

pub(crate) async fn one_bad_row_is_one_bad_row(bed: &Bed) {
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(bed.reserved().await);
    }
    all.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    let [good, torn, wrong, emptied, also_good, last] = <[_; 6]>::try_from(all).unwrap();
    bed.execute(&format!("UPDATE sandboxes SET body = substr(body, 1, 100) WHERE id = '{}'", torn.id)).await;
    bed.execute(&format!("UPDATE sandboxes SET state = 'running' WHERE id = '{}'", wrong.id)).await;
    bed.execute(&format!("UPDATE sandboxes SET body = '\u{1b}[2J' WHERE id IN ('{}', '{}')", emptied.id, last.id)).await;

    let bad = [&torn, &wrong, &emptied, &last];
    for sandbox in bad {
        match bed.store.sandbox(&bed.project, &sandbox.id).await {
            Err(StoreError::Corrupt { what: "sandbox", id, detail }) => {
                assert_eq!(id, sandbox.id.as_str());
                assert!(!detail.contains('\u{1b}'), "{detail:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let expected: Vec<&str> = bad.into_iter().map(|sandbox| sandbox.id.as_str()).collect();
    let (readable, unreadable) = bed.store.unended().await.unwrap();
    assert_eq!(readable, [good.clone(), also_good.clone()]);
    assert_eq!(unreadable.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), expected);

    // A page may end with a bad row, and goes on after it.
    let (mut readable, mut unreadable, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let request = PageRequest { order: Order::OldestFirst, after, limit: 2 };
        let page = bed.store.list(&bed.project, &SandboxFilter::default(), &request).await.unwrap();
        readable.extend(page.sandboxes);
        unreadable.extend(page.unreadable.into_iter().map(|row| row.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(readable, [good.clone(), also_good]);
    assert_eq!(unreadable, expected);

    // Others are written as before, and so is a bad one by whoever still knows it.
    let mut good = good;
    bed.advance(&mut good, SandboxState::Running).await;
    let mut mended = torn;
    become_state(&mut mended, SandboxState::Failed);
    bed.store.record(bed.epoch, SandboxState::Creating, mended.execution(), &mended).await.unwrap();
    assert_eq!(bed.get(&mended).await.as_ref(), Some(&mended));
}

pub(crate) async fn a_bad_key_is_refused_and_left_out(bed: &Bed) {
    let key = |label: &str| ApiKey {
        id: KeyId::random(),
        project: bed.project.clone(),
        scopes: [].into(),
        label: label.to_owned(),
        created_at: Timestamp(1),
        expires_at: None,
    };
    let (good, torn, stolen) = (key("good"), key("torn"), key("stolen"));
    for (byte, key) in [&good, &torn, &stolen].into_iter().enumerate() {
        bed.store.add_key(key, &KeyHash([byte as u8; 32])).await.unwrap();
    }
    bed.execute(&format!("UPDATE keys SET body = '{{' WHERE id = '{}'", torn.id)).await;
    bed.execute(&format!("UPDATE keys SET body = replace(body, '\"first\"', '\"other\"') WHERE id = '{}'", stolen.id)).await;
    for byte in [1, 2] {
        let answer = bed.store.key_by_hash(&KeyHash([byte; 32])).await;
        assert!(matches!(answer, Err(StoreError::Corrupt { what: "key", .. })), "{answer:?}");
    }
    assert_eq!(bed.store.keys(None).await.unwrap(), [good]);
    assert!(bed.store.remove_key(&torn.id).await.unwrap());
}

pub(crate) async fn a_newer_schema_is_refused(bed: &Bed) {
    bed.execute("INSERT INTO belljar_schema (version) VALUES (900)").await;
    let words = refusal(&bed.url).await;
    assert!(words.contains("a newer version has written it (schema 900, this version knows "), "{words}");
    bed.execute("DELETE FROM belljar_schema WHERE version = 900").await;
    belljar_store::open(&bed.url).await.unwrap().close().await;
}

pub(crate) async fn opening_again_keeps_everything(bed: &Bed) {
    let made = bed.reserved().await;
    bed.store.close().await;
    let (again, other) = tokio::join!(belljar_store::open(&bed.url), belljar_store::open(&bed.url));
    let (again, other) = (again.unwrap(), other.unwrap());
    assert_eq!(again.sandbox(&bed.project, &made.id).await.unwrap().as_ref(), Some(&made));
    assert_eq!(other.begin_epoch().await.unwrap().0, bed.epoch.0 + 1);
    assert!(matches!(again.reserve(bed.epoch, &made, None).await, Err(StoreError::Fenced { .. })));
}

/// All at once, on nothing: one makes the tables, the others find them.
pub(crate) async fn many_may_open_it_for_the_first_time(bed: &Bed) {
    bed.store.close().await;
    bed.remove_everything().await;
    let openers: Vec<_> = (0..8)
        .map(|_| {
            let url = bed.url.clone();
            tokio::spawn(async move { belljar_store::open(&url).await.unwrap().begin_epoch().await.unwrap().0 })
        })
        .collect();
    let mut epochs = Vec::new();
    for opener in openers {
        epochs.push(opener.await.unwrap());
    }
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// All that is said when it cannot be opened.
async fn refusal(url: &str) -> String {
    let error = belljar_store::open(url).await.err().expect("it cannot be opened");
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}

#[tokio::test]
async fn what_is_no_store_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "not a database, and long enough to be taken for one\n".repeat(100)).unwrap();
    let cases = [
        ("mysql://root:hunter2@host/db".to_owned(), "cannot open the store mysql: expected sqlite:PATH or postgres://"),
        ("/var/lib/store.db".to_owned(), "expected sqlite:PATH or postgres://"),
        (format!("sqlite:{}", text.display()), "it is no SQLite database, or a damaged one"),
        (format!("sqlite:{}", directory.path().join("no/such/place.db").display()), "the directory has to exist"),
        (
            "postgres://belljar:hunter2@127.0.0.1:1/nowhere".to_owned(),
            "cannot open the store postgres://127.0.0.1:1/nowhere: the database does not answer",
        ),
    ];
    for (url, expected) in cases {
        let words = refusal(&url).await;
        assert!(words.contains(expected) && !words.contains("hunter2"), "{url}: {words}");
    }
    assert!(std::fs::read(&text).unwrap().starts_with(b"not a database"));
}

#[tokio::test]
async fn only_its_owner_can_read_the_file() {
    let bed = Bed::sqlite().await;
    bed.reserved().await;
    let file = bed.url.strip_prefix("sqlite:").unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let mode = std::fs::metadata(format!("{file}{suffix}")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
}

/// SQLite keeps whatever is put into a column; PostgreSQL does not let it in.
#[tokio::test]
async fn a_project_of_nonsense_is_left_out() {
    let bed = Bed::sqlite().await;
    let other = bed.add_project("other", UNBOUNDED).await;
    bed.execute("UPDATE projects SET created_at = 'soon' WHERE id = 'other'").await;
    assert!(matches!(bed.store.project(&other).await, Err(StoreError::Corrupt { what: "project", id, .. }) if id == "other"));
    let names: Vec<String> = bed.store.projects().await.unwrap().into_iter().map(|project| project.id.to_string()).collect();
    assert_eq!(names, ["first"]);
}
