//! A laboratory: one real host with real engines and a real template, shared by the tests of a process.
//!
//! Test files say what they want ([`Lab::sandbox`]) and read like a transcript. Nothing here is a stand-in: sandboxes are made by the
//! same engines that serve users, and [`Census`] counts what they leave on the machine.

mod agreement;
mod ballast;
mod census;
mod lab;
mod run;
pub mod s3;
mod scale;
mod server;
mod small_disk;
mod small_lab;
mod victim;

pub use agreement::agreement;
pub use ballast::Ballast;
pub use census::{Census, Scope};
pub use lab::{Lab, LabError, Sandbox, block_on, host_pids};
pub use run::{Finished, most_memory, path, pattern, run, run_spec, sh, sha256};
pub use scale::{Dice, full, scaled};
pub use server::ServerProcess;
pub use small_disk::SmallDisk;
pub use small_lab::{SmallLab, small_root};
pub use victim::{Killed, kill_engine};
