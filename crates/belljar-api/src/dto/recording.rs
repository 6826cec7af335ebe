//! Recorded terminals on the wire.

use serde::Serialize;
use utoipa::ToSchema;

/// A recorded terminal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Recording)]
pub(crate) struct RecordingView {
    /// The process whose terminal it is.
    pub(crate) process: String,
    /// When it began.
    pub(crate) began_at: String,
    /// Its size as asciicast.
    pub(crate) bytes: u64,
}

/// The recorded terminals of a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordingList {
    /// Oldest first.
    pub(crate) recordings: Vec<RecordingView>,
}
