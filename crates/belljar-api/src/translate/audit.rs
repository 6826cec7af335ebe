//! The audit log's words.

use belljar_core::Checkpoint;

use crate::dto::CheckpointView;

pub(crate) fn checkpoint_view(checkpoint: &Checkpoint) -> CheckpointView {
    CheckpointView {
        project: checkpoint.project.to_string(),
        seq: checkpoint.sequence,
        hash: checkpoint.hash.clone(),
        at: checkpoint.at.0,
        public_key: checkpoint.public_key.clone(),
        signature: checkpoint.signature.clone(),
    }
}
