//! What happens on the way out of sandboxes, as the audit log has it. The first of each kind is written at once, with the rule that decided; what is
//! repeated within a minute is counted and written once, and so are destinations beyond a number: nobody inside can flood the log, and one sandbox's
//! flood hides nothing of another's.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use belljar_ports::{EgressEvent, EgressEventKind};
use belljar_types::{Actor, AuditAction, AuditEvent, ProjectId, SandboxId};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::recording::Recorder;

/// How long repetitions are counted before they are told.
const WINDOW: Duration = Duration::from_secs(60);
/// How many different things of one sandbox are told by themselves in that time.
const MOST_APART: u32 = 64;

/// What makes two events the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Same {
    sandbox: SandboxId,
    kind: EgressEventKind,
    destination: String,
    port: u16,
    rule: String,
}

#[derive(Debug)]
struct Repeated {
    first: EgressEvent,
    more: u64,
}

/// How much of one sandbox was told.
#[derive(Debug)]
struct Share {
    project: ProjectId,
    apart: u32,
    beyond: u64,
}

/// What was told in this minute.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seen: HashMap<Same, Repeated>,
    shares: HashMap<SandboxId, Share>,
}

impl Ledger {
    /// Takes an event; says what is to be written at once.
    pub(crate) fn take(&mut self, event: EgressEvent) -> Option<AuditEvent> {
        let same = Same {
            sandbox: event.sandbox.clone(),
            kind: event.kind,
            destination: event.destination.clone(),
            port: event.port,
            rule: event.rule.clone(),
        };
        if let Some(before) = self.seen.get_mut(&same) {
            before.more += 1;
            return None;
        }
        let fresh = || Share { project: event.project.clone(), apart: 0, beyond: 0 };
        let share = self.shares.entry(event.sandbox.clone()).or_insert_with(fresh);
        if share.apart >= MOST_APART {
            share.beyond += 1;
            return None;
        }
        share.apart += 1;
        let told = told(&event, 0);
        self.seen.insert(same, Repeated { first: event, more: 0 });
        Some(told)
    }

    /// Ends the minute; says what was counted in it.
    pub(crate) fn close(&mut self) -> Vec<AuditEvent> {
        let seen = std::mem::take(&mut self.seen);
        let repeated = seen.into_values().filter(|repeated| repeated.more > 0).map(|repeated| told(&repeated.first, repeated.more));
        let shares = std::mem::take(&mut self.shares);
        let beyond = shares.into_iter().filter(|(_, share)| share.beyond > 0).map(|(sandbox, share)| {
            let detail = [("count", share.beyond.to_string()), ("reason", format!("beyond {MOST_APART} different ones in a minute"))];
            let action = AuditAction::Network {
                verdict: "any".to_owned(),
                protocol: "any".to_owned(),
                host: "*".to_owned(),
                port: 0,
                rule: "*".to_owned(),
                detail: detail.map(|(name, value)| (name.to_owned(), value)).into(),
            };
            AuditEvent { project: share.project, sandbox: Some(sandbox), actor: Actor::default(), action }
        });
        repeated.chain(beyond).collect()
    }

    fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }
}

fn told(event: &EgressEvent, more: u64) -> AuditEvent {
    use EgressEventKind::{Allowed, Cut, Denied, NameDenied, RequestAllowed, RequestDenied, SecretUsed, TooManyNames, Unreachable};
    let mut detail = BTreeMap::from([("reason".to_owned(), event.reason.clone())]);
    if more > 0 {
        detail.insert("count".to_owned(), more.to_string());
    }
    let (verdict, protocol) = match event.kind {
        Allowed | Unreachable => ("allow", "tcp"),
        Denied | Cut => ("deny", "tcp"),
        RequestAllowed | SecretUsed => ("allow", "http"),
        RequestDenied => ("deny", "http"),
        NameDenied | TooManyNames => ("deny", "dns"),
    };
    match event.kind {
        Unreachable => drop(detail.insert("outcome".to_owned(), "unreachable".to_owned())),
        Cut => drop(detail.insert("outcome".to_owned(), "cut".to_owned())),
        _ => {}
    }
    let action = match event.kind {
        SecretUsed => AuditAction::SecretUse {
            name: event.rule.trim_start_matches("secrets.").to_owned(),
            host: event.destination.clone(),
            rule: event.rule.clone(),
            detail,
        },
        _ => AuditAction::Network {
            verdict: verdict.to_owned(),
            protocol: protocol.to_owned(),
            host: event.destination.clone(),
            port: event.port,
            rule: event.rule.clone(),
            detail,
        },
    };
    AuditEvent { project: event.project.clone(), sandbox: Some(event.sandbox.clone()), actor: Actor::default(), action }
}

