//! The chain: a record is a line of JSON that carries the SHA-256 of the line before. Changing, taking away or moving any byte breaks the link
//! to the next line, and the last line is held by the signed head.
//!
//! The hash is made of the bytes as they stand in the file, so that nobody has to agree on how JSON is written to check one.

use belljar_ports::AuditError;
use belljar_types::{AuditEvent, AuditRecord, ProjectId, Timestamp, hex};
use sha2::{Digest, Sha256};

/// What the first record of a log carries as the hash before it: logs of two projects cannot be exchanged.
pub fn start_hash(project: &ProjectId) -> String {
    hex(&Sha256::digest(format!("belljar audit 1 {project}")))
}

/// The hash of a record, from its line without the line break.
pub fn hash_of(line: &[u8]) -> String {
    hex(&Sha256::digest(line))
}

/// Where a log ends: what the next record is linked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) sequence: u64,
    pub(crate) hash: String,
}

impl End {
    pub(crate) fn of_nothing(project: &ProjectId) -> Self {
        Self { sequence: 0, hash: start_hash(project) }
    }

    /// Appends an event's line to `lines` and moves on to it.
    pub(crate) fn append(&mut self, event: AuditEvent, at: Timestamp, lines: &mut Vec<u8>) -> Result<(), AuditError> {
        let record = AuditRecord { sequence: self.sequence + 1, at, previous: self.hash.clone(), event };
        let line = serde_json::to_vec(&record).map_err(|error| AuditError::Encode(error.into()))?;
        self.hash = hash_of(&line);
        self.sequence += 1;
        lines.extend_from_slice(&line);
        lines.push(b'\n');
        Ok(())
    }

    /// Moves on to a line that is there already, or says what is wrong with it.
    pub(crate) fn follow(&mut self, project: &ProjectId, line: &[u8]) -> Result<AuditRecord, String> {
        let expected = self.sequence + 1;
        let record: AuditRecord = serde_json::from_slice(line)
            .map_err(|_| format!("event {expected} cannot be read: its bytes are not those that were written"))?;
        if record.sequence != expected {
            return Err(format!("event {expected} is missing: {} stands in its place", record.sequence));
        }
        if record.previous != self.hash {
            return Err(format!("event {expected} does not follow from the one before it: one of the two was changed"));
        }
        if record.event.project != *project {
            return Err(format!("event {expected} is from the log of another project"));
        }
        self.sequence = expected;
        self.hash = hash_of(line);
        Ok(record)
    }
}
