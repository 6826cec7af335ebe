//! Templates: what a project sees, makes and removes.

use std::sync::Arc;

use belljar_ports::{BuildLine, OwnedTemplate, TemplateSource};
use belljar_types::{AuditAction, Phase, ProjectId, Scope, Template, TemplateName};
use tokio::sync::mpsc;

use crate::{Caller, CoreError, Service};

impl Service {
    /// All templates the caller's project sees.
    pub async fn templates(&self, caller: &Caller) -> Result<Vec<OwnedTemplate>, CoreError> {
        caller.require(Scope::Read)?;
        Ok(self.shared.templates.list(&caller.project).await?)
    }

    /// The template of that name which the caller's project sees.
    pub async fn template(&self, caller: &Caller, name: &TemplateName) -> Result<OwnedTemplate, CoreError> {
        let all = self.templates(caller).await?;
        let own = all.iter().find(|owned| owned.template.name == *name && owned.owner.is_some());
        let any = own.or_else(|| all.iter().find(|owned| owned.template.name == *name));
        any.cloned().ok_or_else(|| CoreError::NoTemplate { name: name.clone() })
    }

    /// Makes a template for the caller's project, or for all (`shared`: administrators only).
    pub async fn make_template(
        &self,
        caller: &Caller,
        name: &TemplateName,
        source: TemplateSource,
        shared: bool,
        lines: mpsc::Sender<BuildLine>,
    ) -> Result<Template, CoreError> {
        let (owner, made) = (template_owner(caller, shared)?.cloned(), name.clone());
        self.shared.refuse_if_stopping()?;
        let shared = Arc::clone(&self.shared);
        let making = async move {
            let template = shared.templates.make(owner.as_ref(), &made, source, lines).await?;
            shared.cool(owner.as_ref(), &made).await;
            Ok(template)
        };
        self.recorded(caller, None, action("make", name), making).await
    }

    /// Gives a template of the caller's project, or the server's, one more name in the project; it shares all layers.
    pub async fn name_template(&self, caller: &Caller, name: &TemplateName, more: TemplateName) -> Result<(), CoreError> {
        caller.require(Scope::Templates)?;
        let owned = self.template(caller, name).await?;
        let named = Template { name: more, ..owned.template };
        let (told, shared, project) = (action("name", &named.name), Arc::clone(&self.shared), caller.project.clone());
        let naming = async move {
            shared.templates.put(Some(&project), &named).await?;
            shared.cool(Some(&project), &named.name).await;
            Ok(())
        };
        self.recorded(caller, None, told, naming).await
    }

    /// Makes a template the server's, for all projects, or the caller's project's. It is in the new place before it leaves the old one.
    pub async fn share_template(&self, caller: &Caller, name: &TemplateName, shared: bool) -> Result<(), CoreError> {
        caller.require(Scope::Admin)?;
        let owned = self.template(caller, name).await?;
        let own = Some(caller.project.clone());
        let (verb, from, to) = if shared { ("share", own, None) } else { ("unshare", None, own) };
        let shared = Arc::clone(&self.shared);
        let sharing = async move {
            let _no_sweep = shared.builds.gate.read().await;
            shared.templates.put(to.as_ref(), &owned.template).await?;
            shared.templates.remove(from.as_ref(), &owned.template.name).await?;
            Ok(())
        };
        self.recorded(caller, None, action(verb, name), sharing).await
    }

    /// Removes a template. Sandboxes made from it are not touched.
    pub async fn remove_template(&self, caller: &Caller, name: &TemplateName, shared: bool) -> Result<(), CoreError> {
        let (owner, gone) = (template_owner(caller, shared)?.cloned(), name.clone());
        let shared = Arc::clone(&self.shared);
        let removing = async move {
            let _no_sweep = shared.builds.gate.read().await;
            let removed = shared.templates.remove(owner.as_ref(), &gone).await?;
            shared.cool(owner.as_ref(), &gone).await;
            Ok(removed)
        };
        if self.recorded(caller, None, action("remove", name), removing).await? {
            Ok(())
        } else {
            Err(CoreError::NoTemplate { name: name.clone() })
        }
    }
}

fn template_owner(caller: &Caller, shared: bool) -> Result<Option<&ProjectId>, CoreError> {
    caller.require(if shared { Scope::Admin } else { Scope::Templates })?;
    Ok((!shared).then_some(&caller.project))
}

pub(crate) fn action(verb: &'static str, name: &TemplateName) -> impl Fn(Phase) -> AuditAction + use<> {
    let name = name.to_string();
    move |phase| AuditAction::Template { verb: verb.to_owned(), phase, name: name.clone() }
}
