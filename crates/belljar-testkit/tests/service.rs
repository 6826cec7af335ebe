//! Every verb of the service on real engines, a real store and the real templates, with restarts in between.
//!
//! A restart is another `Service` on the same store with engine objects that have made nothing themselves; the older one is left standing, as a
//! server would that was thought dead, and must change nothing any more.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "service/artifacts.rs"]
mod artifacts;
#[path = "service/audit.rs"]
mod audit;
#[path = "service/budgets.rs"]
mod budgets;
#[path = "service/building.rs"]
mod building;
#[path = "service/carrying.rs"]
mod carrying;
#[path = "service/fencing.rs"]
mod fencing;
#[path = "service/keeping_inside.rs"]
mod keeping_inside;
#[path = "service/keys.rs"]
mod keys;
#[path = "service/leases.rs"]
mod leases;
#[path = "service/life.rs"]
mod life;
#[path = "service/once.rs"]
mod once;
#[path = "service/pausing.rs"]
mod pausing;
#[path = "service/recovery.rs"]
mod recovery;
#[path = "service/room.rs"]
mod room;
#[path = "service/scene.rs"]
mod scene;
#[path = "service/snapshots.rs"]
mod snapshots;
#[path = "service/starting.rs"]
mod starting;
#[path = "service/unwritten.rs"]
mod unwritten;
#[path = "service/volumes.rs"]
mod volumes;
#[path = "service/warming.rs"]
mod warming;
