//! Warm templates: later sandboxes begin with the processes of the first that was ready, and with nothing of whoever made that one.

use belljar_core::{CreateSandbox, PartialLimits};
use belljar_image::LayerStore;
use belljar_ports::SnapshotStore;
use belljar_testkit::{block_on, run};
use belljar_types::{IsolationClass, ReadyCheck, SandboxId, SnapshotState, StartUp, Template, TemplateName};

use crate::scene::{BOTH, Scene, among_others, of_class, until};

/// Notes each time it really starts, and who it was then.
const SERVE: &str =
    "date +%s%N > /tmp/started; cat /proc/sys/kernel/random/uuid > /tmp/memory; exec python3 -m http.server --bind 127.0.0.1 8000";

async fn says(scene: &Scene, id: &SandboxId, script: &str) -> String {
    let session = scene.service.open(&scene.admin, id).await.unwrap();
    String::from_utf8(run(session.guest().as_ref(), &["sh", "-c", script]).await.stdout).unwrap().trim().to_owned()
}

fn put(scene: &Scene, name: &TemplateName, command: &str) {
    let store = LayerStore::open(scene.lab.host.pool_directory()).unwrap();
    let base = store.template(&"base".parse().unwrap()).unwrap().unwrap();
    let start = StartUp { command: Some(command.to_owned()), ready: Some(ReadyCheck::Port(8000)), warm: true, ..StartUp::default() };
    let defaults = belljar_types::TemplateDefaults { start: Some(start), ..base.defaults };
    store.put_template(&Template { name: name.clone(), defaults, ..base }).unwrap();
}

#[test]
fn later_sandboxes_of_a_warm_template_begin_with_its_processes_running() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(BOTH).await;
        let name: TemplateName = format!("warm-{}", belljar_types::ProcessId::random()).parse().unwrap();
        put(&scene, &name, SERVE);
        let of = |class| CreateSandbox { template: Some(name.clone()), ..of_class(class) };
        let with_env = || CreateSandbox { env: [("WHO".to_owned(), "later".to_owned())].into(), ..of(IsolationClass::Gvisor) };

        let private =
            scene.create(CreateSandbox { env: [("KEY".to_owned(), "private".to_owned())].into(), ..of(IsolationClass::Gvisor) }).await;
        assert!(
            scene.store.all_snapshots().await.unwrap().0.is_empty(),
            "nothing is kept of a sandbox that was given something of its own"
        );
        let first = scene.create(of(IsolationClass::Gvisor)).await;
        assert_eq!(first.begins_with, None);
        let images = scene.store.all_snapshots().await.unwrap().0;
        assert_eq!(images.iter().map(|image| image.state).collect::<Vec<_>>(), [SnapshotState::Warm]);
        let started = says(&scene, &first.id, "cat /tmp/started /tmp/memory").await;

        scene.restart(BOTH).await;
        let later = scene.create(with_env()).await;
        assert_eq!(later.begins_with.as_ref().map(|beginning| &beginning.snapshot), Some(&images[0].id));
        assert_eq!(says(&scene, &later.id, "cat /tmp/started /tmp/memory").await, started, "it was not started again");
        let answer = says(&scene, &later.id, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/; echo; echo $WHO").await;
        assert_eq!(answer, "200\nlater", "what is started in it has its own environment");
        says(&scene, &later.id, "echo mine > /tmp/memory").await;

        let other = PartialLimits { memory_bytes: Some(300 << 20), ..PartialLimits::default() };
        let cold = scene.create(CreateSandbox { limits: other, ..of(IsolationClass::Gvisor) }).await;
        let container = scene.create(of(IsolationClass::Container)).await;
        for (sandbox, why) in [(&cold, "it may use other memory"), (&container, "its class keeps no memory")] {
            assert_eq!(sandbox.begins_with, None, "{why}");
            assert_ne!(says(&scene, &sandbox.id, "cat /tmp/started /tmp/memory").await, started, "{why}");
        }

        put(&scene, &name, &format!("true; {SERVE}"));
        let changed = scene.create(of(IsolationClass::Gvisor)).await;
        assert_eq!(changed.begins_with, None, "the template is another now");
        let after = scene.store.all_snapshots().await.unwrap().0;
        assert!(after.iter().all(|image| image.id != images[0].id || image.state == SnapshotState::Removing), "{after:?}");
        scene.service.remove_template(&scene.admin, &name, true).await.unwrap();
        until(|| async { scene.store.all_snapshots().await.unwrap().0.is_empty() }).await;
        scene.kill([&private.id, &first.id, &later.id, &cold.id, &container.id, &changed.id]).await;
    });
}
