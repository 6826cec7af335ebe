//! The port's verbs, each handed to where it is told.

use async_trait::async_trait;
use belljar_ports::{Once, Page, PageRequest, Reserved, SandboxFilter, Store, StoreError, Unreadable};
use belljar_types::{ApiKey, Epoch, ExecutionId, KeyHash, KeyId, Project, ProjectId, Quota, Sandbox, SandboxId, SandboxState, Timestamp};

use super::{Backend, epochs, keys, pages, projects, sandboxes};

#[async_trait]
impl Store for Backend {
    async fn begin_epoch(&self) -> Result<Epoch, StoreError> {
        epochs::begin(self).await
    }

    async fn reserve(&self, epoch: Epoch, sandbox: &Sandbox, once: Option<&Once>) -> Result<Reserved, StoreError> {
        sandboxes::reserve(self, epoch, sandbox, once).await
    }

    async fn repeated(&self, project: &ProjectId, once: &Once) -> Result<Option<Sandbox>, StoreError> {
        sandboxes::repeated(self, project, once).await
    }

    async fn record(&self, epoch: Epoch, was: SandboxState, execution: &ExecutionId, sandbox: &Sandbox) -> Result<(), StoreError> {
        sandboxes::record(self, epoch, was, execution, sandbox).await
    }

    async fn sandbox(&self, project: &ProjectId, id: &SandboxId) -> Result<Option<Sandbox>, StoreError> {
        sandboxes::find(self, project, id).await
    }

    async fn list(&self, project: &ProjectId, filter: &SandboxFilter, page: &PageRequest) -> Result<Page, StoreError> {
        pages::list(self, project, filter, page).await
    }

    async fn unended(&self) -> Result<(Vec<Sandbox>, Vec<Unreadable>), StoreError> {
        pages::unended(self).await
    }

    async fn forget(&self, epoch: Epoch, before: Timestamp) -> Result<u64, StoreError> {
        sandboxes::forget(self, epoch, before).await
    }

    async fn add_project(&self, project: &Project) -> Result<(), StoreError> {
        projects::add(self, project).await
    }

    async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        projects::all(self).await
    }

    async fn project(&self, id: &ProjectId) -> Result<Option<Project>, StoreError> {
        projects::find(self, id).await
    }

    async fn set_quota(&self, id: &ProjectId, quota: &Quota) -> Result<(), StoreError> {
        projects::set_quota(self, id, quota).await
    }

    async fn remove_project(&self, id: &ProjectId) -> Result<(), StoreError> {
        projects::remove(self, id).await
    }

    async fn add_key(&self, key: &ApiKey, hash: &KeyHash) -> Result<(), StoreError> {
        keys::add(self, key, hash).await
    }

    async fn key_by_hash(&self, hash: &KeyHash) -> Result<Option<ApiKey>, StoreError> {
        keys::by_hash(self, hash).await
    }

    async fn keys(&self, project: Option<&ProjectId>) -> Result<Vec<ApiKey>, StoreError> {
        keys::all(self, project).await
    }

    async fn remove_key(&self, id: &KeyId) -> Result<bool, StoreError> {
        keys::remove(self, id).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        epochs::check(self).await
    }

    async fn close(&self) {
        self.close().await;
    }
}
