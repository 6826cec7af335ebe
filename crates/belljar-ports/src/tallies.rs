//! [`Tallies`]: what only the server counts, kept where its own death does not reach.
//!
//! Processor time and disk are counted by the kernel and can be asked again. What was started and what was carried is known to the server
//! alone, and to write each of them into the store would cost more than doing it. A tally outlives the process, not the machine: when that
//! goes, so do its sandboxes, and what is missing is what was counted since the last reading in the store.

use std::io;

use belljar_types::{SandboxId, Tally};

/// The tallies of all live sandboxes of a host.
pub trait Tallies: Send + Sync {
    /// Keeps what was counted of a sandbox so far. Takes microseconds: it is called for every process started.
    fn keep(&self, sandbox: &SandboxId, tally: &Tally) -> io::Result<()>;

    /// What was kept of a sandbox.
    fn kept(&self, sandbox: &SandboxId) -> Option<Tally>;

    /// Whose tallies are kept.
    fn sandboxes(&self) -> Vec<SandboxId>;

    /// Drops what was kept of a sandbox.
    fn drop_tally(&self, sandbox: &SandboxId) -> io::Result<()>;
}
