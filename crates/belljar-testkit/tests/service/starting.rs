//! What a template starts in every sandbox: it is up before anybody may use the sandbox, and a sandbox without it is none.

use belljar_core::{CreateSandbox, SnapshotKind};
use belljar_image::LayerStore;
use belljar_testkit::{block_on, run};
use belljar_types::{IsolationClass, ReadyCheck, SandboxState, StartUp, Template, TemplateName};

use crate::scene::{BOTH, CONTAINER, Scene, among_others, code, container, of_class};

const SERVE: &str = "echo here I am; sleep 0.4; exec python3 -m http.server --bind 127.0.0.1 8000";

/// The base template under another name, starting this. Layers are shared; only a small file is new.
struct Prepared<'a> {
    scene: &'a Scene,
    name: TemplateName,
}

impl<'a> Prepared<'a> {
    fn new(scene: &'a Scene, start: StartUp) -> Self {
        let store = LayerStore::open(scene.lab.host.pool_directory()).unwrap();
        let base = store.template(&"base".parse().unwrap()).unwrap().unwrap();
        let name: TemplateName = format!("start-{}", belljar_types::ProcessId::random()).parse().unwrap();
        let defaults = belljar_types::TemplateDefaults { start: Some(start), ..base.defaults };
        store.put_template(&Template { name: name.clone(), defaults, ..base }).unwrap();
        Self { scene, name }
    }

    fn of(&self, class: IsolationClass) -> CreateSandbox {
        CreateSandbox { template: Some(self.name.clone()), ..of_class(class) }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        let store = LayerStore::open(self.scene.lab.host.pool_directory()).unwrap();
        store.remove_template(&self.name).unwrap();
    }
}

async fn says(scene: &Scene, id: &belljar_types::SandboxId, script: &str) -> String {
    let session = scene.service.open(&scene.admin, id).await.unwrap();
    String::from_utf8(run(session.guest().as_ref(), &["sh", "-c", script]).await.stdout).unwrap()
}

#[test]
fn a_sandbox_runs_when_what_its_template_starts_is_ready() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        let url = "curl -sf -o /dev/null http://127.0.0.1:8000/".to_owned();
        for ready in [ReadyCheck::Port(8000), ReadyCheck::Command(url)] {
            let start = StartUp { command: Some(SERVE.to_owned()), ready: Some(ready), ..StartUp::default() };
            let template = Prepared::new(&scene, start);
            for class in [IsolationClass::Container, IsolationClass::Gvisor] {
                let sandbox = scene.create(template.of(class)).await;
                assert_eq!(sandbox.state, SandboxState::Running);
                let answer = says(&scene, &sandbox.id, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/").await;
                assert_eq!(answer, "200", "the very first use finds it");
                let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
                let started: Vec<_> =
                    session.processes().await.unwrap().into_iter().filter(|p| p.tag.as_deref() == Some("start")).collect();
                assert!(matches!(&started[..], [one] if one.user.as_str() == "user" && one.exit.is_none()), "{started:?}");
                drop(session);
                scene.kill([&sandbox.id]).await;
            }
        }
    });
}

#[test]
fn a_sandbox_that_boots_anew_starts_it_again_and_one_with_memory_does_not() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let count = "echo once >> ~/starts; exec sleep 1000".to_owned();
        let ready = ReadyCheck::Command("test -e ~/starts".to_owned());
        let template = Prepared::new(&scene, StartUp { command: Some(count), ready: Some(ready), ..StartUp::default() });
        let sandbox = scene.create(template.of(IsolationClass::Container)).await;
        assert_eq!(says(&scene, &sandbox.id, "cat ~/starts").await, "once\n");
        for (keep, expected) in [(SnapshotKind::Memory, "once\n"), (SnapshotKind::Filesystem, "once\nonce\n")] {
            scene.service.pause(&scene.admin, &sandbox.id, keep).await.unwrap();
            scene.service.resume(&scene.admin, &sandbox.id, None).await.unwrap();
            crate::scene::until(|| async { says(&scene, &sandbox.id, "cat ~/starts").await == expected }).await;
        }
        scene.kill([&sandbox.id]).await;
    });
}

#[test]
fn what_fails_or_is_never_ready_is_told_with_its_last_words_and_leaves_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        let never = || Some(ReadyCheck::Port(8000));
        let fails = StartUp { command: Some("echo \"no \u{1b}[2Jway\" >&2; exit 7".to_owned()), ready: never(), ..StartUp::default() };
        let hangs =
            StartUp { command: Some("echo waiting; sleep 1000".to_owned()), ready: never(), within_seconds: Some(2), ..StartUp::default() };
        let check = ReadyCheck::Command("false".to_owned());
        let unready = StartUp { ready: Some(check), within_seconds: Some(2), ..StartUp::default() };
        let cases = [
            (fails, "exited with code 7", "no \\u{1b}[2Jway"),
            (hangs, "not ready within 2 s", "waiting"),
            (unready, "not ready within 2 s", ""),
        ];
        for (start, why, said) in cases {
            let template = Prepared::new(&scene, start);
            for class in [IsolationClass::Container, IsolationClass::Gvisor] {
                let error = scene.service.create(&scene.admin, template.of(class)).await.unwrap_err();
                let text = belljar_core::chain(&error);
                assert!(error.code() == "start_failed" && text.contains(why) && text.contains(said), "{text}");
                let belljar_core::CoreError::StartFailed { id, .. } = &error else { panic!("{text}") };
                assert!(!scene.is_on_the_host(class, id).await);
                assert_eq!(scene.show(id).await.state, SandboxState::Failed);
                assert_eq!(code(scene.service.open(&scene.admin, id).await.map(drop)), "sandbox_ended");
            }
        }
        let sandbox = scene.create(container()).await;
        scene.kill([&sandbox.id]).await;
    });
}
