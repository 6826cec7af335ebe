//! How long a sandbox lives: leases that run out, grow and shrink, idle time, wall time.
//!
//! Times here are short and only ever too long on a slow machine: what has to come is waited for, and what must not come has come by the
//! time something later has.

use std::sync::Arc;
use std::time::Duration;

use belljar_core::{CreateSandbox, Lease, PartialLimits, SandboxChange};
use belljar_testkit::{block_on, run};
use belljar_types::{EndCause, Sandbox, SandboxState};

use crate::scene::{CONTAINER, Scene, among_others, code, container};

const SHORT: Duration = Duration::from_millis(1500);
const LONG: Duration = Duration::from_secs(3600);

fn leased(lease: Duration) -> CreateSandbox {
    CreateSandbox { lease: Some(lease), ..container() }
}

fn cause(sandbox: &Arc<Sandbox>) -> EndCause {
    sandbox.end.as_ref().unwrap().cause
}

#[test]
fn a_lease_runs_out_unless_it_is_extended_and_can_be_cut_short() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let (left, extended, cut, kept) =
            tokio::join!(scene.create(leased(SHORT)), scene.create(leased(SHORT)), scene.create(leased(LONG)), scene.create(leased(LONG)));
        let set = |sandbox: &Arc<Sandbox>, lease: Lease| {
            let (id, scene) = (sandbox.id.clone(), &scene);
            async move { scene.service.set_lease(&scene.admin, &id, lease).await.unwrap() }
        };
        let longer = set(&extended, Lease::AtLeast(LONG)).await;
        assert!(longer.expires_at > extended.expires_at);
        assert_eq!(set(&kept, Lease::AtLeast(SHORT)).await.expires_at, kept.expires_at, "at least never makes it shorter");
        assert!(set(&cut, Lease::FromNow(SHORT)).await.expires_at < cut.expires_at);

        for sandbox in [&left, &cut] {
            let gone = scene.ended(&sandbox.id).await;
            assert_eq!((gone.state, cause(&gone)), (SandboxState::Stopped, EndCause::LeaseExpired));
            assert_eq!(code(scene.service.set_lease(&scene.admin, &sandbox.id, Lease::FromNow(LONG)).await), "sandbox_ended");
        }
        // The lease that `extended` had first was over before that of `cut`.
        for sandbox in [&extended, &kept] {
            assert_eq!(scene.show(&sandbox.id).await.state, SandboxState::Running);
        }
        assert_eq!(code(scene.service.set_lease(&scene.admin, &kept.id, Lease::FromNow(Duration::from_secs(u64::MAX))).await), "invalid");
        scene.kill([&extended.id, &kept.id]).await;
    });
}

#[test]
fn a_sandbox_in_use_is_never_idle_and_one_that_is_left_ends() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let idle = CreateSandbox { idle_timeout: Some(Duration::from_secs(1)), ..container() };
        let (used, left) = tokio::join!(scene.create(idle.clone()), scene.create(idle));
        let session = scene.service.open(&scene.admin, &used.id).await.unwrap();
        let second = session.clone();
        let gone = scene.ended(&left.id).await;
        assert_eq!((gone.state, cause(&gone)), (SandboxState::Stopped, EndCause::Idle));
        assert!(gone.end.as_ref().unwrap().detail.contains("nobody used it for 1 s"), "{:?}", gone.end);
        drop(session);
        run(&**second.guest(), &["/bin/sleep", "1.5"]).await;
        assert_eq!(scene.show(&used.id).await.state, SandboxState::Running, "one of two users is still there");
        drop(second);
        assert_eq!(cause(&scene.ended(&used.id).await), EndCause::Idle);
    });
}

#[test]
fn an_idle_time_can_be_set_and_taken_away() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let idle =
            |timeout: Option<u64>| SandboxChange { idle_timeout: Some(timeout.map(Duration::from_secs)), ..SandboxChange::default() };
        let (given, freed) =
            tokio::join!(scene.container(), scene.create(CreateSandbox { idle_timeout: Some(Duration::from_secs(2)), ..container() }));
        scene.service.update(&scene.admin, &freed.id, idle(None)).await.unwrap();
        scene.service.update(&scene.admin, &given.id, idle(Some(3))).await.unwrap();
        assert_eq!(cause(&scene.ended(&given.id).await), EndCause::Idle);
        assert_eq!(scene.show(&freed.id).await.state, SandboxState::Running, "its time-out would have been over before the other's");
        scene.kill([&freed.id]).await;
    });
}

#[test]
fn wall_time_ends_a_sandbox_whatever_its_lease_and_whoever_uses_it() {
    block_on(async {
        let _turn = among_others().await;
        let scene = Scene::open(CONTAINER).await;
        let limits = PartialLimits { wall_time: Some(Duration::from_secs(2)), ..PartialLimits::default() };
        let made = futures_util::future::join_all((0..4).map(|_| scene.create(CreateSandbox { limits, ..leased(LONG) }))).await;
        let session = scene.service.open(&scene.admin, &made[0].id).await.unwrap();
        scene.service.set_lease(&scene.admin, &made[1].id, Lease::FromNow(LONG)).await.unwrap();
        for sandbox in &made {
            // Both the engine and the service keep this limit; whoever is first, it is told the same.
            let gone = scene.ended(&sandbox.id).await;
            assert_eq!((gone.state, cause(&gone)), (SandboxState::Stopped, EndCause::WallTime), "{:?}", gone.end);
        }
        assert_eq!(session.ended().await.state, SandboxState::Stopped);
    });
}
