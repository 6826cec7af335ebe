//! What sandboxes use is counted, survives restarts and adds up; what somebody may have is not gone beyond.

use std::time::Duration;

use belljar_core::AuditQuery;
use belljar_ports::SnapshotKind;
use belljar_testkit::block_on;
use belljar_types::{
    AtLimit, AuditAction, Budget, BudgetSubject, Consumption, EndCause, IsolationClass, Meter, ProcessSpec, SandboxId, SandboxState, Scope,
    Timestamp,
};

use crate::scene::{CONTAINER, Scene, among_others, code, container, of_class, until};

const SECOND: u64 = 1_000_000;

fn budget(subject: BudgetSubject, meter: Meter, hard: u64, at_limit: AtLimit) -> Budget {
    Budget { subject, meter, soft: Some(hard / 2), hard: Some(hard), at_limit, warned_at: None }
}

async fn start(scene: &Scene, id: &SandboxId, script: &str) {
    let session = scene.service.open(&scene.admin, id).await.unwrap();
    session.start(&ProcessSpec::new(["sh", "-c", script])).await.unwrap();
}

/// Runs something to its end.
async fn run(scene: &Scene, id: &SandboxId, script: &str) {
    let session = scene.service.open(&scene.admin, id).await.unwrap();
    let process = session.start(&ProcessSpec::new(["sh", "-c", script])).await.unwrap();
    until(|| async { session.wait(&process.id, Duration::from_secs(5)).await.unwrap().is_some() }).await;
}

async fn used(scene: &Scene, subject: BudgetSubject) -> Consumption {
    scene.service.consumption(&scene.admin, Some(subject), Timestamp(0)).await.unwrap().1
}

/// What was told of a sandbox's budgets: what was done, and the limit.
async fn told(scene: &Scene, id: &SandboxId) -> Vec<(String, u64)> {
    let query = AuditQuery { sandbox: Some(id.clone()), kinds: vec!["budget".to_owned()], limit: 100, ..AuditQuery::default() };
    let page = scene.service.audit(&scene.admin, None, &query, Duration::ZERO).await.unwrap();
    let did = page.records.iter().filter_map(|(record, _)| match &record.event.action {
        AuditAction::Budget { did, limit, .. } => Some((did.clone(), *limit)),
        _ => None,
    });
    did.collect()
}

async fn a_busy_loop_is_stopped(class: IsolationClass) {
    let _turn = among_others().await;
    let scene = Scene::open(&[class]).await;
    let made = scene.create(of_class(class)).await;
    let subject = BudgetSubject::Sandbox(made.id.clone());
    let before = used(&scene, subject.clone()).await.cpu_micros;
    let limit = before + 2 * SECOND;
    let budget = Budget { soft: Some(before + SECOND), ..budget(subject.clone(), Meter::CpuMicros, limit, AtLimit::Kill) };
    scene.service.set_budget(&scene.admin, budget).await.unwrap();
    start(&scene, &made.id, "while :; do :; done").await;
    let ended = scene.ended(&made.id).await;
    assert_eq!(ended.end.as_ref().unwrap().cause, EndCause::Budget, "{:?}", ended.end);
    // What the engine counted when nothing ran any more.
    let all = used(&scene, subject).await.cpu_micros;

    assert!((limit..=limit + SECOND / 5).contains(&all), "{} of {}", all - before, 2 * SECOND);
    assert_eq!(told(&scene, &made.id).await, [("warn".to_owned(), before + SECOND), ("kill".to_owned(), limit)]);
}

#[test]
fn a_busy_loop_with_two_seconds_left_is_stopped_in_time_as_a_container() {
    block_on(a_busy_loop_is_stopped(IsolationClass::Container));
}

#[test]
fn a_busy_loop_with_two_seconds_left_is_stopped_in_time_under_gvisor() {
    block_on(a_busy_loop_is_stopped(IsolationClass::Gvisor));
}

