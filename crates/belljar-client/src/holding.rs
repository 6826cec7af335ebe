//! A sandbox that lives as long as whoever made it: its lease is short and renewed, so that it ends soon after a maker that was killed.

use std::convert::Infallible;
use std::time::Duration;

use belljar_types::SandboxId;

use crate::client::Client;

/// The lease to make such a sandbox with.
pub const HELD: Duration = Duration::from_secs(120);

impl Client {
    /// Renews a sandbox's lease for as long as this is waited for. If that fails for all of the lease, whatever works in the sandbox fails too, and says
    /// why.
    pub async fn hold(&self, sandbox: &SandboxId, lease: Duration) -> Infallible {
        loop {
            tokio::time::sleep(lease / 3).await;
            let _ = self.set_lease(sandbox, lease.as_secs(), true).await;
        }
    }
}
