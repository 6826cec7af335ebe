//! Create, look, list, change, use, kill; and what is refused says in which state the sandbox is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use belljar_core::{CoreError, CreateSandbox, Order, PageRequest, PartialLimits, SandboxChange, SandboxFilter};
use belljar_testkit::{block_on, path, run, sh};
use belljar_types::{EndCause, IsolationClass, ProcessId, ProcessSpec, SandboxId, SandboxState, SpoolPolicy};

use crate::scene::{BOTH, CONTAINER, Scene, among_others, code, container, of_class};

fn words(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn first_page(limit: u32) -> PageRequest {
    PageRequest { order: Order::NewestFirst, after: None, limit }
}

async fn a_whole_life(class: IsolationClass) {
    let _turn = among_others().await;
    let scene = Scene::open(&[class]).await;
    let request = CreateSandbox { env: words(&[("COLOUR", "red")]), metadata: words(&[("owner", "ada")]), ..of_class(class) };
    let made = scene.create(request).await;
    assert_eq!((made.state, made.class, made.template.as_str()), (SandboxState::Running, class, "base"));
    assert!(made.started_at.is_some() && made.expires_at.is_some() && made.end.is_none());
    assert_eq!(scene.show(&made.id).await, made);
    let page = scene.service.list(&scene.admin, &SandboxFilter::default(), &first_page(10)).await.unwrap();
    assert_eq!(page.sandboxes, [(*made).clone()]);

    let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
    assert_eq!(sh(&**session.guest(), "echo $COLOUR").await.text(), "red");
    assert!(scene.service.usage(&scene.admin, &made.id).await.unwrap().pids > 0);
    let change = SandboxChange { metadata: Some(words(&[("owner", "grace")])), ..SandboxChange::default() };
    let changed = scene.service.update(&scene.admin, &made.id, change).await.unwrap();
    assert_eq!(changed.metadata, words(&[("owner", "grace")]));
    assert_eq!(scene.show(&made.id).await, changed);

    let killed = scene.service.kill(&scene.admin, &made.id).await.unwrap();
    assert_eq!((killed.state, killed.end.as_ref().unwrap().cause), (SandboxState::Stopped, EndCause::Requested));
    assert_eq!(session.ended().await.state, SandboxState::Stopped);
    assert_eq!(scene.service.kill(&scene.admin, &made.id).await.unwrap().end, killed.end, "killed twice, it ended once");
    assert_eq!(scene.show(&made.id).await, killed);
    assert!(!scene.is_on_the_host(class, &made.id).await);

    let refused = scene.service.open(&scene.admin, &made.id).await.map(drop).unwrap_err();
    assert!(matches!(&refused, CoreError::Ended { .. }) && refused.to_string().contains("killed on request"), "{refused}");
    assert_eq!(code(scene.service.update(&scene.admin, &made.id, SandboxChange::default()).await), "sandbox_ended");
    assert_eq!(code(scene.service.usage(&scene.admin, &made.id).await), "sandbox_ended");
    let lost = session.guest().stat(&path("/"), None).await.unwrap_err();
    assert_eq!(session.explain(lost).await.code(), "sandbox_ended");
    let statistics = scene.service.statistics();
    assert_eq!((statistics.created, statistics.ended["requested"], statistics.live.len()), (1, 1, 0));
}

#[test]
fn a_container_from_its_making_to_its_end() {
    block_on(a_whole_life(IsolationClass::Container));
}

#[test]
fn a_gvisor_sandbox_from_its_making_to_its_end() {
    block_on(a_whole_life(IsolationClass::Gvisor));
}

#[test]
fn auto_takes_the_strongest_class_and_says_why() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        let made = scene.create(CreateSandbox::default()).await;
        assert_eq!(made.class, IsolationClass::Gvisor);
        assert!(made.class_reason.contains("strongest"), "{}", made.class_reason);
        scene.kill([&made.id]).await;
    });
}

#[test]
fn lists_are_filtered_ordered_and_paged() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let mut made = Vec::new();
        for colour in ["red", "red", "blue", "red", "blue"] {
            let request = CreateSandbox { metadata: words(&[("colour", colour)]), ..container() };
            made.push(scene.create(request).await.id.clone());
        }
        for (order, expected) in
            [(Order::OldestFirst, made.clone()), (Order::NewestFirst, made.iter().rev().cloned().collect::<Vec<SandboxId>>())]
        {
            let (mut seen, mut after) = (Vec::new(), None);
            loop {
                let page = PageRequest { order, after, limit: 2 };
                let page = scene.service.list(&scene.admin, &SandboxFilter::default(), &page).await.unwrap();
                assert!(page.sandboxes.len() <= 2 && page.unreadable.is_empty());
                seen.extend(page.sandboxes.into_iter().map(|sandbox| sandbox.id));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{order:?}");
        }
        let ids = |filter: SandboxFilter| {
            let scene = &scene;
            async move {
                let page = scene.service.list(&scene.admin, &filter, &first_page(100)).await.unwrap();
                page.sandboxes.into_iter().map(|sandbox| sandbox.id).collect::<BTreeSet<_>>()
            }
        };
        let blue = ids(SandboxFilter { metadata: words(&[("colour", "blue")]), ..SandboxFilter::default() }).await;
        assert_eq!(blue, BTreeSet::from([made[2].clone(), made[4].clone()]));
        scene.kill([&made[0]]).await;
        let gone = ids(SandboxFilter { states: vec![SandboxState::Stopped], ..SandboxFilter::default() }).await;
        assert_eq!(gone, BTreeSet::from([made[0].clone()]));
        let other = ids(SandboxFilter { template: Some("other".parse().unwrap()), ..SandboxFilter::default() }).await;
        assert!(other.is_empty());
        scene.kill(&made).await;
    });
}