#[test]
fn a_project_without_budget_stands_still_and_goes_on_with_more() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let project = BudgetSubject::Project(scene.admin.project.clone());
        let (made, idle) = (scene.container().await, scene.container().await);
        let of = |hard| budget(project.clone(), Meter::Executions, hard, AtLimit::Pause);
        scene.service.set_budget(&scene.admin, of(1)).await.unwrap();
        start(&scene, &made.id, "while :; do :; done").await;
        for id in [&made.id, &idle.id] {
            until(|| async { scene.show(id).await.state == SandboxState::Paused }).await;
        }
        let refused = scene.service.create(&scene.admin, container()).await.unwrap_err();
        assert_eq!(refused.code(), "budget_exceeded");
        let named = format!("the budget of project:{} for executions is used up: 1 of 1", scene.admin.project);
        assert_eq!(refused.to_string(), named);
        assert_eq!(code(scene.service.resume(&scene.admin, &made.id, None).await), "budget_exceeded");
        assert_eq!(scene.show(&made.id).await.state, SandboxState::Paused, "refused, it is as before");
        scene.service.set_budget(&scene.admin, of(100)).await.unwrap();
        scene.service.resume(&scene.admin, &made.id, None).await.unwrap();
        let third = scene.container().await;
        run(&scene, &third.id, "true").await;
        assert_eq!(scene.show(&made.id).await.state, SandboxState::Running);
        scene.kill([&made.id, &idle.id, &third.id]).await;
    });
}

#[test]
fn a_soft_limit_is_told_once_by_whichever_server() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let made = scene.container().await;
        let subject = BudgetSubject::Sandbox(made.id.clone());
        let soft = Budget { soft: Some(2), hard: None, ..budget(subject.clone(), Meter::Executions, 0, AtLimit::Pause) };
        scene.service.set_budget(&scene.admin, soft.clone()).await.unwrap();
        for _ in 0..3 {
            run(&scene, &made.id, "true").await;
        }
        let warning = [("warn".to_owned(), 2)];
        until(|| async { told(&scene, &made.id).await == warning }).await;
        scene.restart(CONTAINER).await;
        run(&scene, &made.id, "true").await;
        // Whatever the new server would tell, it would tell when it looks; reading makes it look.
        assert_eq!(used(&scene, subject).await.executions, 4);
        assert_eq!(told(&scene, &made.id).await, warning);
        assert_eq!(scene.show(&made.id).await.state, SandboxState::Running, "a warning stops nothing");
        let (listed, used) = scene.service.budgets(&scene.admin).await.unwrap().remove(0);
        assert!(listed.warned_at.is_some() && used == 4, "{listed:?} {used}");
        scene.service.set_budget(&scene.admin, soft).await.unwrap();
        until(|| async { told(&scene, &made.id).await.len() == 2 }).await;
        scene.kill([&made.id]).await;
    });
}

#[test]
fn the_parts_make_the_whole_and_a_restart_forgets_nothing() {
    block_on(async {
        let _turn = among_others().await;
        let mut scene = Scene::open(CONTAINER).await;
        let other = scene.caller(scene.admin.project.as_str(), &[Scope::Use, Scope::Read]).await;
        let first = scene.container().await;
        let second = scene.service.create(&other, container()).await.unwrap();
        for id in [&first.id, &second.id] {
            run(&scene, id, "true").await;
        }
        scene.service.kill(&scene.admin, &first.id).await.unwrap();
        let of_first = used(&scene, BudgetSubject::Sandbox(first.id.clone())).await;
        assert!(of_first.cpu_micros > 0 && of_first.executions == 1, "{of_first:?}");
        run(&scene, &second.id, "true").await;
        let seen = scene.service.usage(&scene.admin, &second.id).await.unwrap().cpu_micros;
        // Nothing of the last execution was written when the next server takes over.
        scene.restart(CONTAINER).await;
        assert_eq!(used(&scene, BudgetSubject::Sandbox(first.id.clone())).await, of_first);
        scene.service.kill(&scene.admin, &second.id).await.unwrap();
        let of_second = used(&scene, BudgetSubject::Sandbox(second.id.clone())).await;
        assert_eq!(of_second.executions, 2, "{of_second:?}");
        assert!(of_second.wall_millis > 0 && (seen..seen + SECOND).contains(&of_second.cpu_micros), "{seen}: {of_second:?}");
        let whole = used(&scene, BudgetSubject::Project(scene.admin.project.clone())).await;
        assert_eq!(whole, of_first.plus(&of_second));
        let keys = [scene.admin.key.clone(), other.key].map(BudgetSubject::Key);
        let by_key = used(&scene, keys[0].clone()).await.plus(&used(&scene, keys[1].clone()).await);
        assert_eq!(by_key, whole);

        let stranger = scene.caller("stranger", &[Scope::Read]).await;
        let theirs = BudgetSubject::Project(scene.admin.project.clone());
        assert_eq!(code(scene.service.consumption(&stranger, Some(theirs), Timestamp(0)).await), "project_not_found");
        let (nothing, _) =
            scene.service.consumption(&stranger, Some(BudgetSubject::Sandbox(first.id.clone())), Timestamp(0)).await.unwrap();
        assert!(nothing.is_empty());
    });
}

