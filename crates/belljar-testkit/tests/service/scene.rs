//! A service in the laboratory: its store, its administrator, and the means to start it again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use belljar_audit::AuditLog;
use belljar_core::{
    Caller, CoreError, CreateSandbox, NewKeyRequest, Parts, Service, ServiceConfig, SharedKernel, SweepOptions, fresh_secret,
};
use belljar_host::{Host, HostRoom, TallyFile};
use belljar_image::{Catalog, CatalogOptions, LayerStore};
use belljar_parcel::HostParcels;
use belljar_ports::{Audit, Blobs, Runtime, Store, Tallies};
use belljar_store::SqliteStore;
use belljar_testkit::Lab;
use belljar_types::{IsolationClass, IsolationRequest, Sandbox, SandboxId, Scope};
use belljar_webhook::{Postman, Reach};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) const CONTAINER: &[IsolationClass] = &[IsolationClass::Container];
pub(crate) const BOTH: &[IsolationClass] = &[IsolationClass::Container, IsolationClass::Gvisor];

/// Whoever removes what its store does not know would remove the sandboxes of every other test.
static MACHINE: RwLock<()> = RwLock::const_new(());

/// Beside other tests, none of which removes orphans.
pub(crate) async fn among_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().await
}

/// Alone on the laboratory's host.
pub(crate) async fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().await
}

/// A running service and what it stands on.
pub(crate) struct Scene {
    pub(crate) lab: &'static Lab,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) service: Arc<Service>,
    pub(crate) admin: Caller,
    pub(crate) config: ServiceConfig,
    pub(crate) audit: Arc<AuditLog>,
    tallies: Arc<TallyFile>,
    blobs: Arc<dyn Blobs>,
    directory: tempfile::TempDir,
}

impl Scene {
    /// A service with these engines on a new store.
    pub(crate) async fn open(classes: &[IsolationClass]) -> Self {
        Self::with(classes, settings()).await
    }

    /// The same with settings of its own.
    pub(crate) async fn with(classes: &[IsolationClass], config: ServiceConfig) -> Self {
        let lab = Lab::get().await;
        let directory = tempfile::tempdir().unwrap();
        let blobs = Arc::new(belljar_blobs::open_directory(&directory.path().join("blobs")).unwrap());
        Self::on(Ground::of(lab, classes, blobs), config, directory).await
    }

    /// The same with blobs that others use too.
    pub(crate) async fn sharing(classes: &[IsolationClass], blobs: Arc<dyn Blobs>) -> Self {
        let lab = Lab::get().await;
        Self::on(Ground::of(lab, classes, blobs), settings(), tempfile::tempdir().unwrap()).await
    }

    /// The same on any host.
    pub(crate) async fn on(ground: Ground, config: ServiceConfig, directory: tempfile::TempDir) -> Self {
        let lab = Lab::get().await;
        let store = Arc::new(SqliteStore::open(&directory.path().join("belljar.db")).await.unwrap());
        let audit = Arc::new(AuditLog::open(&directory.path().join("audit")).unwrap());
        let tallies = Arc::new(TallyFile::open(directory.path()).unwrap());
        let blobs = Arc::clone(&ground.blobs);
        let service = start(ground, &store, &audit, &tallies, config.clone()).await;
        let secret = fresh_secret();
        assert!(service.bootstrap(&secret).await.unwrap());
        let admin = service.authenticate(secret.reveal()).await.unwrap();
        Self { lab, store, service, admin, config, audit, tallies, blobs, directory }
    }

    /// Another server takes over; the one before is returned, still standing.
    pub(crate) async fn restart(&mut self, classes: &[IsolationClass]) -> Arc<Service> {
        let ground = Ground::of(self.lab, classes, Arc::clone(&self.blobs));
        let next = start(ground, &self.store, &self.audit, &self.tallies, self.config.clone()).await;
        std::mem::replace(&mut self.service, next)
    }

    /// Where the service keeps what is its own.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Where the audit log is.
    pub(crate) fn audit_directory(&self) -> PathBuf {
        self.directory.path().join("audit")
    }

