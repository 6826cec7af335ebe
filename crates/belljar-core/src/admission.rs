//! Admission: what the host cannot hold is answered "busy" before anything is made, instead of being made and then thrashing.
//!
//! Three gates, cheapest first: how many sandboxes there are and the sum of their memory limits (promises, may be more than the host has),
//! what the host really has left now (memory, disk), and how many are being made at this moment.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_ports::Capacity;
use belljar_types::{Invalid, Limits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{CoreError, ServiceConfig};

const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(5);

/// Keeps count of what was promised to live sandboxes.
pub(crate) struct Admission {
    capacity: Arc<dyn Capacity>,
    promised: Mutex<Promised>,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    max_waiting: usize,
    max_sandboxes: u32,
    overcommit_percent: u32,
    memory_reserve: u64,
    disk_reserve: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Promised {
    sandboxes: u32,
    memory_bytes: u64,
}

/// A sandbox's place on the host, given back when dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    memory_bytes: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut promised = self.admission.lock();
        promised.sandboxes -= 1;
        promised.memory_bytes -= self.memory_bytes;
    }
}

impl Admission {
    pub(crate) fn new(config: &ServiceConfig, capacity: Arc<dyn Capacity>) -> Arc<Self> {
        Arc::new(Self {
            capacity,
            promised: Mutex::default(),
            turns: Arc::new(Semaphore::new(config.creates_at_once.max(1))),
            waiting: AtomicUsize::new(0),
            max_waiting: config.creates_waiting,
            max_sandboxes: config.max_sandboxes,
            overcommit_percent: config.memory_overcommit_percent,
            memory_reserve: config.memory_reserve_bytes,
            disk_reserve: config.disk_reserve_bytes,
        })
    }

    /// Takes a place for a new sandbox, or says what is short.
    pub(crate) fn admit(self: &Arc<Self>, limits: &Limits) -> Result<Place, CoreError> {
        match self.capacity.room() {
            Ok(room) => {
                let needed = limits.memory_bytes.min(self.memory_reserve);
                if room.memory_available_bytes < self.memory_reserve.saturating_add(needed) {
                    return Err(busy(format!("only {} MiB of memory are left on the host", room.memory_available_bytes >> 20), LATER));
                }
                if room.disk_available_bytes < self.disk_reserve {
                    return Err(busy(format!("only {} MiB of disk are left on the host", room.disk_available_bytes >> 20), LATER));
                }
                let most = u128::from(room.memory_total_bytes) * u128::from(self.overcommit_percent) / 100;
                if u128::from(limits.memory_bytes) > most {
                    let expected = format!("at most {} MiB, which is all that this host gives to sandboxes", most >> 20);
                    return Err(Invalid::new("limits.memory_bytes", expected, limits.memory_bytes.to_string()).into());
                }
                let promised = self.lock().memory_bytes;
                if u128::from(promised) + u128::from(limits.memory_bytes) > most {
                    let asked = limits.memory_bytes >> 20;
                    let reason =
                        format!("{} MiB of memory are promised, with {asked} more it would be over {} MiB", promised >> 20, most >> 20);
                    return Err(busy(reason, LATER));
                }
            }
            Err(error) => return Err(busy(format!("the host cannot tell what is left ({error})"), LATER)),
        }
        if self.lock().sandboxes >= self.max_sandboxes {
            return Err(busy(format!("{} sandboxes are there, which is the most", self.max_sandboxes), LATER));
        }
        Ok(self.take(limits))
    }

