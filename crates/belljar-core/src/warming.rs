//! Warm templates: sandboxes that begin with the memory of one that was ready.
//!
//! ```text
//!   first create ─► boots ─► starts what its template starts ─► ready ─► snapshot with memory, kept for the template ─► runs
//!   later ones   ─► engine.fork of it: its processes run already; environment, id, secret and disk are their own
//! ```
//! The image is taken before anybody could use the sandbox, and only of one that was given no environment and no host name, so it holds
//! nothing of any caller's. It belongs to one project and one template, and is used only for sandboxes that would have been made the same;
//! a template that is made anew or removed takes it along. If a sandbox cannot begin with it, it is made in the ordinary way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use belljar_ports::{Capabilities, RuntimeError, SnapshotKind};
use belljar_types::{
    Beginning, Execution, Limits, PrivilegePolicy, ProjectId, Sandbox, SandboxSpec, Snapshot, SnapshotPurpose, SnapshotState, TemplateName,
};
use tracing::{info, warn};

use crate::chain;
use crate::keeping::Taking;
use crate::owner::Owner;
use crate::shared::Shared;

/// The images there are, by project and template.
#[derive(Default)]
pub(crate) struct Warm {
    images: Mutex<HashMap<(ProjectId, TemplateName), Arc<Snapshot>>>,
}

impl Warm {
    /// From now on the template's sandboxes begin with this.
    pub(crate) fn put(&self, image: &Snapshot) {
        self.lock().insert((image.project.clone(), image.template.clone()), Arc::new(image.clone()));
    }

    /// What a new sandbox can begin with, if there is an image of one that would have been made the same.
    pub(crate) fn for_new(&self, sandbox: &Sandbox, engine: Capabilities) -> Option<Beginning> {
        if !is_wanted(&sandbox.spec) || !engine.snapshot_memory || !sandbox.spec.volumes.is_empty() {
            return None;
        }
        let images = self.lock();
        let image = images.get(&(sandbox.project.clone(), sandbox.template.clone()))?;
        let same = image.class == sandbox.class && made_the_same(&image.spec, &sandbox.spec);
        same.then(|| Beginning { snapshot: image.id.clone(), memory: true, together: None })
    }

    fn has(&self, sandbox: &Sandbox) -> bool {
        self.lock().get(&(sandbox.project.clone(), sandbox.template.clone())).is_some_and(|image| of_the_same(&image.spec, &sandbox.spec))
    }

    fn take(&self, so: impl Fn(&ProjectId, &TemplateName) -> bool) -> Vec<Arc<Snapshot>> {
        self.lock().extract_if(|(project, template), _| so(project, template)).map(|(_, image)| image).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ProjectId, TemplateName), Arc<Snapshot>>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_wanted(spec: &SandboxSpec) -> bool {
    spec.defaults.start.as_ref().is_some_and(|start| start.warm)
}

/// Whether both come from the same state of a template.
fn of_the_same(one: &SandboxSpec, other: &SandboxSpec) -> bool {
    one.layers == other.layers && one.defaults == other.defaults
}

/// Whether the memory of one could be that of the other: the agent in it knows who may be root, and the engine how much memory there is.
fn made_the_same(one: &SandboxSpec, other: &SandboxSpec) -> bool {
    let agreed = |spec: &SandboxSpec| -> (PrivilegePolicy, Limits) { (spec.privilege, Limits { wall_time: None, ..spec.limits.clone() }) };
    of_the_same(one, other) && agreed(one) == agreed(other)
}

impl Owner {
    /// Whether it begins with its template's image.
    pub(crate) fn is_warm(&self) -> bool {
        self.sandbox.begins_with.is_some() && self.sandbox.origin.is_none()
    }

    /// Makes it in the ordinary way, and drops the image that it could not begin with.
    pub(crate) async fn start_cold(&mut self, failure: RuntimeError) -> Result<Execution, RuntimeError> {
        // A host that is full is full for every way.
        if let RuntimeError::Exhausted { .. } = failure {
            return Err(failure);
        }
        warn!(sandbox = %self.sandbox.id, template = %self.sandbox.template, error = chain(&failure), "a sandbox could not begin with its template's memory; it boots");
        let (project, template) = (self.sandbox.project.clone(), self.sandbox.template.clone());
        self.shared.drop_images(self.shared.warm.take(|of, named| *of == project && *named == template)).await;
        self.sandbox.begins_with = None;
        self.runtime.create(&self.sandbox.spec).await
    }

    /// Keeps the memory of a sandbox that is ready and that nobody has used yet, if its template wants that and has no image.
    pub(crate) async fn keep_warm(&mut self) {
        let spec = &self.sandbox.spec;
        let nobodys = spec.env.is_empty() && spec.hostname.is_none() && spec.volumes.is_empty() && self.sandbox.origin.is_none();
        let can = self.runtime.capabilities().snapshot_memory && self.shared.admission.disk_for_a_snapshot().is_ok();
        if !is_wanted(spec) || !nobodys || !can || self.shared.warm.has(&self.sandbox) {
            return;
        }
        let taking = Taking { name: None, kind: Some(SnapshotKind::Memory), purpose: SnapshotPurpose::Warm, lifetime: None };
        let kept = async {
            let taken = self.take_snapshot(taking).await?;
            let warm = Snapshot { state: SnapshotState::Warm, stood_still: Duration::ZERO, ..taken };
            self.shared.store.record_snapshot(self.shared.epoch, SnapshotState::Making, &warm).await?;
            Ok::<_, crate::CoreError>(warm)
        };
        match kept.await {
            Ok(image) => {
                let (project, template) = (&image.project, &image.template);
                self.shared.drop_images(self.shared.warm.take(|of, named| of == project && named == template)).await;
                self.shared.warm.put(&image);
                info!(template = %image.template, project = %image.project, snapshot = %image.id, bytes = image.bytes, "kept a template's memory");
            }
            Err(failure) => {
                warn!(template = %self.sandbox.template, error = chain(&failure), "could not keep a template's memory; its sandboxes boot");
            }
        }
    }
}

impl Shared {
    /// Drops the images of a template that changed: of one project's, or of the server's, which every project may have used.
    pub(crate) async fn cool(self: &Arc<Self>, owner: Option<&ProjectId>, name: &TemplateName) {
        self.drop_images(self.warm.take(|project, template| template == name && owner.is_none_or(|owner| owner == project))).await;
    }

    /// Drops all images of a project.
    pub(crate) async fn cool_all(self: &Arc<Self>, of: &ProjectId) {
        self.drop_images(self.warm.take(|project, _| project == of)).await;
    }

    pub(crate) async fn drop_images(self: &Arc<Self>, images: Vec<Arc<Snapshot>>) {
        for image in images {
            if let Err(failure) = self.remove_snapshot((*image).clone()).await {
                warn!(snapshot = %image.id, error = chain(&failure), "could not remove a template's memory; the next start does");
            }
        }
    }
}
