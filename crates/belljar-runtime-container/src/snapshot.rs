//! Snapshots and forks are not offered yet, and whoever asks is told so before anything is touched.
//!
//! What they will be made of is there already: a sandbox's root is a list of layers and one upper directory in a subvolume of its own,
//! so a snapshot of its files is that directory renamed into a layer. Memory stays in the kernel, which this class cannot copy.

use belljar_ports::{Capabilities, MemoryState, OomScope, RuntimeError};
use belljar_types::IsolationClass;

pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    pause: Some(MemoryState::Resident),
    snapshot_filesystem: false,
    snapshot_memory: false,
    fork: false,
    oom: OomScope::Process,
    setuid: false,
    xattrs: true,
};

pub(crate) fn unsupported(verb: &'static str) -> RuntimeError {
    let reason = "this version cannot copy what runs in the host's kernel; make a new sandbox from the same template instead".to_owned();
    RuntimeError::Unsupported { class: IsolationClass::Container, verb, reason }
}
