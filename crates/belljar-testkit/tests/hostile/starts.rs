//! Rogues that never become an agent: `create` says so in bounded time, and takes everything back.

use std::time::Duration;

use belljar_ports::{GuestError, RuntimeError};
use belljar_types::{EndReason, IsolationClass};
use futures_util::future::join_all;

use crate::scene::Scene;

/// Far beyond every limit that is set; only something that waits for ever takes as long.
const FOR_EVER: Duration = Duration::from_secs(300);

/// What each rogue must be found out as. gVisor's engine has a limit of its own for the whole start; the container's asks the agent until then.
fn is_told(role: &str, error: &RuntimeError) -> bool {
    let misbehaved = matches!(error, RuntimeError::Agent { source: GuestError::Misbehaved { .. }, .. });
    let silent = matches!(error, RuntimeError::Agent { source: GuestError::Lost { .. }, .. } | RuntimeError::Host { .. });
    let out_of_memory = matches!(error, RuntimeError::Ended { reason: EndReason::OutOfMemory, .. });
    match role {
        "leave" => matches!(error, RuntimeError::Ended { reason: EndReason::Exited, detail, .. } if !detail.contains('\u{1b}')),
        "eat" => out_of_memory,
        // Sixty interpreters behind gVisor meet the limit on memory before the one on processes.
        "storm" => silent || out_of_memory,
        "babble" | "impostor" => misbehaved,
        _ => silent,
    }
}

pub(crate) async fn a_rogue_that_does_not_start_as_an_agent_must_is_told_and_removed(class: IsolationClass) {
    let scene = Scene::set(class).await;
    for roles in [["leave", "sleep", "babble"], ["mute", "storm", "impostor"], ["drip", "chatter", "eat"]] {
        let creates = roles.map(|role| {
            let spec = scene.spec(role);
            let runtime = &scene.runtime;
            async move { (role, tokio::time::timeout(FOR_EVER, runtime.create(&spec)).await) }
        });
        let (results, ()) = tokio::join!(join_all(creates), scene.others_work());
        for (role, result) in results {
            let error = result.unwrap_or_else(|_| panic!("{role}: create waits for ever")).expect_err(role);
            assert!(is_told(role, &error), "{class} {role}: {error:?}");
        }
        scene.assert_small(&format!("after {roles:?}"));
    }
    scene.assert_nothing_left().await;
}
