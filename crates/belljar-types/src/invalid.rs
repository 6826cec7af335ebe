//! Refused input. One shape everywhere, so that every front can say which field was wrong, what was expected and what came.

use crate::escape_untrusted;

/// A value that was refused, and why. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}, got {got}")]
pub struct Invalid {
    /// The field as the caller knows it, dotted for nested ones: `limits.memory`.
    pub field: String,
    /// What would have been accepted.
    pub expected: String,
    /// What came, shortened and made safe to print.
    pub got: String,
}

impl Invalid {
    /// Refuses `got`, which may be hostile text, for `field`.
    pub fn new(field: impl Into<String>, expected: impl Into<String>, got: impl AsRef<[u8]>) -> Self {
        const SHOWN: usize = 80;
        let got = got.as_ref();
        let mut shown = format!("\"{}\"", escape_untrusted(&got[..got.len().min(SHOWN)]));
        if got.len() > SHOWN {
            shown.push_str(&format!("… ({} bytes)", got.len()));
        }
        Self { field: field.into(), expected: expected.into(), got: shown }
    }
}