#[test]
fn what_cannot_be_made_is_refused_and_leaves_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let cases = [
            ("template_not_found", CreateSandbox { template: Some("nowhere".parse().unwrap()), ..container() }),
            ("isolation_unavailable", of_class(IsolationClass::Gvisor)),
            ("isolation_unavailable", of_class(IsolationClass::Microvm)),
            ("invalid", CreateSandbox { limits: PartialLimits { memory_bytes: Some(1), ..PartialLimits::default() }, ..container() }),
            ("invalid", CreateSandbox { lease: Some(Duration::ZERO), ..container() }),
            ("invalid", CreateSandbox { idle_timeout: Some(Duration::from_millis(5)), ..container() }),
            ("invalid", CreateSandbox { env: words(&[("A=B", "c")]), ..container() }),
            ("invalid", CreateSandbox { hostname: Some("not a host name".to_owned()), ..container() }),
            ("invalid", CreateSandbox { idempotency_key: Some("a b".to_owned()), ..container() }),
        ];
        for (expected, request) in cases {
            let shown = format!("{request:?}");
            assert_eq!(code(scene.service.create(&scene.admin, request).await), expected, "{shown}");
        }
        let filter = SandboxFilter { states: vec![SandboxState::Creating, SandboxState::Running], ..SandboxFilter::default() };
        let page = scene.service.list(&scene.admin, &filter, &first_page(10)).await.unwrap();
        assert!(page.sandboxes.is_empty(), "{:?}", page.sandboxes);
        assert_eq!(code(scene.service.sandbox(&scene.admin, &SandboxId::random()).await), "sandbox_not_found");
        assert_eq!(code(scene.service.kill(&scene.admin, &SandboxId::random()).await), "sandbox_not_found");
    });
}

#[test]
fn a_sandbox_that_needs_too_much_memory_as_a_whole_is_told_as_such() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let limits = PartialLimits { memory_bytes: Some(64 << 20), ..PartialLimits::default() };
        let made = scene.create(CreateSandbox { limits, ..container() }).await;
        let session = scene.service.open(&scene.admin, &made.id).await.unwrap();
        // Output that is kept for readers is the agent's own memory: more of it than the sandbox may have ends the agent, and all with it.
        let (mut cut, mut chatty) = (None, ProcessSpec::new(["/usr/bin/yes"]));
        chatty.spool.capacity = SpoolPolicy::MAX_CAPACITY;
        for _ in 0..16 {
            chatty.id = ProcessId::random();
            if let Err(error) = session.start(&chatty).await {
                cut = Some(error);
            }
        }
        let cut = match cut {
            Some(error) => error,
            None => session.wait(&chatty.id, Duration::from_secs(60)).await.unwrap_err(),
        };
        let told = session.explain(cut).await;
        assert!(matches!(&told, CoreError::Ended { end, .. } if end.cause == EndCause::OutOfMemory), "{told}");
        let gone = scene.ended(&made.id).await;
        assert_eq!((gone.state, gone.end.as_ref().unwrap().cause), (SandboxState::Failed, EndCause::OutOfMemory));
        assert!(!scene.is_on_the_host(IsolationClass::Container, &made.id).await);
    });
}

#[test]
fn a_graceful_stop_waits_for_makings_and_leaves_sandboxes_running() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let kept = scene.container().await;
        let makings: Vec<_> = (0..4)
            .map(|_| {
                let (service, admin) = (scene.service.clone(), scene.admin.clone());
                tokio::spawn(async move { service.create(&admin, container()).await })
            })
            .collect();
        tokio::task::yield_now().await;
        scene.service.stop(Duration::from_secs(60)).await;
        assert_eq!(code(scene.service.create(&scene.admin, container()).await), "stopping");
        let mut made = vec![kept.id.clone()];
        for making in makings {
            match making.await.unwrap() {
                Ok(sandbox) => made.push(sandbox.id.clone()),
                Err(refused) => assert_eq!(refused.code(), "stopping"),
            }
        }
        drop(scene.restart(CONTAINER).await);
        for id in &made {
            let session = scene.service.open(&scene.admin, id).await.unwrap();
            assert_eq!(run(&**session.guest(), &["echo", "alive"]).await.text(), "alive");
        }
        scene.kill(&made).await;
    });
}