    /// Opens a copy of the audit log, because the server before still has its own: the next restart writes there. `change` is done to the files of
    /// the administrator's project first.
    pub(crate) fn reopen_the_log(&mut self, change: impl FnOnce(&Path)) {
        let (from, to) = (self.audit_directory(), self.directory.path().join("audit-again"));
        let project = self.admin.project.as_str();
        std::fs::create_dir_all(to.join(project)).unwrap();
        std::fs::copy(from.join("signing-key"), to.join("signing-key")).unwrap();
        for entry in std::fs::read_dir(from.join(project)).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(project).join(entry.file_name())).unwrap();
        }
        change(&to.join(project));
        self.audit = Arc::new(AuditLog::open(&to).unwrap());
    }

    /// The file the store is in.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.path().join("belljar.db")
    }

    /// A key of a project, which is made if there is none.
    pub(crate) async fn caller(&self, project: &str, scopes: &[Scope]) -> Caller {
        let made = self.service.add_project(&self.admin, project.parse().unwrap(), None).await;
        assert!(made.is_ok() || made.unwrap_err().code() == "exists");
        let request = NewKeyRequest {
            project: project.parse().unwrap(),
            scopes: scopes.iter().copied().collect(),
            label: "of a test".to_owned(),
            lifetime: None,
        };
        let key = self.service.add_key(&self.admin, request).await.unwrap();
        self.service.authenticate(key.secret.reveal()).await.unwrap()
    }

    /// A container with defaults.
    pub(crate) async fn container(&self) -> Arc<Sandbox> {
        self.create(container()).await
    }

    /// A sandbox of the administrator's.
    pub(crate) async fn create(&self, request: CreateSandbox) -> Arc<Sandbox> {
        self.service.create(&self.admin, request).await.unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)))
    }

    /// A sandbox as the administrator sees it.
    pub(crate) async fn show(&self, id: &SandboxId) -> Arc<Sandbox> {
        self.service.sandbox(&self.admin, id).await.unwrap()
    }

    /// Waits for a sandbox's end.
    pub(crate) async fn ended(&self, id: &SandboxId) -> Arc<Sandbox> {
        until(|| async { self.show(id).await.state.has_ended() }).await;
        self.show(id).await
    }

    /// Ends all of these.
    pub(crate) async fn kill(&self, ids: impl IntoIterator<Item = &SandboxId>) {
        for id in ids {
            self.service.kill(&self.admin, id).await.unwrap();
        }
    }

    /// Whether anything of a sandbox is on the host.
    pub(crate) async fn is_on_the_host(&self, class: IsolationClass, id: &SandboxId) -> bool {
        self.lab.second_runtime(class).inventory().await.unwrap().iter().any(|found| found.id == *id)
    }
}

/// Settings for tests that run beside others: nothing of theirs is ever an orphan.
pub(crate) fn settings() -> ServiceConfig {
    ServiceConfig { shared_kernel: SharedKernel::Allowed, orphan_grace: Duration::from_secs(3600), ..ServiceConfig::default() }
}

/// A clean-up that removes nothing.
pub(crate) const ONLY_LOOK: SweepOptions = SweepOptions { dry_run: true, orphans: false };
/// One that removes what the store does not know, too.
pub(crate) const ORPHANS: SweepOptions = SweepOptions { dry_run: false, orphans: true };

/// A container, with room on a small machine for many.
pub(crate) fn container() -> CreateSandbox {
    of_class(IsolationClass::Container)
}

pub(crate) fn of_class(class: IsolationClass) -> CreateSandbox {
    CreateSandbox { isolation: Some(IsolationRequest::Exactly(class)), ..CreateSandbox::default() }
}

/// What a service stands on, and where its blobs are.
pub(crate) struct Ground {
    pub(crate) host: Arc<Host>,
    pub(crate) data_dir: PathBuf,
    pub(crate) engines: Vec<Arc<dyn Runtime>>,
    pub(crate) blobs: Arc<dyn Blobs>,
}

impl Ground {
    fn of(lab: &Lab, classes: &[IsolationClass], blobs: Arc<dyn Blobs>) -> Self {
        let engines = classes.iter().map(|class| lab.second_runtime(*class)).collect();
        Self { host: Arc::clone(&lab.host), data_dir: lab.data_dir.clone(), engines, blobs }
    }
}

async fn start(
    ground: Ground,
    store: &Arc<SqliteStore>,
    audit: &Arc<AuditLog>,
    tallies: &Arc<TallyFile>,
    config: ServiceConfig,
) -> Arc<Service> {
    let Ground { host, data_dir, engines, blobs } = ground;
    let layers = LayerStore::open(host.pool_directory()).unwrap();
    let parts = Parts {
        store: Arc::clone(store) as Arc<dyn Store>,
        engines,
        parcels: Arc::new(HostParcels::new(Arc::clone(&host), layers.clone())),
        templates: Arc::new(Catalog::new(layers, CatalogOptions::default())),
        volumes: Arc::new(host.volumes()),
        blobs,
        capacity: Arc::new(HostRoom::new(&data_dir).unwrap()),
        tallies: Arc::clone(tallies) as Arc<dyn Tallies>,
        courier: Arc::new(Postman::new([7; 32], Reach::default()).unwrap()),
        audit: Arc::clone(audit) as Arc<dyn Audit>,
        egress: None,
        tapes: None,
        secrets: None,
        config,
    };
    Service::start(parts).await.unwrap()
}

/// What a refusal is called.
#[track_caller]
pub(crate) fn code<T>(result: Result<T, CoreError>) -> &'static str {
    match result {
        Ok(_) => panic!("it was done"),
        Err(error) => error.code(),
    }
}

/// Waits for something that has to come.
pub(crate) async fn until<F: Future<Output = bool>>(mut so: impl FnMut() -> F) {
    for _ in 0..1200 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited a minute for something that did not come");
}
