//! Templates made from steps, in sandboxes of both classes: what comes out, what is not done twice, and what is left when it goes wrong.

use std::sync::Arc;

use belljar_core::{BuildBase, BuildPlan, BuildView, CreateSandbox, PartialLimits, PlannedStep, Service};
use belljar_testkit::{block_on, run};
use belljar_types::{
    BuildId, BuildPlace, BuildState, BuildStep, IsolationClass, IsolationRequest, Network, ReadyCheck, SandboxState, Scope, StartUp,
    TemplateName,
};

use crate::scene::{BOTH, CONTAINER, Scene, among_others, code, of_class, until};

fn step(step: BuildStep) -> PlannedStep {
    PlannedStep { step, force: false }
}

fn runs(command: &str) -> PlannedStep {
    step(BuildStep::Run { command: command.to_owned(), user: None })
}

fn as_root(command: &str) -> PlannedStep {
    step(BuildStep::Run { command: command.to_owned(), user: "root".parse().ok() })
}

fn plan(class: IsolationClass, steps: Vec<PlannedStep>) -> BuildPlan {
    BuildPlan {
        base: BuildBase::Template("base".parse().unwrap()),
        user: None,
        steps,
        start: None,
        force: false,
        limits: PartialLimits::default(),
        isolation: Some(IsolationRequest::Exactly(class)),
        network: Network::None,
    }
}

fn fresh_name() -> TemplateName {
    format!("built-{}", belljar_types::ProcessId::random()).parse().unwrap()
}

async fn begin(scene: &Scene, name: &TemplateName, plan: BuildPlan) -> BuildId {
    let id = scene.service.reserve_build(&scene.admin, vec![name.clone()], false).unwrap().id;
    scene.service.start_build(&scene.admin, &id, plan).await.unwrap();
    id
}

async fn ended(service: &Arc<Service>, scene: &Scene, id: &BuildId) -> BuildView {
    let state = || async { service.build(&scene.admin, id, 0, usize::MAX).await.unwrap() };
    until(|| async { !matches!(state().await.record.state, BuildState::Building | BuildState::Waiting) }).await;
    state().await
}

async fn build(scene: &Scene, name: &TemplateName, plan: BuildPlan) -> BuildView {
    let id = begin(scene, name, plan).await;
    ended(&scene.service, scene, &id).await
}

fn said(view: &BuildView) -> String {
    view.log.iter().map(|line| format!("{}\n", line.text)).collect()
}

#[track_caller]
fn assert_ready(view: &BuildView) {
    assert_eq!(view.record.state, BuildState::Ready, "{:?}\n{}", view.record.failure, said(view));
}

/// What a script prints in a new sandbox of a template.
async fn in_new(scene: &Scene, name: &TemplateName, class: IsolationClass, script: &str) -> String {
    let sandbox = scene.create(CreateSandbox { template: Some(name.clone()), ..of_class(class) }).await;
    let session = scene.service.open(&scene.admin, &sandbox.id).await.unwrap();
    let done = run(session.guest().as_ref(), &["bash", "-c", script]).await;
    drop(session);
    scene.kill([&sandbox.id]).await;
    assert_eq!(done.code(), 0, "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

async fn nothing_of_builds_is_left(scene: &Scene) {
    let page = belljar_core::PageRequest { order: belljar_core::Order::NewestFirst, after: None, limit: 100 };
    let all = scene.service.list(&scene.admin, &belljar_core::SandboxFilter::default(), &page).await.unwrap();
    let left: Vec<_> = all.sandboxes.iter().filter(|sandbox| !sandbox.state.has_ended()).collect();
    assert!(left.is_empty(), "{left:?}");
}

async fn remove(scene: &Scene, name: &TemplateName) {
    scene.service.remove_template(&scene.admin, name, false).await.unwrap();
}

/// An archive with `folder/test.txt` and a link to it, as a client would send it.
fn archive(gzip: bool) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("test.txt"), "copied").unwrap();
    std::os::unix::fs::symlink("test.txt", folder.join("link.txt")).unwrap();
    let flags = if gzip { "-cz" } else { "-c" };
    let made = std::process::Command::new("tar").arg(flags).arg("-C").arg(directory.path()).arg("folder").output().unwrap();
    assert!(made.status.success());
    made.stdout
}

async fn send(scene: &Scene, hash: &str, archive: Vec<u8>) {
    let content = futures_util::stream::iter(archive.chunks(1000).map(|piece| Ok(piece.to_vec().into())).collect::<Vec<_>>());
    scene.service.put_build_files(&scene.admin, &hash.parse().unwrap(), Box::pin(content)).await.unwrap();
}

