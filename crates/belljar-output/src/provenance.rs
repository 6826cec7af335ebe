//! Where a result came from, said with the result: whoever reads it next, a model above all, must be able to tell data from instructions.

use belljar_types::{ProcessId, SandboxId};

/// The one degree of trust that anything from a sandbox has.
pub const TRUST: &str = "untrusted";

/// Where output came from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Provenance {
    /// Always [`TRUST`].
    pub trust: &'static str,
    /// The sandbox.
    pub sandbox: SandboxId,
    /// The process that wrote it.
    pub process: ProcessId,
}

impl Provenance {
    /// Output of a process in a sandbox.
    pub fn of(sandbox: SandboxId, process: ProcessId) -> Self {
        Self { trust: TRUST, sandbox, process }
    }
}
