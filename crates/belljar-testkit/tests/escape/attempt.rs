//! Runs the attempts and judges what they say.

use std::fmt;
use std::path::Path;

use belljar_types::{EndReason, IsolationClass, KillCause, Limits, PrivilegePolicy};
use futures_util::{StreamExt, stream};

use crate::scene::{INSIDE, Scene, Stage, TIGHT};
use crate::target::programs;

/// How many run at once in one sandbox: they mostly wait for packets that never come.
const AT_ONCE: usize = 3;
/// The project's promise for each class.
const PROMISED: usize = 40;

/// What an attempt asks for in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing special: as user and as root in the common sandbox.
    Nothing,
    /// A sandbox that it may bring down.
    OwnSandbox,
    /// A sandbox in which nobody may be root.
    UserOnly,
}

#[derive(Debug, Clone)]
struct Attempt {
    name: String,
    needs: Needs,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Blocked(String),
    Escaped(String),
    Broken(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(reason) => write!(f, "blocked  {reason}"),
            Self::Escaped(evidence) => write!(f, "ESCAPED  {evidence}"),
            Self::Broken(why) => write!(f, "BROKEN   {why}"),
        }
    }
}

struct Outcome {
    attempt: String,
    user: &'static str,
    verdict: Verdict,
}

/// Every attempt on one class.
pub(crate) async fn all(class: IsolationClass) {
    let scene = Scene::set(class).await;
    let attempts = listed();
    let common = scene.stage(Limits::default(), PrivilegePolicy::RootAllowed).await;
    let user_only = scene.stage(Limits::default(), PrivilegePolicy::UserOnly).await;
    let runs = attempts.iter().flat_map(|attempt| {
        let users: &[&'static str] = if attempt.needs == Needs::UserOnly { &["user"] } else { &["user", "root"] };
        users.iter().map(move |user| (attempt, *user))
    });
    let mut outcomes: Vec<Outcome> = stream::iter(runs)
        .map(|(attempt, user)| {
            let (scene, common, user_only) = (&scene, &common, &user_only);
            async move {
                let verdict = match attempt.needs {
                    Needs::Nothing => on(common, attempt, user).await,
                    Needs::UserOnly => on(user_only, attempt, user).await,
                    Needs::OwnSandbox => alone(scene, attempt, user).await,
                };
                Outcome { attempt: attempt.name.clone(), user, verdict }
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    outcomes.sort_by(|a, b| (&a.attempt, a.user).cmp(&(&b.attempt, b.user)));
    for Outcome { attempt, user, verdict } in &outcomes {
        println!("{class} {attempt:44} {user:5} {verdict}");
    }
    // The suite proves nothing about a sandbox that died on the way.
    common.sandbox.guest.hello().await.unwrap();
    user_only.sandbox.guest.hello().await.unwrap();
    common.sandbox.destroy().await;
    user_only.sandbox.destroy().await;
    scene.strike().await;
    let bad = outcomes.iter().filter(|outcome| !matches!(outcome.verdict, Verdict::Blocked(_)));
    let bad: Vec<String> = bad.map(|outcome| format!("{} as {}: {}", outcome.attempt, outcome.user, outcome.verdict)).collect();
    println!("{class}: {} attempts, {} runs, {} not blocked", attempts.len(), outcomes.len(), bad.len());
    assert!(attempts.len() >= PROMISED || chosen().is_some(), "{} attempts", attempts.len());
    assert!(bad.is_empty(), "{class}:\n{}", bad.join("\n"));
}

/// `BELLJAR_ESCAPE=107,3` runs only attempts whose names begin so.
fn chosen() -> Option<String> {
    std::env::var("BELLJAR_ESCAPE").ok().filter(|text| !text.is_empty())
}

/// The attempts in order.
fn listed() -> Vec<Attempt> {
    let chosen = chosen().unwrap_or_default();
    let chosen: Vec<&str> = chosen.split(',').collect();
    let directory = programs().join("attempts");
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".py") || name.ends_with(".c"))
        .filter(|name| chosen.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    names.sort();
    names.into_iter().map(|name| Attempt { needs: needs(&directory.join(&name)), name }).collect()
}

fn needs(path: &Path) -> Needs {
    let text = std::fs::read_to_string(path).unwrap();
    match text.lines().find_map(|line| line.strip_prefix("# needs: ")) {
        None => Needs::Nothing,
        Some("own-sandbox") => Needs::OwnSandbox,
        Some("user-only") => Needs::UserOnly,
        Some(other) => panic!("{}: needs: expected own-sandbox or user-only, got {other:?}", path.display()),
    }
}

/// Runs one in a sandbox that lives on.
async fn on(stage: &Stage, attempt: &Attempt, user: &str) -> Verdict {
    let file = format!("{INSIDE}/attempts/{}", attempt.name);
    let script = if attempt.name.ends_with(".c") {
        format!("program=$(mktemp) && gcc -O1 -I {INSIDE}/lib -o $program {file} && exec $program")
    } else {
        format!("exec python3 {file}")
    };
    match stage.run(user, &["/bin/sh", "-c", &script]).await {
        Err(error) => Verdict::Broken(format!("{error} ({error:?})")),
        Ok(done) if done.exit.cause == Some(KillCause::OutOfMemory) => Verdict::Blocked("killed for using too much memory".into()),
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let last = text.lines().last().unwrap_or_default();
            match (done.exit.termination, last.split_once(": ")) {
                (belljar_types::Termination::Exited(0), Some(("BLOCKED", reason))) => Verdict::Blocked(reason.to_owned()),
                (belljar_types::Termination::Exited(0), Some(("ESCAPED", evidence))) => Verdict::Escaped(evidence.to_owned()),
                _ => Verdict::Broken(done.to_string()),
            }
        }
    }
}

/// Runs one in a sandbox of its own with tight limits, which it may bring down.
async fn alone(scene: &Scene, attempt: &Attempt, user: &str) -> Verdict {
    let stage = scene.stage(TIGHT, PrivilegePolicy::RootAllowed).await;
    let mut verdict = on(&stage, attempt, user).await;
    if let Verdict::Broken(why) = verdict {
        // The whole sandbox may have been killed for it: then the limit held.
        let ended =
            tokio::time::timeout(std::time::Duration::from_secs(10), stage.sandbox.runtime.ended(&stage.sandbox.execution.sandbox)).await;
        verdict = match ended {
            Ok(Ok(EndReason::OutOfMemory)) => Verdict::Blocked("the sandbox was killed for using too much memory".into()),
            _ => Verdict::Broken(why),
        };
    }
    stage.sandbox.destroy().await;
    verdict
}
