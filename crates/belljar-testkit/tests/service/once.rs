//! Idempotency keys: one effect, however often and however concurrently a request is sent, and across a restart.

use std::collections::{BTreeMap, BTreeSet};

use belljar_core::{CreateSandbox, SandboxFilter, ServiceConfig};
use belljar_testkit::block_on;
use belljar_types::{SandboxState, Scope};

use crate::scene::{CONTAINER, Scene, among_others, code, container, settings};

fn keyed(key: &str) -> CreateSandbox {
    CreateSandbox { idempotency_key: Some(key.to_owned()), ..container() }
}

#[test]
fn twenty_equal_requests_at_once_make_one_sandbox() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let answers = futures_util::future::join_all((0..20).map(|_| scene.service.create(&scene.admin, keyed("one")))).await;
        let ids: BTreeSet<_> = answers.into_iter().map(|answer| answer.unwrap().id.clone()).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        let id = ids.first().unwrap();
        let page = belljar_core::PageRequest { order: belljar_core::Order::NewestFirst, after: None, limit: 100 };
        assert_eq!(scene.service.list(&scene.admin, &SandboxFilter::default(), &page).await.unwrap().sandboxes.len(), 1);
        assert_eq!(scene.service.statistics().live.values().sum::<u64>(), 1, "the nineteen left nothing behind");

        let other = CreateSandbox { metadata: BTreeMap::from([("a".to_owned(), "b".to_owned())]), ..keyed("one") };
        assert_eq!(code(scene.service.create(&scene.admin, other).await), "idempotency_key_reused");
        let stranger = scene.caller("stranger", &[Scope::Use, Scope::Read]).await;
        let theirs = scene.service.create(&stranger, keyed("one")).await.unwrap();
        assert_ne!(theirs.id, *id, "a key is a project's own");
        scene.service.kill(&stranger, &theirs.id).await.unwrap();

        drop(scene.restart(CONTAINER).await);
        assert_eq!(scene.create(keyed("one")).await.id, *id, "and outlives a restart");
        scene.kill([id]).await;
        let replayed = scene.create(keyed("one")).await;
        assert_eq!((&replayed.id, replayed.state), (id, SandboxState::Stopped), "a replay never makes another");
    });
}

#[test]
fn a_full_host_still_answers_what_it_has_done_before() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::with(CONTAINER, ServiceConfig { max_sandboxes: 1, ..settings() }).await;
        let made = scene.create(keyed("only")).await;
        assert_eq!(code(scene.service.create(&scene.admin, container()).await), "busy");
        assert_eq!(scene.create(keyed("only")).await.id, made.id);
        scene.kill([&made.id]).await;
    });
}
