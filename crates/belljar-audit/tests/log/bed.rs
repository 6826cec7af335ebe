//! What the tests share: a log in a directory of its own, events to write, and repeatable chance.

use std::path::{Path, PathBuf};

use belljar_audit::AuditLog;
use belljar_ports::Audit;
use belljar_types::{Actor, AuditAction, AuditEvent, Phase, ProjectId};

pub(crate) const PROJECT: &str = "first";

pub(crate) fn project() -> ProjectId {
    PROJECT.parse().unwrap()
}

pub(crate) fn event(text: &str) -> AuditEvent {
    AuditEvent {
        project: project(),
        sandbox: None,
        actor: Actor { key: None, request: Some("r-1".to_owned()) },
        action: AuditAction::lifecycle("create", Phase::Intent, [("text", text.to_owned())]),
    }
}

/// Writes this many events, many at once.
pub(crate) async fn write(log: &AuditLog, count: u64) {
    for number in 0..count.saturating_sub(1) {
        log.note(event(&format!("event {number}"))).await.unwrap();
    }
    log.record(event("the last")).await.unwrap();
}

pub(crate) fn segments(root: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join(PROJECT)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    files
}

/// Chance that can be repeated with `BELLJAR_SEED`.
pub(crate) struct Die(u64);

impl Die {
    pub(crate) fn seeded() -> Self {
        let seed = std::env::var("BELLJAR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
        #[expect(clippy::print_stdout, reason = "the harness shows it beside the failure")]
        {
            println!("BELLJAR_SEED={seed}");
        }
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}

pub(crate) fn full() -> bool {
    std::env::var_os("BELLJAR_FULL").is_some_and(|value| value != "0")
}
