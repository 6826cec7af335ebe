//! The stock of free slots: taken at once, refilled and cleaned by one thread in the background.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use belljar_types::Network;

use crate::error::HostError;
use crate::pool::Pool;
use crate::slot::{KINDS, MOST_SLOTS, Maker, Slot};

/// The kernel takes dropped disks apart at its own pace; asking for each of them after every release would cost more than the release.
const QUOTA_INTERVAL: Duration = Duration::from_secs(5);

/// How long `settle` waits for the kernel to take dropped disks apart.
const DROPPING: Duration = Duration::from_secs(5);

enum Job {
    /// Make as many as are wanted.
    Fill,
    /// Make some if few are left.
    Refill,
    Clean(u32, Network),
    Settle(tokio::sync::oneshot::Sender<()>),
}

#[derive(Default)]
struct Numbers {
    closed: Vec<u32>,
    open: Vec<u32>,
    filtered: Vec<u32>,
    /// Every number of which anything is there: free, taken, being made or being cleaned.
    in_use: BTreeSet<u32>,
}

impl Numbers {
    fn free(&mut self, network: Network) -> &mut Vec<u32> {
        match network {
            Network::None => &mut self.closed,
            Network::Open => &mut self.open,
            Network::Filtered => &mut self.filtered,
        }
    }

    fn allocate(&mut self) -> Option<u32> {
        let number = (0..MOST_SLOTS).find(|number| !self.in_use.contains(number))?;
        self.in_use.insert(number);
        Some(number)
    }

    fn give_up(&mut self, number: u32) {
        self.in_use.remove(&number);
    }
}

struct Shared {
    maker: Maker,
    pool: Arc<Pool>,
    numbers: Mutex<Numbers>,
    closed_wanted: usize,
    open_wanted: usize,
    filtered_wanted: usize,
}

pub(crate) struct Stock {
    shared: Arc<Shared>,
    worker: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

impl Stock {
    /// Takes over what is on the host: slots that records own stay as they are, all others are cleaned or destroyed.
    pub(crate) fn open(maker: Maker, pool: Arc<Pool>, wanted: (u32, u32, u32), owned: &BTreeSet<u32>) -> Result<Self, HostError> {
        let size = |count: u32| usize::try_from(count.min(MOST_SLOTS)).unwrap_or(0);
        let numbers = Mutex::new(Numbers { in_use: owned.clone(), ..Numbers::default() });
        let (closed_wanted, open_wanted, filtered_wanted) = (size(wanted.0), size(wanted.1), size(wanted.2));
        let shared = Arc::new(Shared { maker, pool, numbers, closed_wanted, open_wanted, filtered_wanted });
        let (jobs, todo) = channel();
        for remains in shared.maker.remains()?.into_iter().filter(|remains| !owned.contains(&remains.number)) {
            shared.lock().in_use.insert(remains.number);
            match remains.network {
                Some(network) => drop(jobs.send(Job::Clean(remains.number, network))),
                None => shared.destroy(remains.number),
            }
        }
        drop(jobs.send(Job::Fill));
        let working = shared.clone();
        let thread = std::thread::Builder::new().name("belljar-slots".into()).spawn(move || working.work(&todo));
        let thread = thread.map_err(|source| HostError::Gateway { operation: "start the thread of the slots", source })?;
        Ok(Self { shared, worker: Mutex::new(Some((jobs, thread))) })
    }

    /// A slot for a new sandbox: from stock if there is one, else made now.
    pub(crate) fn take(&self, network: Network) -> Result<Slot, HostError> {
        if network == Network::Open && self.shared.open_wanted == 0 {
            return Err(HostError::OpenNetworkDisabled);
        }
        if network == Network::Filtered && self.shared.filtered_wanted == 0 {
            return Err(HostError::FilteredNetworkDisabled);
        }
        let ready = self.shared.lock().free(network).pop();
        let number = match ready {
            Some(number) => number,
            None => {
                let number = self.shared.lock().allocate().ok_or(HostError::Exhausted { resource: "network slots" })?;
                self.shared.maker.make(number, network).inspect_err(|_| self.shared.lock().give_up(number))?;
                number
            }
        };
        self.tell(Job::Refill);
        Ok(self.shared.maker.slot(number, network))
    }

    /// Takes back the slot of a sandbox that is gone.
    pub(crate) fn give_back(&self, number: u32, network: Network) {
        self.tell(Job::Clean(number, network));
    }

    /// What a slot of this number looks like.
    pub(crate) fn slot(&self, number: u32, network: Network) -> Slot {
        self.shared.maker.slot(number, network)
    }