    /// Refuses a snapshot that the host's disk has no room for.
    pub(crate) fn disk_for_a_snapshot(&self) -> Result<(), CoreError> {
        match self.capacity.room() {
            Ok(room) if room.disk_available_bytes < self.disk_reserve => {
                Err(busy(format!("only {} MiB of disk are left on the host", room.disk_available_bytes >> 20), LATER))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(busy(format!("the host cannot tell what is left ({error})"), LATER)),
        }
    }

    /// Takes a place for a sandbox that exists already, whether there is room or not.
    pub(crate) fn take(self: &Arc<Self>, limits: &Limits) -> Place {
        let mut promised = self.lock();
        promised.sandboxes += 1;
        promised.memory_bytes += limits.memory_bytes;
        Place { admission: Arc::clone(self), memory_bytes: limits.memory_bytes }
    }

    /// Waits for a turn to make a sandbox, unless too many wait already.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, CoreError> {
        if let Ok(permit) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(permit);
        }
        let waiting = Waiting::enter(&self.waiting);
        if waiting.before >= self.max_waiting {
            return Err(busy(format!("{} requests wait to be made already", waiting.before), SOON));
        }
        Arc::clone(&self.turns).acquire_owned().await.map_err(|_closed| CoreError::Stopping)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Promised> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request in the queue, whether it gets its turn or goes away.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        Self { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn busy(reason: String, retry_after: Duration) -> CoreError {
    CoreError::Busy { reason, retry_after }
}

#[cfg(test)]
mod tests {
    use belljar_ports::Room;

    use super::*;

    struct Left(Room);
    impl Capacity for Left {
        fn room(&self) -> std::io::Result<Room> {
            Ok(self.0)
        }
    }

    fn host(available: u64, disk: u64) -> Arc<Left> {
        Arc::new(Left(Room { memory_total_bytes: 8 << 30, memory_available_bytes: available, disk_available_bytes: disk }))
    }

    fn reason(result: Result<Place, CoreError>) -> String {
        match result {
            Err(CoreError::Busy { reason, .. }) => reason,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was admitted"),
        }
    }

    #[test]
    fn a_full_host_says_what_is_short() {
        let config = ServiceConfig { max_sandboxes: 2, memory_overcommit_percent: 100, ..ServiceConfig::default() };
        let limits = Limits::default();
        assert!(reason(Admission::new(&config, host(100 << 20, 1 << 40)).admit(&limits)).contains("100 MiB of memory"));
        assert!(reason(Admission::new(&config, host(8 << 30, 5 << 20)).admit(&limits)).contains("5 MiB of disk"));
        let roomy = Admission::new(&config, host(8 << 30, 1 << 40));
        let first = roomy.admit(&limits).unwrap();
        let large = Limits { memory_bytes: 8 << 30, ..Limits::default() };
        assert!(reason(roomy.admit(&large)).contains("promised"));
        let _second = roomy.admit(&limits).unwrap();
        assert!(reason(roomy.admit(&limits)).contains("2 sandboxes"));
        drop(first);
        assert!(roomy.admit(&limits).is_ok());
    }

    #[test]
    fn what_the_host_could_never_hold_is_no_reason_to_wait() {
        let config = ServiceConfig { memory_overcommit_percent: 100, ..ServiceConfig::default() };
        let large = Limits { memory_bytes: 9 << 30, ..Limits::default() };
        let Err(CoreError::Invalid(invalid)) = Admission::new(&config, host(8 << 30, 1 << 40)).admit(&large) else {
            panic!("it was not refused as invalid")
        };
        assert_eq!(invalid.field, "limits.memory_bytes");
        assert!(invalid.to_string().contains("at most 8192 MiB"), "{invalid}");
    }

    #[tokio::test]
    async fn the_queue_is_bounded_and_whoever_leaves_it_makes_room() {
        let config = ServiceConfig { creates_at_once: 1, creates_waiting: 1, ..ServiceConfig::default() };
        let admission = Admission::new(&config, host(8 << 30, 1 << 40));
        let turn = admission.turn().await.unwrap();
        let mut waits = Box::pin(admission.turn());
        assert!(futures_util::poll!(&mut waits).is_pending());
        assert!(matches!(admission.turn().await, Err(CoreError::Busy { .. })));
        drop(waits);
        let mut again = Box::pin(admission.turn());
        assert!(futures_util::poll!(&mut again).is_pending());
        drop(turn);
        assert!(again.await.is_ok());
    }
}
