//! Work that may block, on threads that are few: a slow filesystem delays files, never the agent.

use belljar_guest_protocol::Failure;

/// Threads for all blocking work.
pub(crate) const THREADS: usize = 8;

/// Runs `work` on one of those threads; what is returned waits for it. Without a wait it goes on all the same.
pub(crate) fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> impl Future<Output = Result<T, Failure>> {
    let started = tokio::task::spawn_blocking(work);
    async { started.await.unwrap_or_else(|_| Err(Failure::refused(5, "the agent failed in this operation"))) }
}
