//! Who may: scopes, keys that expire or are removed, and projects that cannot see each other through any verb.

use std::time::Duration;

use belljar_core::{Caller, CoreError, Denied, ErrorClass, Lease, NewKeyRequest, Order, PageRequest, SandboxChange, SandboxFilter};
use belljar_testkit::block_on;
use belljar_types::{KeyId, Quota, Scope};

use crate::scene::{CONTAINER, ONLY_LOOK, Scene, among_others, code, container};

const PAGE: PageRequest = PageRequest { order: Order::NewestFirst, after: None, limit: 100 };

fn request(project: &str, scopes: &[Scope], lifetime: Option<Duration>) -> NewKeyRequest {
    NewKeyRequest { project: project.parse().unwrap(), scopes: scopes.iter().copied().collect(), label: "a key".to_owned(), lifetime }
}

#[test]
fn a_project_sees_nothing_of_another_through_any_verb() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let all_but_admin = [Scope::Read, Scope::Use, Scope::Templates];
        let owner = scene.caller("owner", &all_but_admin).await;
        let stranger = scene.caller("stranger", &all_but_admin).await;
        let sandbox = scene.service.create(&owner, container()).await.unwrap();
        // Not even an administrator's key acts on what is another project's: it is of one project too.
        for other in [&stranger, &scene.admin] {
            let service = &scene.service;
            let id = &sandbox.id;
            let refusals = [
                service.sandbox(other, id).await.map(drop),
                service.kill(other, id).await.map(drop),
                service.set_lease(other, id, Lease::FromNow(Duration::from_secs(1))).await.map(drop),
                service.update(other, id, SandboxChange::default()).await.map(drop),
                service.open(other, id).await.map(drop),
                service.usage(other, id).await.map(drop),
            ];
            for refusal in refusals {
                let error = refusal.unwrap_err();
                assert!(matches!(&error, CoreError::NoSandbox { .. }) && error.class() == ErrorClass::NotFound, "{error}");
            }
            assert!(service.list(other, &SandboxFilter::default(), &PAGE).await.unwrap().sandboxes.is_empty());
        }
        assert_eq!(code(scene.service.project(&stranger, &owner.project).await), "project_not_found");
        let seen = scene.service.projects(&stranger).await.unwrap();
        assert_eq!(seen.iter().map(|project| project.id.as_str()).collect::<Vec<_>>(), ["stranger"]);
        scene.service.kill(&owner, &sandbox.id).await.unwrap();
        assert_eq!(code(scene.service.sandbox(&stranger, &sandbox.id).await), "sandbox_not_found", "nor when it has ended");
        assert_eq!(code(scene.service.kill(&stranger, &sandbox.id).await), "sandbox_not_found");
    });
}

/// Everything the service can be asked for, by the scope it needs.
async fn try_everything(scene: &Scene, caller: &Caller) -> Vec<(Scope, bool)> {
    let service = &scene.service;
    let sandbox = service.create(caller, container()).await;
    let (lines, _) = tokio::sync::mpsc::channel(1);
    let name = "none".parse().unwrap();
    let nowhere = belljar_types::SandboxId::random();
    let id = sandbox.as_ref().map_or(&nowhere, |sandbox| &sandbox.id);
    let project = "unheard-of".parse().unwrap();
    let source = belljar_core::TemplateSource::Recipe("not = 1".to_owned());
    let results = vec![
        (Scope::Use, service.set_lease(caller, id, Lease::AtLeast(Duration::from_secs(1))).await.map(drop)),
        (Scope::Use, service.update(caller, id, SandboxChange::default()).await.map(drop)),
        (Scope::Use, service.open(caller, id).await.map(drop)),
        (Scope::Read, service.sandbox(caller, id).await.map(drop)),
        (Scope::Read, service.usage(caller, id).await.map(drop)),
        (Scope::Use, service.kill(caller, id).await.map(drop)),
        (
            Scope::Use,
            sandbox.as_ref().map(drop).map_err(|error| match error {
                CoreError::Forbidden { needed } => CoreError::Forbidden { needed: *needed },
                other => panic!("{other}"),
            }),
        ),
        (Scope::Read, service.list(caller, &SandboxFilter::default(), &PAGE).await.map(drop)),
        (Scope::Read, service.templates(caller).await.map(drop)),
        (Scope::Read, service.template(caller, &name).await.map(drop)),
        (Scope::Templates, service.make_template(caller, &name, source.clone(), false, lines.clone()).await.map(drop)),
        (Scope::Templates, service.remove_template(caller, &name, false).await),
        (Scope::Admin, service.make_template(caller, &name, source, true, lines).await.map(drop)),
        (Scope::Admin, service.remove_template(caller, &name, true).await),
        (Scope::Admin, service.sweep(caller, ONLY_LOOK).await.map(drop)),
        (Scope::Admin, service.set_quota(caller, &project, Quota::default()).await.map(drop)),
        (Scope::Admin, service.remove_project(caller, &project).await),
        (Scope::Admin, service.add_key(caller, request("unheard-of", &[Scope::Read], None)).await.map(drop)),
        (Scope::Admin, service.keys(caller, None).await.map(drop)),
        (Scope::Admin, service.remove_key(caller, &KeyId::random()).await),
        (Scope::Read, service.projects(caller).await.map(drop)),
        (Scope::Read, service.project(caller, &project).await.map(drop)),
    ];
    results.into_iter().map(|(needed, result)| (needed, !matches!(result, Err(CoreError::Forbidden { .. })))).collect()
}

