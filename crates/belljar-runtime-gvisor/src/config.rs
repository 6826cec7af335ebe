//! What an operator decides about this engine.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of the gVisor engine.
#[derive(Debug, Clone)]
pub struct GvisorConfig {
    /// The `runsc` to use. When unset: the one on `PATH` if it is new enough, else the one that `scripts/install-runsc` installs.
    pub runsc: Option<PathBuf>,
    /// Let the sentry open files itself instead of asking the gofer. Small files become up to twice as fast, but the sentry then holds
    /// the capabilities and the root directory that it otherwise does without.
    pub direct_files: bool,
    /// How long a start may take, on a busy machine too.
    pub start_limit: Duration,
}

impl Default for GvisorConfig {
    fn default() -> Self {
        Self { runsc: None, direct_files: false, start_limit: Duration::from_secs(60) }
    }
}
