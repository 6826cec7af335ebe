//! Whoever comes after us finds what we left: a whole sandbox to adopt, or remains to remove.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_host::RecordState;
use belljar_ports::{Presence, Runtime};
use belljar_types::SandboxSpec;

use crate::machine::{Machine, base_layer, shell};

const DATA: &str = "BELLJAR_TEST_MAKER_DATA";

#[tokio::test(flavor = "multi_thread")]
async fn another_owner_adopts_what_runs() {
    let first = Machine::with_slots(1).await;
    let id = first.create().await;
    let guest = first.runtime.guest(&id).await.unwrap();
    let written = shell(&*guest, "echo kept > /tmp/state").await;
    assert_eq!(written.code(), Some(0), "{written:?}");
    drop(guest);
    let directory = first.abandon();

    let second = Machine::once_free(directory.path(), 1).await;
    let found = second.runtime.inventory().await.unwrap();
    assert!(found.len() == 1 && matches!(found[0].presence, Presence::Running(_)), "{found:?}");
    assert_eq!(second.runtime.adopt(&id).await.unwrap().sandbox, id);
    let guest = second.runtime.guest(&id).await.unwrap();
    assert_eq!(shell(&*guest, "cat /tmp/state").await.stdout, "kept\n");
    second.runtime.destroy(&id).await.unwrap();
    assert_eq!(second.traces(&id), Vec::<String>::new());
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maker_killed_half_way_leaves_what_can_be_removed() {
    for moment in [0, 30, 90, 150] {
        let directory = Machine::with_slots(1).await.abandon();
        let data = directory.path();
        let mut maker = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::maker", "--ignored", "--nocapture"])
            .env(DATA, data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let homes = data.join("sandboxes");
        let begun = || std::fs::read_dir(&homes).unwrap().flatten().any(|home| home.path().join("config.json").exists());
        while !begun() {
            assert!(maker.try_wait().unwrap().is_none(), "the maker ended by itself");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(moment)).await;
        maker.kill().unwrap();
        maker.wait().unwrap();

        let second = Machine::once_free(data, 1).await;
        for found in second.runtime.inventory().await.unwrap() {
            second.runtime.destroy(&found.id).await.unwrap();
            assert_eq!(second.traces(&found.id), Vec::<String>::new(), "killed after {moment} ms as {:?}", found.presence);
        }
        assert!(second.runtime.inventory().await.unwrap().is_empty());
        let id = second.create().await;
        assert_eq!(second.host.record(&id).await.unwrap().unwrap().state, RecordState::Running);
        second.runtime.destroy(&id).await.unwrap();
        second.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "not a test: what the test above starts and kills"]
async fn maker() {
    let Some(data) = std::env::var_os(DATA).map(PathBuf::from) else { return };
    let machine = Machine::once_free(&data, 1).await;
    machine.runtime.create(&SandboxSpec::on(vec![base_layer()])).await.unwrap();
    std::future::pending::<()>().await;
}

/// Nobody waits for the sandbox any more: it is removed, not forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_create_is_taken_back() {
    let machine = Machine::with_slots(1).await;
    let spec = SandboxSpec::on(vec![base_layer()]);
    let abandoned = tokio::time::timeout(Duration::from_millis(60), machine.runtime.create(&spec)).await;
    assert!(abandoned.is_err(), "too fast to be abandoned");
    for _ in 0..1000 {
        if machine.traces(&spec.id).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(machine.traces(&spec.id), Vec::<String>::new());
    machine.close().await;
}
