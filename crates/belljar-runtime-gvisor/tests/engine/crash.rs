//! Whoever comes after us finds what we left: a whole sandbox to adopt, or remains to remove.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use belljar_host::RecordState;
use belljar_ports::{Presence, Runtime, RuntimeError};
use belljar_types::{EndReason, SandboxSpec, chain};

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
        let begun = || fs::read_dir(&homes).unwrap().flatten().any(|home| home.path().join("config.json").exists());
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

/// While room is reserved, while runsc starts, while the agent is asked, when it has just answered.
const MOMENTS: [u64; 12] = [0, 1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192];

/// Nobody waits for the sandbox any more: it is removed, not forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_create_is_taken_back() {
    let machine = Machine::with_slots(1).await;
    let mut abandoned = 0;
    for after in MOMENTS {
        let spec = SandboxSpec::on(vec![base_layer()]);
        if tokio::time::timeout(Duration::from_millis(after), machine.runtime.create(&spec)).await.is_ok() {
            machine.runtime.destroy(&spec.id).await.unwrap();
            continue;
        }
        abandoned += 1;
        // It may not have begun to leave anything yet: it is gone when it can be made again, not when nothing is seen of it.
        let again = loop {
            match machine.runtime.create(&spec).await {
                Err(RuntimeError::Exists { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
                other => break other,
            }
        };
        again.unwrap_or_else(|error| panic!("after {after} ms: {}", chain(&error)));
        machine.runtime.destroy(&spec.id).await.unwrap();
        assert_eq!(machine.traces(&spec.id), Vec::<String>::new(), "abandoned after {after} ms");
    }
    assert!(abandoned > 1, "too fast to be abandoned");
    assert!(machine.runtime.inventory().await.unwrap().is_empty());
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_it_is_removed_nothing_of_a_making_goes_on() {
    let machine = Machine::with_slots(1).await;
    for after in MOMENTS {
        let spec = SandboxSpec::on(vec![base_layer()]);
        let _ = tokio::time::timeout(Duration::from_millis(after), machine.runtime.create(&spec)).await;
        machine.runtime.destroy(&spec.id).await.unwrap();
        assert_eq!(machine.traces(&spec.id), Vec::<String>::new(), "removed after {after} ms");
        assert!(machine.runtime.inventory().await.unwrap().is_empty(), "removed after {after} ms");
    }
    machine.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_while_it_is_made_says_so_and_can_be_made_again() {
    let machine = Machine::with_slots(1).await;
    let (agent, away) = (machine.agent_directory().join("guest"), machine.agent_directory().join("away"));
    fs::rename(&agent, &away).unwrap();
    // An agent that never answers: only being called off ends its making within the test's patience.
    fs::write(&agent, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let spec = SandboxSpec::on(vec![base_layer()]);
    for after in [0, 20, 1000] {
        let (made, ()) = tokio::join!(machine.runtime.create(&spec), async {
            tokio::time::sleep(Duration::from_millis(after)).await;
            assert!(matches!(machine.runtime.create(&spec).await, Err(RuntimeError::Exists { .. })));
            assert!(machine.runtime.inventory().await.unwrap().is_empty(), "what is being made was taken for remains");
            machine.runtime.destroy(&spec.id).await.unwrap();
            assert_eq!(machine.traces(&spec.id), Vec::<String>::new(), "removed after {after} ms");
        });
        assert!(matches!(made, Err(RuntimeError::Ended { reason: EndReason::Killed, .. })), "{made:?}");
    }
    fs::rename(&away, &agent).unwrap();
    machine.runtime.create(&spec).await.unwrap_or_else(|error| panic!("{}", chain(&error)));
    machine.runtime.destroy(&spec.id).await.unwrap();
    machine.close().await;
}
