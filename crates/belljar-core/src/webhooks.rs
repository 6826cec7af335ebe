//! Webhooks: verbs for whoever wants to be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_types::{AuditAction, Invalid, MessageKind, Phase, Scope, Secret, Timestamp, Webhook, WebhookId};

use crate::{Caller, CoreError, Service};

/// Most of one project: each is told everything.
const MOST: usize = 20;

impl Service {
    /// Tells an address of the caller's project's sandboxes from now on. The secret, with which a receiver checks messages, is shown once.
    pub async fn add_webhook(&self, caller: &Caller, url: &str, kinds: Vec<MessageKind>) -> Result<(Webhook, Secret<String>), CoreError> {
        caller.require(Scope::Use)?;
        self.shared.courier.check(url)?;
        if self.shared.store.webhooks(&caller.project).await?.len() >= MOST {
            return Err(Invalid::new("url", format!("one of at most {MOST} webhooks of a project; remove one first"), url).into());
        }
        let webhook = Webhook {
            id: WebhookId::random(),
            project: caller.project.clone(),
            url: url.to_owned(),
            kinds,
            created_at: Timestamp::now(),
            delivered_at: None,
            problem: None,
            waiting: 0,
        };
        let (shared, added) = (Arc::clone(&self.shared), webhook.clone());
        let adding = async move { Ok(shared.store.add_webhook(&added).await?) };
        self.recorded(caller, None, action("add_webhook", &webhook.id), adding).await?;
        let secret = self.shared.courier.secret(&webhook.id);
        Ok((webhook, secret))
    }

    /// The webhooks of the caller's project, and how each fares.
    pub async fn webhooks(&self, caller: &Caller) -> Result<Vec<Webhook>, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.store.webhooks(&caller.project).await?)
    }

    /// Tells an address nothing any more. Says whether there was such a webhook.
    pub async fn remove_webhook(&self, caller: &Caller, id: &WebhookId) -> Result<bool, CoreError> {
        caller.require(Scope::Use)?;
        let (shared, project, removed) = (Arc::clone(&self.shared), caller.project.clone(), id.clone());
        let removing = async move { Ok(shared.store.remove_webhook(&project, &removed).await?) };
        self.recorded(caller, None, action("remove_webhook", id), removing).await
    }
}

fn action(verb: &'static str, id: &WebhookId) -> impl Fn(Phase) -> AuditAction + use<> {
    let subject = id.to_string();
    move |phase| AuditAction::Access { verb: verb.to_owned(), phase, subject: subject.clone(), detail: BTreeMap::new() }
}
