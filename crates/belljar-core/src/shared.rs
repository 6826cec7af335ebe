//! What every part of the service holds: the adapters, the settings, and the sandboxes that live.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belljar_ports::{Blobs, Courier, Egress, Parcels, Runtime, Secrets, Store, StoreError, Tapes, Templates, Volumes};
use belljar_types::{EngineReport, Epoch, IsolationClass, Sandbox, SandboxId};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::activity::Activity;
use crate::admission::Admission;
use crate::building::Builds;
use crate::changes::News;
use crate::metering::{Counts, Meters};
use crate::owner::Order;
use crate::recorded::Told;
use crate::recording::Recorder;
use crate::statistics::Counters;
use crate::warming::Warm;
use crate::{CoreError, Parts, ServiceConfig};

/// An engine and what its probe found.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) report: EngineReport,
}

/// How to reach the owner of a live sandbox.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) view: watch::Receiver<Arc<Sandbox>>,
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) told: Arc<Told>,
    pub(crate) counts: Counts,
    pub(crate) runtime: Arc<dyn Runtime>,
}

/// Held by the service and by every owner.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engines: Vec<Engine>,
    pub(crate) templates: Arc<dyn Templates>,
    pub(crate) volumes: Arc<dyn Volumes>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) parcels: Arc<dyn Parcels>,
    pub(crate) egress: Option<Arc<dyn Egress>>,
    pub(crate) secrets: Option<Arc<dyn Secrets>>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) audit: Recorder,
    /// Where terminals are recorded, if they are.
    pub(crate) tapes: Option<Arc<dyn Tapes>>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) courier: Arc<dyn Courier>,
    /// What becomes of sandboxes.
    pub(crate) news: News,
    /// Rung when something was entered that is to be told.
    pub(crate) tellings: Arc<Notify>,
    pub(crate) config: ServiceConfig,
    pub(crate) epoch: Epoch,
    pub(crate) counters: Counters,
    pub(crate) builds: Builds,
    /// What templates' sandboxes begin with.
    pub(crate) warm: Warm,
    /// Rung when a snapshot was taken that is to expire.
    pub(crate) expiries: Arc<Notify>,
    /// Work that must not be cut off by a graceful stop: makings and endings.
    pub(crate) unfinished: TaskTracker,
    live: Mutex<HashMap<SandboxId, Handle>>,
    stopping: AtomicBool,
    fenced: watch::Sender<Option<(u64, u64)>>,
}

impl Shared {
    /// `engines` are those of `parts`, probed.
    pub(crate) fn new(parts: Parts, engines: Vec<Engine>, meters: Meters, epoch: Epoch) -> Self {
        let unfinished = TaskTracker::new();
        Self {
            admission: Admission::new(&parts.config, parts.capacity),
            audit: Recorder::new(parts.audit, parts.config.audit_required, unfinished.clone()),
            tapes: parts.tapes,
            store: parts.store,
            engines,
            templates: parts.templates,
            volumes: parts.volumes,
            blobs: parts.blobs,
            parcels: parts.parcels,
            egress: parts.egress,
            secrets: parts.secrets,
            meters: Arc::new(meters),
            courier: parts.courier,
            news: News::default(),
            tellings: Arc::default(),
            config: parts.config,
            epoch,
            counters: Counters::default(),
            builds: Builds::default(),
            warm: Warm::default(),
            expiries: Arc::default(),
            unfinished,
            live: Mutex::default(),
            stopping: AtomicBool::new(false),
            fenced: watch::Sender::new(None),
        }
    }

    pub(crate) fn engine(&self, class: IsolationClass) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.report.class == class)
    }

    pub(crate) fn handle(&self, id: &SandboxId) -> Option<Handle> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn insert(&self, id: SandboxId, handle: Handle) {
        self.lock().insert(id, handle);
    }

    pub(crate) fn remove(&self, id: &SandboxId) {
        self.lock().remove(id);
    }

    /// All that live, as they are now.
    pub(crate) fn views(&self) -> Vec<Arc<Sandbox>> {
        self.lock().values().map(|handle| Arc::clone(&handle.view.borrow())).collect()
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn refuse_if_stopping(&self) -> Result<(), CoreError> {
        if self.stopping.load(Ordering::Acquire) { Err(CoreError::Stopping) } else { Ok(()) }
    }

    /// Notes whether a refused write means that another server has taken over.
    pub(crate) fn note(&self, error: &StoreError) {
        if let StoreError::Fenced { current, ours } = error {
            self.fenced.send_replace(Some((*current, *ours)));
        }
    }

    /// Whether another server has taken over the store.
    pub(crate) fn is_fenced(&self) -> bool {
        self.fenced.borrow().is_some()
    }

    /// Waits until another server has taken over the store.
    pub(crate) async fn fenced(&self) -> StoreError {
        let mut changes = self.fenced.subscribe();
        loop {
            if let Some((current, ours)) = *changes.borrow_and_update() {
                return StoreError::Fenced { current, ours };
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, Handle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
