//! Snapshots and forks are refused, with the reason, until they keep what they promise: see [`belljar_ports::Capabilities`] of this engine.

use belljar_ports::RuntimeError;
use belljar_types::IsolationClass;

pub(crate) fn unsupported(verb: &'static str) -> RuntimeError {
    RuntimeError::Unsupported {
        class: IsolationClass::Gvisor,
        verb,
        reason: "this version cannot take checkpoints with runsc; make a new sandbox from the same template instead".to_owned(),
    }
}