    /// How many free slots there are: closed, open, filtered.
    pub(crate) fn free(&self) -> (usize, usize, usize) {
        let numbers = self.shared.lock();
        (numbers.closed.len(), numbers.open.len(), numbers.filtered.len())
    }

    /// Returns when all background work so far is done.
    pub(crate) async fn settle(&self) {
        let (done, wait) = tokio::sync::oneshot::channel();
        self.tell(Job::Settle(done));
        // An error says that the worker is gone, and so is its work.
        let _ = wait.await;
    }

    /// Ends the background work and destroys all free slots.
    pub(crate) fn close(&self) -> Result<(), HostError> {
        self.stop();
        let mut numbers = self.shared.lock();
        for (_, network) in KINDS {
            while let Some(number) = numbers.free(network).pop() {
                self.shared.maker.destroy(number)?;
                numbers.give_up(number);
            }
        }
        Ok(())
    }

    /// Lets the worker finish what it was told and waits for its end.
    fn stop(&self) {
        if let Some((jobs, thread)) = self.lock_worker().take() {
            drop(jobs);
            let _ = thread.join();
        }
    }

    fn tell(&self, job: Job) {
        if let Some((jobs, _)) = &*self.lock_worker() {
            // The worker only ends after the sender is dropped.
            let _ = jobs.send(job);
        }
    }

    fn lock_worker(&self) -> MutexGuard<'_, Option<(Sender<Job>, JoinHandle<()>)>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever opens the data directory next must not meet a thread that still works on its slots.
impl Drop for Stock {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn work(&self, todo: &Receiver<Job>) {
        let mut looked = Instant::now();
        loop {
            match todo.recv_timeout(QUOTA_INTERVAL) {
                Ok(Job::Fill) => self.fill(),
                Ok(Job::Refill) => self.refill(),
                Ok(Job::Clean(number, network)) => self.take_back(number, network),
                Ok(Job::Settle(done)) => {
                    self.refill();
                    self.finish_dropping();
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if looked.elapsed() >= QUOTA_INTERVAL {
                self.pool.remove_dropped_quotas();
                looked = Instant::now();
            }
        }
    }

    /// Waits, within reason, until the kernel has taken dropped disks apart.
    fn finish_dropping(&self) {
        let deadline = Instant::now() + DROPPING;
        while self.pool.remove_dropped_quotas() > 0 && Instant::now() < deadline {
            // Each commit sets the kernel's cleaner going again.
            if self.pool.sync().is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wanted(&self, network: Network) -> usize {
        match network {
            Network::None => self.closed_wanted,
            Network::Open => self.open_wanted,
            Network::Filtered => self.filtered_wanted,
        }
    }

    /// Waits until half the stock is gone: if each one taken were replaced at once, each one given back would be one too many, and slots
    /// would be made and destroyed all the time instead of being used again.
    fn refill(&self) {
        let low = |network| self.lock().free(network).len() < self.wanted(network).div_ceil(2);
        if KINDS.iter().any(|(_, network)| low(*network)) {
            self.fill();
        }
    }

    fn fill(&self) {
        for (_, network) in KINDS {
            while self.lock().free(network).len() < self.wanted(network) {
                let Some(number) = self.lock().allocate() else { return };
                if let Err(error) = self.maker.make(number, network) {
                    let cause = std::error::Error::source(&error);
                    tracing::warn!(slot = number, %error, ?cause, "a network slot could not be made; the next sandbox tries again");
                    self.lock().give_up(number);
                    return;
                }
                self.lock().free(network).push(number);
            }
        }
    }

    fn take_back(&self, number: u32, network: Network) {
        if self.lock().free(network).len() >= self.wanted(network) {
            return self.destroy(number);
        }
        match self.maker.clean(number, network) {
            Ok(()) => {
                tracing::debug!(slot = number, "network slot cleaned");
                self.lock().free(network).push(number);
            }
            Err(error) => {
                tracing::warn!(slot = number, %error, cause = ?std::error::Error::source(&error), "a network slot could not be cleaned and is destroyed");
                self.destroy(number);
                self.fill();
            }
        }
    }

    /// A number whose slot cannot be destroyed stays in use: it is never given to anybody.
    fn destroy(&self, number: u32) {
        match self.maker.destroy(number) {
            Ok(()) => self.lock().give_up(number),
            Err(error) => {
                tracing::error!(slot = number, %error, cause = ?std::error::Error::source(&error), "a network slot could not be destroyed");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
