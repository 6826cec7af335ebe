//! What is too much: a project's quota, and what the host can hold. Refusals say what is short and change nothing.

use std::sync::Arc;
use std::time::Duration;

use belljar_core::{CoreError, CreateSandbox, ErrorClass, PartialLimits, ServiceConfig};
use belljar_testkit::block_on;
use belljar_types::{Quota, Scope};

use crate::scene::{CONTAINER, Scene, among_others, code, container, settings};

fn busy<T>(result: Result<T, CoreError>) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!((error.code(), error.class()), ("busy", ErrorClass::Busy), "{error}");
    assert!(error.retry_after().is_some_and(|pause| pause >= Duration::from_secs(1)));
    error.to_string()
}

#[test]
fn a_project_has_no_more_than_its_quota_whatever_is_asked_at_once() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let caller = scene.caller("small", &[Scope::Use, Scope::Read]).await;
        let quota = Quota { sandboxes: 3, ..Quota::default() };
        scene.service.set_quota(&scene.admin, &caller.project, quota).await.unwrap();
        let answers = futures_util::future::join_all((0..8).map(|_| scene.service.create(&caller, container()))).await;
        let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!(made.len(), 3);
        for refusal in refused {
            let error = refusal.unwrap_err();
            assert_eq!((error.code(), error.class()), ("quota_exceeded", ErrorClass::Quota), "{error}");
            assert!(error.to_string().contains("may have 3 sandboxes"), "{error}");
        }
        let first = made[0].as_ref().unwrap();
        scene.service.kill(&caller, &first.id).await.unwrap();
        let again = scene.service.create(&caller, container()).await.unwrap();
        let memory = Quota { memory_bytes: 4 * again.spec.limits.memory_bytes - 1, ..Quota::default() };
        scene.service.set_quota(&scene.admin, &caller.project, memory).await.unwrap();
        assert_eq!(code(scene.service.create(&caller, container()).await), "quota_exceeded");
        let little = PartialLimits { memory_bytes: Some(64 << 20), ..PartialLimits::default() };
        let fits = scene.service.create(&caller, CreateSandbox { limits: little, ..container() }).await.unwrap();
        for sandbox in made.iter().skip(1).map(|made| made.as_ref().unwrap()).chain([&again, &fits]) {
            scene.service.kill(&caller, &sandbox.id).await.unwrap();
        }
        assert_eq!(code(scene.service.remove_project(&scene.admin, &"default".parse().unwrap()).await), "invalid");
        scene.service.remove_project(&scene.admin, &caller.project).await.unwrap();
    });
}

#[test]
fn a_full_host_says_so_and_when_to_come_back() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::with(CONTAINER, ServiceConfig { max_sandboxes: 2, ..settings() }).await;
        let (one, two) = tokio::join!(scene.container(), scene.container());
        assert!(busy(scene.service.create(&scene.admin, container()).await).contains("2 sandboxes"));
        assert_eq!(scene.service.statistics().busy, 1);
        scene.kill([&one.id]).await;
        let third = scene.container().await;
        scene.kill([&two.id, &third.id]).await;
    });
}

#[test]
fn places_asked_for_at_the_same_time_are_given_once() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::with(CONTAINER, ServiceConfig { max_sandboxes: 3, ..settings() }).await;
        let asked: Vec<_> = (0..12)
            .map(|_| {
                let (service, admin) = (Arc::clone(&scene.service), scene.admin.clone());
                tokio::spawn(async move { service.create(&admin, container()).await })
            })
            .collect();
        let mut made = Vec::new();
        for answer in asked {
            match answer.await.unwrap() {
                Ok(sandbox) => made.push(sandbox.id.clone()),
                refused => assert!(busy(refused).contains("3 sandboxes")),
            }
        }
        assert_eq!(made.len(), 3);
        scene.kill(&made).await;
    });
}

#[test]
fn memory_is_promised_only_so_far_beyond_what_there_is() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::with(CONTAINER, ServiceConfig { memory_overcommit_percent: 50, ..settings() }).await;
        let total = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total: u64 = total.lines().next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        let third = PartialLimits { memory_bytes: Some(total / 3 * 1024), ..PartialLimits::default() };
        let made = scene.create(CreateSandbox { limits: third, ..container() }).await;
        let refused = busy(scene.service.create(&scene.admin, CreateSandbox { limits: third, ..container() }).await);
        assert!(refused.contains("promised"), "{refused}");
        scene.kill([&made.id]).await;
    });
}

#[test]
fn the_queue_of_makings_is_bounded() {
    block_on(async {
        let _turn = among_others().await;
        let config = ServiceConfig { creates_at_once: 1, creates_waiting: 2, ..settings() };
        let scene = Scene::with(CONTAINER, config).await;
        let answers = futures_util::future::join_all((0..10).map(|_| scene.service.create(&scene.admin, container()))).await;
        let (mut made, mut refused) = (Vec::new(), 0);
        for answer in answers {
            match answer {
                Ok(sandbox) => made.push(sandbox.id.clone()),
                Err(error) => {
                    assert!(busy::<()>(Err(error)).contains("wait to be made"));
                    refused += 1;
                }
            }
        }
        assert!(made.len() >= 3 && refused >= 1, "{} made, {refused} refused", made.len());
        scene.kill(&made).await;
    });
}
