//! What is to be told waits in its order, until its receiver has it.

use belljar_ports::StoreError;
use belljar_types::{Delivery, Message, MessageKind, SandboxId, SandboxState, Timestamp, Webhook, WebhookId};

use crate::bed::{Bed, become_state};

pub(crate) fn message(bed: &Bed, kind: MessageKind, sandbox: &SandboxId, at: u64) -> Message {
    let (project, sandbox) = (bed.project.clone(), sandbox.clone());
    Message { id: format!("msg_{}", WebhookId::random()), kind, project, sandbox, at: Timestamp(at), body: format!("{{\"at\":{at}}}") }
}

async fn add(bed: &Bed, kinds: &[MessageKind]) -> Webhook {
    let webhook = Webhook {
        id: WebhookId::random(),
        project: bed.project.clone(),
        url: "https://example.com/hook".to_owned(),
        kinds: kinds.to_vec(),
        created_at: Timestamp(1),
        delivered_at: None,
        problem: None,
        waiting: 0,
    };
    bed.store.add_webhook(&webhook).await.unwrap();
    webhook
}

async fn due(bed: &Bed, now: u64) -> Vec<Delivery> {
    bed.store.due_deliveries(Timestamp(now), 4).await.unwrap()
}

fn bodies(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.body.as_str()).collect()
}

pub(crate) async fn what_is_told_is_told_in_order_and_once(bed: &Bed) {
    let webhook = add(bed, &[MessageKind::SandboxCreated, MessageKind::SandboxEnded]).await;
    let (one, other) = (SandboxId::random(), SandboxId::random());
    let tell = |kind, sandbox: &SandboxId, at| {
        let message = message(bed, kind, sandbox, at);
        async move { bed.store.tell(bed.epoch, &message).await.unwrap() }
    };
    assert_eq!(tell(MessageKind::SandboxCreated, &one, 10).await, 1);
    assert_eq!(tell(MessageKind::SandboxPaused, &one, 11).await, 0, "nobody asked for it");
    assert_eq!(tell(MessageKind::SandboxEnded, &one, 12).await, 1);
    assert_eq!(tell(MessageKind::SandboxEnded, &other, 13).await, 1);
    assert_eq!(bodies(&due(bed, 20).await), ["{\"at\":10}", "{\"at\":13}"], "of each sandbox the first");

    let first = due(bed, 20).await.remove(0);
    bed.store.postpone_delivery(bed.epoch, &first, Timestamp(50), "it answered 500").await.unwrap();
    assert_eq!(bodies(&due(bed, 20).await), ["{\"at\":13}"], "nothing of a sandbox overtakes what failed");
    assert_eq!(bed.store.next_delivery(Timestamp(20)).await.unwrap(), Some(Timestamp(50)));
    let listed = bed.store.webhooks(&bed.project).await.unwrap();
    assert_eq!((listed[0].waiting, listed[0].problem.as_deref()), (3, Some("it answered 500")));
    let again = due(bed, 50).await.into_iter().find(|delivery| delivery.sandbox == one).unwrap();
    assert_eq!((again.attempts, &again.message), (1, &first.message), "the same message");
    bed.store.settle_delivery(bed.epoch, &again, Timestamp(51), None).await.unwrap();
    let listed = bed.store.webhooks(&bed.project).await.unwrap();
    assert_eq!((listed[0].delivered_at, &listed[0].problem), (Some(Timestamp(51)), &None));
    assert!(bodies(&due(bed, 50).await).contains(&"{\"at\":12}"), "now the next");

    assert!(bed.store.remove_webhook(&bed.project, &webhook.id).await.unwrap());
    assert!(!bed.store.remove_webhook(&bed.project, &webhook.id).await.unwrap());
    assert!(due(bed, 100).await.is_empty());
    bed.store.begin_epoch().await.unwrap();
    let late = bed.store.tell(bed.epoch, &message(bed, MessageKind::SandboxEnded, &one, 60)).await;
    assert!(matches!(late, Err(StoreError::Fenced { .. })), "{late:?}");
}

pub(crate) async fn a_state_and_its_message_are_written_together(bed: &Bed) {
    add(bed, &[]).await;
    let mut sandbox = bed.reserved().await;
    let told = message(bed, MessageKind::SandboxCreated, &sandbox.id, 5);
    let (was, execution) = (sandbox.state, sandbox.execution().clone());
    become_state(&mut sandbox, SandboxState::Running);
    let wrong = bed.store.record_and_tell(bed.epoch, SandboxState::Paused, &execution, &sandbox, &told).await;
    assert!(matches!(wrong, Err(StoreError::Conflict { .. })), "{wrong:?}");
    assert!(due(bed, 9).await.is_empty(), "what was not written is not told");
    bed.store.record_and_tell(bed.epoch, was, &execution, &sandbox, &told).await.unwrap();
    assert_eq!(bed.get(&sandbox).await, Some(sandbox));
    assert_eq!(due(bed, 9).await.iter().map(|delivery| delivery.message.clone()).collect::<Vec<_>>(), [told.id]);
}
