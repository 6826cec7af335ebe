//! Secrets of a project, for whoever has a key of it: kept, named, replaced, forgotten. Nobody can read a value back.

use std::collections::BTreeMap;

use belljar_ports::{Before, SecretInfo, Secrets, SecretsError};
use belljar_types::{AuditAction, Invalid, Phase, Scope, Secret, audit_text};

use crate::shared::Shared;
use crate::{Caller, CoreError, Service};

impl Service {
    /// Keeps a new secret.
    pub async fn add_secret(
        &self,
        caller: &Caller,
        name: &str,
        value: Secret<String>,
        metadata: BTreeMap<String, String>,
    ) -> Result<SecretInfo, CoreError> {
        self.put_secret(caller, "add_secret", name.to_owned(), value, Some(metadata), Before::Nothing).await
    }

    /// Replaces the value of a secret, found by its id or name. Metadata that is unset stays.
    pub async fn change_secret(
        &self,
        caller: &Caller,
        which: &str,
        value: Secret<String>,
        metadata: Option<BTreeMap<String, String>>,
    ) -> Result<SecretInfo, CoreError> {
        let name = self.secret(caller, which).await?.name;
        self.put_secret(caller, "change_secret", name, value, metadata, Before::Older).await
    }

    /// What is known of a secret, found by its id or name.
    pub async fn secret(&self, caller: &Caller, which: &str) -> Result<SecretInfo, CoreError> {
        let found = self.secrets(caller).await?.into_iter().find(|info| info.id == which || info.name == which);
        found.ok_or_else(|| SecretsError::Missing { name: audit_text(which.as_bytes()) }.into())
    }

    /// All secrets of the caller's project, by name.
    pub async fn secrets(&self, caller: &Caller) -> Result<Vec<SecretInfo>, CoreError> {
        caller.require(Scope::Use)?;
        let project = caller.project.clone();
        self.shared.in_the_vault(move |secrets| secrets.all(&project)).await
    }

    /// Forgets a secret, found by its id or name. Requests that need it are refused from now on.
    pub async fn remove_secret(&self, caller: &Caller, which: &str) -> Result<(), CoreError> {
        let name = self.secret(caller, which).await?.name;
        let action = access("remove_secret", &name);
        let project = caller.project.clone();
        self.recorded(caller, None, action, self.shared.in_the_vault(move |secrets| secrets.remove(&project, &name))).await
    }

    async fn put_secret(
        &self,
        caller: &Caller,
        verb: &'static str,
        name: String,
        value: Secret<String>,
        metadata: Option<BTreeMap<String, String>>,
        before: Before,
    ) -> Result<SecretInfo, CoreError> {
        caller.require(Scope::Use)?;
        let action = access(verb, &name);
        let project = caller.project.clone();
        let put = self.shared.in_the_vault(move |secrets| secrets.put(&project, &name, &value, metadata, before));
        self.recorded(caller, None, action, put).await
    }
}

impl Shared {
    /// Small files, and still files: not on a thread that serves others.
    pub(crate) fn in_the_vault<T: Send + 'static, W: FnOnce(&dyn Secrets) -> Result<T, SecretsError> + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, CoreError>> + Send + use<T, W> {
        let secrets = self.secrets.clone();
        async move {
            let none = || Invalid::new("secrets", "a server that keeps secrets", "one that does not");
            let secrets = secrets.ok_or_else(none)?;
            let done = tokio::task::spawn_blocking(move || work(&*secrets)).await;
            Ok(done.map_err(|_stopped| CoreError::Stopping)??)
        }
    }
}

fn access(verb: &'static str, name: &str) -> impl Fn(Phase) -> AuditAction + use<> {
    let subject = audit_text(name.as_bytes());
    move |phase| AuditAction::Access { verb: verb.to_owned(), phase, subject: subject.clone(), detail: BTreeMap::new() }
}