#[test]
fn a_key_does_what_its_scopes_say_and_nothing_else() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        for scopes in [&[Scope::Read][..], &[Scope::Use], &[Scope::Templates], &[Scope::Read, Scope::Use], &[Scope::Admin]] {
            let caller = scene.caller("scoped", scopes).await;
            for (at, (needed, allowed)) in Box::pin(try_everything(&scene, &caller)).await.into_iter().enumerate() {
                assert_eq!(allowed, caller.may(needed), "verb {at}, which needs {needed}, with {scopes:?}");
            }
        }
    });
}

#[test]
fn a_key_ends_when_its_time_is_over_or_somebody_removes_it() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        for wrong in ["", "bj_", "bj_0000000000000000000000000000000000000000", "e2b_zz"] {
            assert!(matches!(scene.service.authenticate(wrong).await, Err(Denied::Unknown)), "{wrong}");
        }
        let brief = scene.service.add_key(&scene.admin, request("default", &[Scope::Read], Some(Duration::from_millis(1)))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(matches!(scene.service.authenticate(brief.secret.reveal()).await, Err(Denied::Expired)));

        let made = scene.service.add_key(&scene.admin, request("default", &[Scope::Read], None)).await.unwrap();
        let secret = made.secret.reveal();
        assert_eq!(scene.service.authenticate(secret).await.unwrap().key, made.key.id);
        let listed = scene.service.keys(&scene.admin, None).await.unwrap();
        assert!(listed.contains(&made.key) && !format!("{listed:?}").contains(secret));
        drop(scene.restart(CONTAINER).await);
        assert_eq!(scene.service.authenticate(secret).await.unwrap().key, made.key.id);
        scene.service.remove_key(&scene.admin, &made.key.id).await.unwrap();
        assert!(matches!(scene.service.authenticate(secret).await, Err(Denied::Unknown)), "at once, although it was just in use");
        assert_eq!(code(scene.service.remove_key(&scene.admin, &made.key.id).await), "key_not_found");

        let theirs = scene.caller("gone", &[Scope::Use]).await;
        let key = scene.service.add_key(&scene.admin, request("gone", &[Scope::Use], None)).await.unwrap();
        scene.service.authenticate(key.secret.reveal()).await.unwrap();
        let sandbox = scene.service.create(&theirs, container()).await.unwrap();
        assert_eq!(code(scene.service.remove_project(&scene.admin, &theirs.project).await), "exists", "it still has a sandbox");
        scene.service.kill(&theirs, &sandbox.id).await.unwrap();
        scene.service.remove_project(&scene.admin, &theirs.project).await.unwrap();
        assert!(matches!(scene.service.authenticate(key.secret.reveal()).await, Err(Denied::Unknown)), "a project takes its keys along");
        assert!(!scene.service.bootstrap(&belljar_core::fresh_secret()).await.unwrap(), "the first key is made once");
    });
}
