//! A server that was thought dead and is not: from the moment another has taken over, it changes nothing in the store or on the host.

use std::time::Duration;

use belljar_core::{CreateSandbox, Lease, SandboxChange, StoreError};
use belljar_testkit::{block_on, run};
use belljar_types::{IsolationClass, SandboxState};

use crate::scene::{CONTAINER, Scene, among_others, container};

#[test]
fn an_older_server_is_refused_and_changes_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let made = scene.container().await;
        let older = scene.restart(CONTAINER).await;
        let told = tokio::spawn({
            let older = older.clone();
            async move { older.fenced().await }
        });
        assert!(older.create(&scene.admin, container()).await.is_err());
        assert!(older.set_lease(&scene.admin, &made.id, Lease::FromNow(Duration::from_secs(1))).await.is_err());
        assert!(older.update(&scene.admin, &made.id, SandboxChange::default()).await.is_err());
        assert!(older.kill(&scene.admin, &made.id).await.is_err());
        assert!(matches!(told.await.unwrap(), StoreError::Fenced { current: 2, ours: 1 }), "it is told to end");

        assert_eq!(scene.show(&made.id).await, made);
        let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        let page = belljar_core::PageRequest { order: belljar_core::Order::NewestFirst, after: None, limit: 10 };
        let all = scene.service.list(&scene.admin, &belljar_core::SandboxFilter::default(), &page).await.unwrap();
        assert_eq!(all.sandboxes.len(), 1);
        scene.kill([&made.id]).await;
    });
}

#[test]
fn the_timers_of_an_older_server_end_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let brief = CreateSandbox { lease: Some(Duration::from_secs(2)), ..container() };
        let (extended, control) = tokio::join!(scene.create(brief.clone()), scene.create(brief));
        let older = scene.restart(CONTAINER).await;
        let lease = Lease::FromNow(Duration::from_secs(600));
        scene.service.set_lease(&scene.admin, &extended.id, lease).await.unwrap();
        assert!(matches!(older.fenced().await, StoreError::Fenced { .. }), "its timers have run out");
        scene.ended(&control.id).await;
        assert_eq!(scene.show(&extended.id).await.state, SandboxState::Running);
        assert!(scene.is_on_the_host(IsolationClass::Container, &extended.id).await);
        let session = scene.service.open(&scene.admin, &extended.id).await.unwrap();
        assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        scene.kill([&extended.id]).await;
    });
}
