//! What is told to webhooks: messages made of what happens, and carried until they arrive.
//!
//! ```text
//!   owner: state written ─ in one transaction ─► outbox        dispatcher: due, first of its sandbox ─► courier ─► gone, or later
//! ```
//! Of one sandbox a receiver gets everything in the order in which it happened: what failed is tried again before anything after it. Between
//! attempts the time doubles, to five minutes; after three days a message is dropped, so that its sandbox's next ones arrive. The dispatcher
//! sleeps until something is entered or due.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use belljar_ports::NotDelivered;
use belljar_types::{Delivery, Message, MessageKind, Sandbox, SandboxId, SandboxState, Timestamp, WebhookId};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, error, warn};

use crate::chain;
use crate::metering::Reached;
use crate::shared::Shared;

/// Of one webhook on their way at the same time: a slow receiver keeps nobody else waiting.
const EACH: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 86_400);
/// How long to wait for a store that does not answer, and at most for anything.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// What is told of a sandbox that was in this state and is now as given, if anything.
pub(crate) fn of_life(was: SandboxState, sandbox: &Sandbox) -> Option<Message> {
    use SandboxState::{Creating, Paused, Pausing, Resuming, Running};
    let kind = match (was, sandbox.state) {
        (Creating, Running) => MessageKind::SandboxCreated,
        (Pausing, Paused) => MessageKind::SandboxPaused,
        (Resuming | Paused, Running) => MessageKind::SandboxResumed,
        (was, now) if now.has_ended() && !was.has_ended() => MessageKind::SandboxEnded,
        _ => return None,
    };
    let mut data = about(sandbox);
    if let (MessageKind::SandboxEnded, Some(end)) = (kind, &sandbox.end) {
        data["cause"] = json!(end.cause.as_str());
        data["detail"] = json!(end.detail);
    }
    Some(message(kind, sandbox, &data))
}

/// What is told of a budget.
pub(crate) fn of_budget(kind: MessageKind, sandbox: &Sandbox, reached: &Reached, limit: u64, did: &str) -> Message {
    let mut data = about(sandbox);
    data["budget"] = json!({
        "subject": reached.budget.subject.to_string(),
        "meter": reached.budget.meter.as_str(),
        "used": reached.used,
        "limit": limit,
        "did": did,
    });
    message(kind, sandbox, &data)
}

fn about(sandbox: &Sandbox) -> Value {
    json!({
        "sandbox": sandbox.id.as_str(),
        "project": sandbox.project.as_str(),
        "state": sandbox.state.as_str(),
        "template": sandbox.template.as_str(),
        "isolation": sandbox.class.as_str(),
        "metadata": sandbox.metadata,
    })
}

fn message(kind: MessageKind, sandbox: &Sandbox, data: &Value) -> Message {
    let at = Timestamp::now();
    let moment = i64::try_from(at.0).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()).unwrap_or(jiff::Timestamp::MAX);
    let body = json!({ "type": kind.as_str(), "timestamp": format!("{moment:.3}"), "data": data });
    // Any id nobody else has; a webhook's is such a one.
    let id = format!("msg_{}", WebhookId::random());
    Message { id, kind, project: sandbox.project.clone(), sandbox: sandbox.id.clone(), at, body: body.to_string() }
}

/// Carries what waits, for as long as the service lives.
pub(crate) async fn deliver_all(shared: Weak<Shared>) {
    let Some(rung) = shared.upgrade().map(|shared| Arc::clone(&shared.tellings)) else { return };
    let mut dispatcher = Dispatcher { flying: HashSet::new(), under_way: JoinSet::new() };
    loop {
        let Some(pause) = (match shared.upgrade() {
            Some(shared) => dispatcher.send_off(&shared).await,
            None => None,
        }) else {
            return;
        };
        let arrived = dispatcher.wait(&rung, pause).await;
        let Some(shared) = shared.upgrade() else { return };
        if let Some((delivery, result)) = arrived {
            dispatcher.flying.remove(&(delivery.webhook.clone(), delivery.sandbox.clone()));
            settle(&shared, &delivery, result).await;
        }
    }
}

type Arrived = (Delivery, Result<(), NotDelivered>);

struct Dispatcher {
    flying: HashSet<(WebhookId, SandboxId)>,
    under_way: JoinSet<Arrived>,
}

impl Dispatcher {
    /// Sends off all that is due, and says how long there is nothing to do; `None` if another server does it now.
    async fn send_off(&mut self, shared: &Arc<Shared>) -> Option<Duration> {
        let now = Timestamp::now();
        let due = match shared.store.due_deliveries(now, EACH).await {
            Ok(due) => due,
            Err(failure) => {
                warn!(error = chain(&failure), "could not look for what is to be told to webhooks");
                return Some(AFTER_FAILURE);
            }
        };
        for delivery in due {
            if self.flying.insert((delivery.webhook.clone(), delivery.sandbox.clone())) {
                let courier = Arc::clone(&shared.courier);
                self.under_way.spawn(async move {
                    let result = courier.deliver(&delivery).await;
                    (delivery, result)
                });
            }
        }
        if shared.is_fenced() {
            return None;
        }
        Some(match shared.store.next_delivery(now).await {
            Ok(next) => next.map_or(LONGEST_SLEEP, |at| now.until(at).min(LONGEST_SLEEP)),
            Err(_) => AFTER_FAILURE,
        })
    }

    /// Waits until one arrived or there is something to do.
    async fn wait(&mut self, rung: &Notify, pause: Duration) -> Option<Arrived> {
        tokio::select! {
            Some(arrived) = self.under_way.join_next() => arrived.ok(),
            () = rung.notified() => None,
            () = tokio::time::sleep(pause) => None,
        }
    }
}

/// Writes down what came of an attempt. What cannot be written is tried again: a receiver may get it twice, never not at all.
async fn settle(shared: &Arc<Shared>, delivery: &Delivery, result: Result<(), NotDelivered>) {
    let now = Timestamp::now();
    let written = match result {
        Ok(()) => {
            debug!(webhook = %delivery.webhook, sandbox = %delivery.sandbox, message = delivery.message, "told");
            shared.store.settle_delivery(shared.epoch, delivery, now, None).await
        }
        Err(failure) if delivery.entered_at.until(now) > GIVE_UP_AFTER => {
            warn!(webhook = %delivery.webhook, sandbox = %delivery.sandbox, message = delivery.message, problem = failure.problem, "gave up a message");
            let problem = format!("gave up after {} attempts: {}", delivery.attempts + 1, failure.problem);
            shared.store.settle_delivery(shared.epoch, delivery, now, Some(&problem)).await
        }
        Err(failure) => {
            let pause = back_off(delivery.attempts);
            debug!(webhook = %delivery.webhook, message = delivery.message, problem = failure.problem, again_in = ?pause, "not told");
            shared.store.postpone_delivery(shared.epoch, delivery, now.plus(pause), &failure.problem).await
        }
    };
    if let Err(failure) = written {
        shared.note(&failure);
        error!(webhook = %delivery.webhook, error = chain(&failure), "could not write down whether a message arrived");
        tokio::time::sleep(FIRST_PAUSE).await;
    }
}

/// Doubles, to the longest.
fn back_off(attempts: u64) -> Duration {
    let doubled = u32::try_from(attempts.min(16)).unwrap_or(16);
    FIRST_PAUSE.saturating_mul(1 << doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_the_longest() {
        let seconds: Vec<u64> = [0, 1, 2, 8, 9, 1000].map(|attempts| back_off(attempts).as_secs()).to_vec();
        assert_eq!(seconds, [1, 2, 4, 256, 300, 300]);
    }
}
