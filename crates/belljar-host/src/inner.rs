//! What a [`Host`](crate::Host) is made of, and how it is put in order when a data directory is opened and closed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use belljar_linux::cgroup::{Layout, Tree};
use belljar_linux::netns::make_private_mount;
use belljar_types::{LayerDigest, SandboxId};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::buckets::Buckets;
use crate::busy::Busy;
use crate::config::{HostConfig, Places};
use crate::error::HostError;
use crate::gateway::Gateway;
use crate::pool::{Pool, make_directory};
use crate::record::{Record, RecordState};
use crate::slot::{Maker, Stock};
use crate::{pausing, records, snapshots};

const LOCK_PATIENCE: Duration = Duration::from_millis(500);

pub(crate) struct Inner {
    pub(crate) config: HostConfig,
    pub(crate) agent_layer: RwLock<Option<LayerDigest>>,
    pub(crate) places: Places,
    pub(crate) layout: Layout,
    pub(crate) tree: Arc<Tree>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) stock: Stock,
    pub(crate) busy: Busy,
    pub(crate) buckets: Buckets,
    buckets_turn: Mutex<()>,
    closed: AtomicBool,
    lock: Mutex<Option<File>>,
}

impl Inner {
    pub(crate) fn open(config: HostConfig) -> Result<Self, HostError> {
        make_directory(&config.data_dir)?;
        let data = config.data_dir.canonicalize();
        let data = data.map_err(|source| HostError::Files { operation: "find", path: config.data_dir.clone(), source })?;
        let places = Places::new(&data);
        let lock = lock(&places.lock)?;
        for directory in [&places.homes, &places.snapshot_homes, &places.run, &places.netns] {
            make_directory(directory)?;
        }
        make_private_mount(&places.netns).map_err(|source| HostError::Files {
            operation: "make a private mount of",
            path: places.netns.clone(),
            source,
        })?;
        let layout = config.cgroup_root.as_deref().map_or_else(Layout::detect, Layout::at).map_err(HostError::Cgroups)?;
        let tree = Tree::open(&layout, &places.name()).map_err(HostError::Cgroups)?;
        let pool = Arc::new(Pool::open(&places, config.pool_bytes)?);
        remove_orphans(&places, &tree, &pool)?;
        pausing::recover(&places, &tree, &pool)?;
        snapshots::remove_unfinished(&places, &pool)?;
        pool.remove_unfinished_volumes(&places.volumes)?;
        let gateway = Gateway::open(&places, config.open_slots > 0, config.filtered_slots > 0)?;
        let owned = all_records(&places)?.into_iter().filter(|record| record.state != RecordState::Paused);
        let owned: BTreeSet<u32> = owned.map(|record| record.slot).collect();
        let maker = Maker::new(places.clone(), gateway.clone());
        let stock = Stock::open(maker, pool.clone(), (config.closed_slots, config.open_slots, config.filtered_slots), &owned)?;
        tracing::info!(instance = places.instance, sandboxes = owned.len(), cgroups = ?layout.kind(), "host open");
        let (busy, closed, lock) = (Busy::default(), AtomicBool::new(false), Mutex::new(Some(lock)));
        let agent_layer = RwLock::new(config.agent_layer.clone());
        let (buckets, buckets_turn) = (Buckets::default(), Mutex::default());
        Ok(Self { config, agent_layer, places, layout, tree, pool, gateway, stock, busy, buckets, buckets_turn, closed, lock })
    }

    /// Held while a bucket's broker is started, so that there is one.
    pub(crate) fn buckets_turn(&self) -> MutexGuard<'_, ()> {
        self.buckets_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to go on after the host was closed.
    pub(crate) fn usable(&self) -> Result<(), HostError> {
        if self.closed.load(Ordering::Acquire) { Err(HostError::Closed) } else { Ok(()) }
    }

    pub(crate) fn records(&self) -> Result<Vec<Record>, HostError> {
        all_records(&self.places)
    }

    pub(crate) fn close_slots(&self) -> Result<(), HostError> {
        // A paused sandbox is in the data directory and nowhere else.
        let sandboxes = self.records()?.iter().filter(|record| record.state != RecordState::Paused).count();
        if sandboxes > 0 {
            return Err(HostError::InUse { sandboxes });
        }
        self.closed.store(true, Ordering::Release);
        self.stock.close()
    }

    pub(crate) fn close_rest(&self) -> Result<(), HostError> {
        let failed =
            |source| HostError::Files { operation: "end the serving of the buckets in", path: self.places.buckets.clone(), source };
        self.close_buckets().map_err(failed)?;
        self.pool.close(&self.places)?;
        self.tree.remove().map_err(HostError::Cgroups)?;
        remove_run_directory(&self.places)?;
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        tracing::info!(instance = self.places.instance, "host closed");
        Ok(())
    }
}

pub(crate) fn all_records(places: &Places) -> Result<Vec<Record>, HostError> {
    let read = |id: &SandboxId| records::read(places, id).transpose();
    records::ids(places)?.iter().filter_map(read).collect()
}

/// Removes what belongs to no record: the record is written first and removed last, so this is what a power cut or a hand left.
fn remove_orphans(places: &Places, tree: &Arc<Tree>, pool: &Pool) -> Result<(), HostError> {
    let mut ids: BTreeSet<SandboxId> = records::ids(places)?.into_iter().collect();
    ids.extend(records::names(&places.subvolumes)?);
    ids.extend(tree.names().map_err(HostError::Cgroups)?.iter().filter_map(|name| name.parse().ok()));
    for id in ids {
        if records::read(places, &id)?.is_none() {
            tracing::warn!(sandbox = %id, "remains without a record found; they are removed");
            crate::release::remove_all_but_slot(places, tree, pool, &id)?;
        }
    }
    Ok(())
}

/// A process that was killed while starting a program shares its lock with that program until its first instruction: worth a moment's patience.
fn lock(path: &Path) -> Result<File, HostError> {
    let failed = |source| HostError::Files { operation: "lock", path: path.to_owned(), source };
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Err(Errno::WOULDBLOCK) => return Err(HostError::Locked { path: path.to_owned() }),
            Err(errno) => return Err(failed(errno.into())),
        }
    }
}

fn remove_run_directory(places: &Places) -> Result<(), HostError> {
    let attempt = || -> io::Result<()> {
        unmount(&places.netns, UnmountFlags::DETACH)?;
        std::fs::remove_dir(&places.netns)?;
        std::fs::remove_dir(&places.run)
    };
    let path: PathBuf = places.run.clone();
    attempt().map_err(|source| HostError::Files { operation: "remove the directory", path, source })
}