#[test]
fn what_steps_write_is_in_every_sandbox_of_the_template() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for (class, gzip) in [(IsolationClass::Container, true), (IsolationClass::Gvisor, false)] {
            let name = fresh_name();
            let hash = format!("{:064x}", u8::from(gzip));
            send(&scene, &hash, archive(gzip)).await;
            let copy = |source: &str, destination: &str| {
                let (source, destination) = (source.to_owned(), destination.to_owned());
                step(BuildStep::Copy { files: hash.parse().unwrap(), source, destination, owner: None, mode: None })
            };
            let steps = vec![
                step(BuildStep::Env { set: vec![("COLOUR".into(), "red".into()), ("BOTH".into(), "${COLOUR} and blue".into())] }),
                runs("echo \"$COLOUR\" > ~/colour; pwd > ~/where; id -un > ~/who"),
                as_root("rm /etc/pip.conf; mv /usr/include /usr/included; chmod 700 /srv; setfattr -n user.x -v y /srv || true"),
                as_root("test ! -e /etc/pip.conf && test -e /usr/included/stdio.h && touch /usr/included/more"),
                copy("folder/*", "copied"),
                copy("folder/test.txt", "/opt/one/"),
                step(BuildStep::Workdir { path: "/app/deep".into() }),
                runs("pwd > here; id -un >> here"),
                step(BuildStep::User { name: "somebody".parse().unwrap() }),
                runs("id -un > ~/me"),
            ];
            let view = build(&scene, &name, plan(class, steps)).await;
            assert_ready(&view);
            let script = "cat ~user/colour ~user/where ~user/who; test ! -e /etc/pip.conf; ls /usr/included/stdio.h /usr/included/more; \
                          test ! -e /usr/include; stat -c '%a %U' /srv; cat /home/user/copied/test.txt /home/user/copied/link.txt; \
                          stat -c ' %U %F' /home/user/copied/test.txt /home/user/copied/link.txt; cat /opt/one/test.txt; echo; cat /app/deep/here; \
                          stat -c %U /app; cat ~somebody/me; pwd; id -un; echo $BOTH; ls -A /tmp; cat /etc/hostname | wc -l";
            let expected = "red\n/home/user\nuser\n/usr/included/more\n/usr/included/stdio.h\n700 root\ncopiedcopied user regular file\n \
                            user symbolic link\ncopied\n/app/deep\nuser\nuser\nsomebody\n/app/deep\nsomebody\nred and blue\n1\n";
            assert_eq!(in_new(&scene, &name, class, script).await, expected);
            // A layer is a layer, whichever class made it.
            let other = if class == IsolationClass::Container { IsolationClass::Gvisor } else { IsolationClass::Container };
            assert_eq!(in_new(&scene, &name, other, "cat ~user/colour /usr/included/more; test ! -e /etc/pip.conf").await, "red\n");
            remove(&scene, &name).await;
        }
        nothing_of_builds_is_left(&scene).await;
    });
}

#[test]
fn an_unchanged_beginning_is_not_run_again_unless_asked_for() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let name = fresh_name();
        // Only a run that really happens draws a new number.
        let draw = format!("cat /proc/sys/kernel/random/uuid > ~/drawn # {name}");
        let read = async || in_new(&scene, &name, IsolationClass::Container, "cat ~/drawn ~/last").await;
        let class = IsolationClass::Container;
        let with = |last: &str| plan(class, vec![runs(&draw), runs(&format!("echo {last} > ~/last"))]);
        assert_ready(&build(&scene, &name, with("one")).await);
        let first = read().await;
        let again = build(&scene, &name, with("one")).await;
        assert_ready(&again);
        assert_eq!(said(&again).matches("CACHED").count(), 2, "{}", said(&again));
        assert_eq!(read().await, first);
        let changed = build(&scene, &name, with("two")).await;
        assert_eq!(said(&changed).matches("CACHED").count(), 1, "{}", said(&changed));
        assert_eq!(read().await, first.replace("one", "two"));
        let mut forced = with("two");
        forced.steps[0].force = true;
        let forced = build(&scene, &name, forced).await;
        assert_eq!(said(&forced).matches("CACHED").count(), 0, "what follows a forced step is run again too");
        assert_ne!(read().await, first.replace("one", "two"));
        // Another project's steps are its own.
        let stranger = scene.caller("stranger", &[Scope::Templates, Scope::Use, Scope::Read]).await;
        let id = scene.service.reserve_build(&stranger, vec![name.clone()], false).unwrap().id;
        scene.service.start_build(&stranger, &id, with("two")).await.unwrap();
        assert_eq!(code(scene.service.build(&scene.admin, &id, 0, 1).await), "build_not_found");
        until(|| async { scene.service.build(&stranger, &id, 0, 1).await.unwrap().record.state == BuildState::Ready }).await;
        let view = scene.service.build(&stranger, &id, 0, usize::MAX).await.unwrap();
        assert_eq!(said(&view).matches("CACHED").count(), 0, "{}", said(&view));
        scene.service.remove_template(&stranger, &name, false).await.unwrap();
        remove(&scene, &name).await;
        nothing_of_builds_is_left(&scene).await;
    });
}

