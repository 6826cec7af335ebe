//! A fresh store with one project in it, and what tests need to fill and to damage it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use belljar_ports::{Order, PageRequest, Reserved, SandboxFilter, Store};
use belljar_types::{
    EndCause, Epoch, IsolationClass, LayerDigest, OnTimeout, Project, ProjectId, Quota, Sandbox, SandboxEnd, SandboxSpec, SandboxState,
    Timestamp,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use crate::postgres_server;

pub(crate) const UNBOUNDED: Quota = Quota { sandboxes: u32::MAX, cpu_millis: u64::MAX, memory_bytes: u64::MAX, disk_bytes: u64::MAX };

pub(crate) struct Bed {
    pub(crate) url: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) epoch: Epoch,
    pub(crate) project: ProjectId,
    _directory: Option<tempfile::TempDir>,
}

impl Bed {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("store.db").display());
        Self::at(url, Some(directory)).await
    }

    pub(crate) async fn postgres() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let database = format!("bed_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        // The first caller waits for the server to start.
        let admin = tokio::task::block_in_place(|| postgres_server::url("postgres"));
        execute(&admin, &format!("CREATE DATABASE {database}")).await;
        Self::at(postgres_server::url(&database), None).await
    }

    async fn at(url: String, directory: Option<tempfile::TempDir>) -> Self {
        let store = belljar_store::open(&url).await.unwrap();
        let epoch = store.begin_epoch().await.unwrap();
        let bed = Self { url, store, epoch, project: "first".parse().unwrap(), _directory: directory };
        bed.add_project("first", UNBOUNDED).await;
        bed
    }

    /// The same store for tasks that outlive the borrow of this one.
    pub(crate) fn shared(&self) -> Self {
        let (url, store, project) = (self.url.clone(), Arc::clone(&self.store), self.project.clone());
        Self { url, store, epoch: self.epoch, project, _directory: None }
    }

    pub(crate) async fn add_project(&self, name: &str, quota: Quota) -> ProjectId {
        let id: ProjectId = name.parse().unwrap();
        self.store.add_project(&Project { id: id.clone(), quota, created_at: Timestamp(1) }).await.unwrap();
        id
    }

    /// A sandbox of the project, in the store, being made.
    pub(crate) async fn reserved(&self) -> Sandbox {
        let sandbox = sandbox(&self.project);
        self.reserve(&sandbox).await;
        sandbox
    }

    pub(crate) async fn reserve(&self, sandbox: &Sandbox) {
        assert_eq!(self.store.reserve(self.epoch, sandbox, None).await.unwrap(), Reserved::New);
    }

    /// Writes the sandbox in its next state.
    pub(crate) async fn advance(&self, sandbox: &mut Sandbox, next: SandboxState) {
        let was = sandbox.state;
        become_state(sandbox, next);
        self.store.record(self.epoch, was, sandbox.execution(), sandbox).await.unwrap();
    }

    pub(crate) async fn get(&self, sandbox: &Sandbox) -> Option<Sandbox> {
        self.store.sandbox(&sandbox.project, &sandbox.id).await.unwrap()
    }

    pub(crate) async fn count(&self) -> usize {
        let all = PageRequest { order: Order::NewestFirst, after: None, limit: 100_000 };
        self.store.list(&self.project, &SandboxFilter::default(), &all).await.unwrap().sandboxes.len()
    }

    /// As before the first start.
    pub(crate) async fn remove_everything(&self) {
        match self.url.strip_prefix("sqlite:") {
            Some(file) => std::fs::remove_file(file).unwrap(),
            None => self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await,
        }
    }

    /// Behind the store's back.
    pub(crate) async fn execute(&self, sql: &str) {
        execute(&self.url, sql).await;
    }
}

async fn execute(url: &str, sql: &str) {
    let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        sql.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    } else {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sql.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// A new sandbox of a project, not yet in any store.
pub(crate) fn sandbox(project: &ProjectId) -> Sandbox {
    let layer: LayerDigest = "a".repeat(64).parse().unwrap();
    let spec = SandboxSpec::on(vec![layer]);
    Sandbox {
        id: spec.id.clone(),
        project: project.clone(),
        asked_with: None,
        state: SandboxState::Creating,
        class: IsolationClass::Gvisor,
        class_reason: "the strongest that works here".to_owned(),
        template: "base".parse().unwrap(),
        spec,
        metadata: BTreeMap::new(),
        created_at: Timestamp(1_000_000),
        started_at: None,
        expires_at: Some(Timestamp(2_000_000)),
        leased_at: Timestamp(1_000_000),
        idle_timeout: Some(Duration::from_millis(1500)),
        on_timeout: OnTimeout::Pause,
        auto_resume: true,
        pause: None,
        stood_still: Duration::ZERO,
        origin: None,
        begins_with: None,
        last_snapshot: None,
        end: None,
    }
}

pub(crate) fn become_state(sandbox: &mut Sandbox, next: SandboxState) {
    sandbox.state = next;
    if next.has_ended() {
        sandbox.end = Some(SandboxEnd { cause: EndCause::Requested, detail: "asked for".to_owned(), at: Timestamp(3_000_000) });
    }
}