/// Writes down what happens for as long as anything can.
pub(crate) async fn watch(mut events: mpsc::Receiver<EgressEvent>, recorder: Recorder) {
    let mut ledger = Ledger::default();
    let mut ends = Instant::now();
    loop {
        tokio::select! {
            event = events.recv() => {
                let Some(event) = event else { break };
                if ledger.is_empty() {
                    ends = Instant::now() + WINDOW;
                }
                if let Some(told) = ledger.take(event) {
                    recorder.note(told).await;
                }
            }
            () = tokio::time::sleep_until(ends), if !ledger.is_empty() => {
                for told in ledger.close() {
                    recorder.note(told).await;
                }
            }
        }
    }
    for told in ledger.close() {
        recorder.note(told).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "sone4567890123456789";
    const TWO: &str = "stwo4567890123456789";

    fn event(sandbox: &str, kind: EgressEventKind, destination: &str) -> EgressEvent {
        EgressEvent {
            project: "default".parse().unwrap(),
            sandbox: sandbox.parse().unwrap(),
            kind,
            destination: destination.to_owned(),
            port: 443,
            rule: "network.default".to_owned(),
            reason: "denied by network.default".to_owned(),
        }
    }

    fn count(event: &AuditEvent) -> Option<&str> {
        match &event.action {
            AuditAction::Network { detail, .. } | AuditAction::SecretUse { detail, .. } => detail.get("count").map(String::as_str),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_repeated_is_counted_and_what_is_new_is_told_at_once() {
        let mut ledger = Ledger::default();
        let first = ledger.take(event(ONE, EgressEventKind::Denied, "evil.test")).unwrap();
        let AuditAction::Network { verdict, host, rule, .. } = &first.action else { panic!("{first:?}") };
        assert_eq!((verdict.as_str(), host.as_str(), rule.as_str()), ("deny", "evil.test", "network.default"));
        for _ in 0..1000 {
            assert_eq!(ledger.take(event(ONE, EgressEventKind::Denied, "evil.test")), None);
        }
        assert!(ledger.take(event(ONE, EgressEventKind::Allowed, "evil.test")).is_some(), "another verdict");
        assert!(ledger.take(event(TWO, EgressEventKind::Denied, "evil.test")).is_some(), "another sandbox");
        let counted = ledger.close();
        assert_eq!(counted.iter().map(count).collect::<Vec<_>>(), [Some("1000")]);
        assert!(ledger.is_empty() && ledger.take(event(ONE, EgressEventKind::Denied, "evil.test")).is_some(), "a new minute");
    }

    #[test]
    fn a_flood_of_destinations_is_told_as_one_and_hides_nobody_else() {
        let mut ledger = Ledger::default();
        let told = (0..5000).filter_map(|n| ledger.take(event(ONE, EgressEventKind::NameDenied, &format!("n{n}.test")))).count();
        assert_eq!(told, 64);
        assert!(ledger.take(event(TWO, EgressEventKind::NameDenied, "n1.test")).is_some());
        let counted = ledger.close();
        assert_eq!(counted.iter().map(count).collect::<Vec<_>>(), [Some("4936")]);
    }
}