#[test]
fn a_step_that_fails_is_told_by_its_number_and_leaves_what_was_there() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let class = IsolationClass::Container;
        let name = fresh_name();
        let missing = BuildStep::Copy {
            files: "f".repeat(64).parse().unwrap(),
            source: "x".into(),
            destination: "y".into(),
            owner: None,
            mode: None,
        };
        let nobody = BuildStep::Run { command: "whoami".into(), user: "root123".parse().ok() };
        let sleep = StartUp { command: Some("exit 3".into()), ready: Some(ReadyCheck::Port(1)), within_seconds: Some(5), warm: false };
        let cases = [
            (plan(class, vec![runs("true"), runs("echo \"\u{1b}[2Jsorry\" >&2; exit 5")]), BuildPlace::Step(2), "exit status 5"),
            (plan(class, vec![step(nobody)]), BuildPlace::Step(1), "failed to run command 'whoami': the sandbox has no user root123"),
            (plan(class, vec![runs("for i in $(seq 300); do mkdir deep && cd deep; done")]), BuildPlace::Step(1), "256 directories deep"),
            (plan(class, vec![step(missing)]), BuildPlace::Step(1), "were sent; send them first"),
            (
                BuildPlan { base: BuildBase::Template("nothing-here".parse().unwrap()), ..plan(class, vec![]) },
                BuildPlace::Base,
                "not found",
            ),
            (BuildPlan { start: Some(sleep), ..plan(class, vec![]) }, BuildPlace::Finish, "exited with code 3"),
        ];
        for (plan, place, why) in cases {
            let view = build(&scene, &name, plan).await;
            let failure = view.record.failure.clone().unwrap_or_else(|| panic!("{}", said(&view)));
            assert_eq!((view.record.state, failure.place), (BuildState::Failed, place), "{failure:?}");
            assert!(failure.message.contains(why), "{failure:?}");
            assert!(!said(&view).contains('\u{1b}') && said(&view).ends_with(&format!("{}\n", failure.message)), "{}", said(&view));
            assert_eq!(code(scene.service.template(&scene.admin, &name).await), "template_not_found");
        }
        nothing_of_builds_is_left(&scene).await;
    });
}

#[test]
fn a_build_that_the_server_did_not_outlive_has_failed_and_left_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let name = fresh_name();
        let marker = format!("echo begun {name}; exec sleep 1000");
        let id = begin(&scene, &name, plan(IsolationClass::Container, vec![runs("echo first > ~/first"), runs(&marker)])).await;
        let begun =
            || async { said(&scene.service.build(&scene.admin, &id, 0, usize::MAX).await.unwrap()).contains(&format!("begun {name}\n")) };
        until(begun).await;
        let _still_standing = scene.restart(CONTAINER).await;
        let view = scene.service.build(&scene.admin, &id, 0, 10).await.unwrap();
        assert_eq!(view.record.state, BuildState::Failed);
        // The server before still stands in this process, and may have told of the end of its sandbox first.
        assert!(view.record.failure.is_some_and(|failure| !failure.message.is_empty()));
        nothing_of_builds_is_left(&scene).await;
        assert_eq!(code(scene.service.start_build(&scene.admin, &id, plan(IsolationClass::Container, vec![])).await), "build_started");
        // What was done is not done again.
        let again =
            build(&scene, &name, plan(IsolationClass::Container, vec![runs("echo first > ~/first"), runs(&format!("echo second {name}"))]))
                .await;
        assert_ready(&again);
        assert_eq!(said(&again).matches("CACHED").count(), 1, "{}", said(&again));
        remove(&scene, &name).await;
    });
}

#[test]
fn what_a_built_template_starts_is_tried_and_then_started_in_every_sandbox() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(BOTH).await;
        for class in [IsolationClass::Container, IsolationClass::Gvisor] {
            let name = fresh_name();
            let start = StartUp {
                command: Some("cd /srv/www && exec python3 -m http.server 8000".into()),
                ready: Some(ReadyCheck::Port(8000)),
                within_seconds: Some(60),
                warm: false,
            };
            let steps = vec![as_root("mkdir -p /srv/www && echo served > /srv/www/page && chmod -R a+rX /srv")];
            assert_ready(&build(&scene, &name, BuildPlan { start: Some(start), ..plan(class, steps) }).await);
            assert_eq!(in_new(&scene, &name, class, "curl -s http://127.0.0.1:8000/page").await, "served\n");
            // A template on it starts the same.
            let upon = fresh_name();
            let on = BuildPlan { base: BuildBase::Template(name.clone()), ..plan(class, vec![as_root("echo changed > /srv/www/page")]) };
            assert_ready(&build(&scene, &upon, on).await);
            assert_eq!(in_new(&scene, &upon, class, "curl -s http://127.0.0.1:8000/page").await, "changed\n");
            remove(&scene, &upon).await;
            remove(&scene, &name).await;
        }
        let sandboxes = scene.service.statistics().live;
        assert!(sandboxes.keys().all(|(_, state)| *state != SandboxState::Running.to_string()), "{sandboxes:?}");
    });
}
