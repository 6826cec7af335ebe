//! Templates: what a project sees, makes and removes.

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
        let owner = template_owner(caller, shared)?;
        self.shared.refuse_if_stopping()?;
        let making = async {
            let made = self.shared.templates.make(owner, name, source, lines).await?;
            self.shared.cool(owner, name).await;
            Ok(made)
        };
        self.recorded(caller, None, template("make", name), making).await
    }

    /// Gives a template of the caller's project, or the server's, one more name in the project; it shares all layers.
    pub async fn name_template(&self, caller: &Caller, name: &TemplateName, more: TemplateName) -> Result<(), CoreError> {
        caller.require(Scope::Templates)?;
        let owned = self.template(caller, name).await?;
        let template = Template { name: more, ..owned.template };
        self.shared.templates.put(Some(&caller.project), &template).await?;
        self.shared.cool(Some(&caller.project), &template.name).await;
        Ok(())
    }

    /// Makes a template the server's, for all projects, or the caller's project's. It is in the new place before it leaves the old one.
    pub async fn share_template(&self, caller: &Caller, name: &TemplateName, shared: bool) -> Result<(), CoreError> {
        caller.require(Scope::Admin)?;
        let owned = self.template(caller, name).await?;
        let _no_sweep = self.shared.builds.gate.read().await;
        let (from, to) = if shared { (Some(&caller.project), None) } else { (None, Some(&caller.project)) };
        self.shared.templates.put(to, &owned.template).await?;
        self.shared.templates.remove(from, name).await?;
        Ok(())
    }

    /// Removes a template. Sandboxes made from it are not touched.
    pub async fn remove_template(&self, caller: &Caller, name: &TemplateName, shared: bool) -> Result<(), CoreError> {
        let owner = template_owner(caller, shared)?;
        let removing = async {
            let _no_sweep = self.shared.builds.gate.read().await;
            let removed = self.shared.templates.remove(owner, name).await?;
            self.shared.cool(owner, name).await;
            Ok(removed)
        };
        if self.recorded(caller, None, template("remove", name), removing).await? {
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

fn template(verb: &'static str, name: &TemplateName) -> impl Fn(Phase) -> AuditAction + use<> {
    let name = name.to_string();
    move |phase| AuditAction::Template { verb: verb.to_owned(), phase, name: name.clone() }
}
