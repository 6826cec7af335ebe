//! What sandboxes of every engine share on one host: the pool on disk, network slots, control groups, records, and the
//! way to their agents.
//!
//! ```text
//!   reserve ── record (intent) ─▶ disk with quota ─▶ cgroup with limits ─▶ handed to the engine ─▶ commit
//!   rest ───── record (paused) ─▶ kill cgroup ─▶ slot back;   wake ── the way of reserve, on the disk that is there
//!   release ── kill cgroup ─▶ remove cgroup ─▶ drop disk ─▶ remove record ─▶ slot back to stock
//! ```
//! The record is written before anything else is made and removed after everything else is gone, and everything carries the sandbox's
//! id, so whoever opens the data directory after a crash finds all there is and can finish either way. Nothing here knows an engine.

mod agent;
mod buckets;
mod busy;
mod capacity;
mod checks;
mod config;
mod error;
mod gateway;
mod guest_files;
mod host;
mod inner;
mod making;
mod parcels;
mod pausing;
mod pool;
mod record;
mod records;
mod release;
mod reserve;
mod slot;
mod snapshots;
mod spent;
mod state;
mod tally;
mod tool;
mod volumes;
mod wall_time;

pub use agent::{Agent, Gate, RestoredAgent};
pub use belljar_linux::cgroup::Cgroup;
pub use buckets::Brokers;
pub use capacity::HostRoom;
pub use config::HostConfig;
pub use error::{HostError, is_in_the_way, no_disk_space, no_mount_point};
pub use gateway::{Gateway, NAME_PORT, PROXY_PORT};
pub use guest_files::{renew_boot_files, renew_names, write_boot_files};
pub use host::{Host, Origin, Reservation, ShownVolume};
pub use making::{Making, Makings};
pub use parcels::{Capture, Incoming};
pub use record::{Identity, Paused, Record, RecordState, Stillness};
pub use slot::Slot;
pub use snapshots::{Draft, Snapshot};
pub use tally::TallyFile;
pub use volumes::HostVolumes;
pub use wall_time::{end_at, time_is_up};
