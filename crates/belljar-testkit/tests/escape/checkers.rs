//! Public checkers, run inside: what others look for when they ask whether a sandbox is one. See `tests/escape/checkers.md`.

use std::path::PathBuf;

use belljar_types::{IsolationClass, Limits, PrivilegePolicy};

use crate::scene::{INSIDE, Scene, put};
use crate::target::programs;

/// Collects the checkers on the host, once.
fn fetched() -> PathBuf {
    let directory = programs().join("../../.cache/checkers");
    let fetch = std::process::Command::new(programs().join("fetch-checkers")).arg(&directory).status().unwrap();
    assert!(fetch.success(), "fetch-checkers failed");
    directory
}

/// Every checker on one class. Each line that `checkers.sh` prints is a check with its outcome.
pub(crate) async fn all(class: IsolationClass) {
    let scene = Scene::set(class).await;
    let stage = scene.stage(Limits::default(), PrivilegePolicy::RootAllowed).await;
    put(&*stage.sandbox.guest, &fetched(), &["bin", "debian"], &format!("{INSIDE}/checkers")).await;
    for user in ["user", "root"] {
        let done = stage.run(user, &["/bin/sh", &format!("{INSIDE}/checkers.sh")]).await.unwrap();
        let text = done.text();
        for line in text.lines() {
            println!("{class} {user:5} {line}");
        }
        let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("FOUND")).collect();
        assert!(text.lines().any(|line| line.starts_with("clean")), "no checker ran: {text}");
        assert!(failed.is_empty(), "{class} as {user}:\n{}", failed.join("\n"));
    }
    stage.sandbox.destroy().await;
    scene.strike().await;
}