/// Each pause ends a count or leaves it standing, by class and kind; either way every second is counted once.
async fn pauses_double_nothing(class: IsolationClass, keep: SnapshotKind) {
    let _turn = among_others().await;
    let scene = Scene::open(&[class]).await;
    let made = scene.create(of_class(class)).await;
    run(&scene, &made.id, "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done").await;
    let mut before = scene.service.usage(&scene.admin, &made.id).await.unwrap().cpu_micros;
    let worked = before;
    for _ in 0..2 {
        scene.service.pause(&scene.admin, &made.id, keep).await.unwrap();
        let paused = used(&scene, BudgetSubject::Sandbox(made.id.clone())).await;
        assert!(paused.cpu_micros >= before, "{before} {paused:?}");
        assert_eq!(used(&scene, BudgetSubject::Sandbox(made.id.clone())).await, paused, "nothing passes for one that stands still");
        scene.service.resume(&scene.admin, &made.id, None).await.unwrap();
        let resumed = scene.service.usage(&scene.admin, &made.id).await.unwrap().cpu_micros;
        assert!(resumed >= paused.cpu_micros, "{resumed} after {paused:?}");
        before = resumed;
    }
    scene.kill([&made.id]).await;
    let all = used(&scene, BudgetSubject::Sandbox(made.id.clone())).await;

    assert!(all.cpu_micros >= before, "{before} {all:?}");
    if class == IsolationClass::Container {
        assert!(all.cpu_micros < 2 * worked, "worked {worked}, and was counted {all:?}");
    }
}

#[test]
fn pauses_in_memory_double_nothing() {
    block_on(pauses_double_nothing(IsolationClass::Container, SnapshotKind::Memory));
}

#[test]
fn pauses_without_memory_double_nothing() {
    block_on(pauses_double_nothing(IsolationClass::Container, SnapshotKind::Filesystem));
}

#[test]
fn pauses_to_disk_lose_nothing_under_gvisor() {
    block_on(pauses_double_nothing(IsolationClass::Gvisor, SnapshotKind::Memory));
}

#[test]
fn a_budget_that_makes_no_sense_is_refused_by_name() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let project = BudgetSubject::Project(scene.admin.project.clone());
        let of =
            |subject: &BudgetSubject, soft, hard| Budget { soft, hard, ..budget(subject.clone(), Meter::CpuMicros, 0, AtLimit::Pause) };
        let nobody = BudgetSubject::Project("nobody".parse().unwrap());
        let no_key = BudgetSubject::Key(belljar_types::KeyId::random());
        let no_sandbox = BudgetSubject::Sandbox(SandboxId::random());
        for (budget, expected) in [
            (of(&project, None, None), "invalid"),
            (of(&project, Some(2), Some(1)), "invalid"),
            (of(&nobody, None, Some(1)), "project_not_found"),
            (of(&no_key, None, Some(1)), "key_not_found"),
            (of(&no_sandbox, None, Some(1)), "sandbox_not_found"),
        ] {
            assert_eq!(code(scene.service.set_budget(&scene.admin, budget.clone()).await), expected, "{budget:?}");
        }
        let user = scene.caller(scene.admin.project.as_str(), &[Scope::Use, Scope::Read]).await;
        assert_eq!(code(scene.service.set_budget(&user, of(&project, None, Some(1))).await), "forbidden");
    });
}
