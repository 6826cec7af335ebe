//! What a guest can bring about must not fill the log: each sandbox may cause so many lines a second and no more.

use belljar_types::SandboxId;

use crate::bucket::{Buckets, Rate};

/// Allows a sandbox ten lines at once and one a second.
pub struct GuestLog(Buckets<SandboxId>);

impl GuestLog {
    /// Whether a line about this sandbox may be written now.
    pub fn may_say(&self, sandbox: &SandboxId) -> bool {
        self.0.take(sandbox.clone()).is_ok()
    }
}

impl Default for GuestLog {
    fn default() -> Self {
        Self(Buckets::new(Rate { per_second: 1.0, burst: 10.0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_noisy_sandbox_does_not_silence_another() {
        let log = GuestLog::default();
        let (noisy, quiet) = (SandboxId::random(), SandboxId::random());
        let said = (0..1000).filter(|_| log.may_say(&noisy)).count();
        assert!((10..=20).contains(&said), "{said}");
        assert!(log.may_say(&quiet));
    }
}
