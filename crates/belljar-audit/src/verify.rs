//! Reading a whole log and saying whether it is as it was written. It finds every change of a byte, everything that was taken out, put in or
//! moved, and an end that was cut off; it changes nothing.

use std::path::Path;

use belljar_ports::{AuditError, AuditVerdict, Checkpoint};
use belljar_types::ProjectId;

use crate::chain::{End, hash_of};
use crate::head::{self, check_signature};
use crate::segment::{self, Content};

/// Faults beyond this many are of no use to anybody.
const MOST_FAULTS: usize = 20;

/// A log as it lies in its directory.
pub(crate) fn directory(directory: &Path, project: &ProjectId, public_key: &str) -> Result<AuditVerdict, AuditError> {
    // The head first: what is written meanwhile comes after it.
    let signed = if directory.exists() { head::read(directory)? } else { Ok(None) };
    let segments = if directory.exists() { segment::list(directory)? } else { Vec::new() };
    let mut check = Check::new(project, signed.as_ref().ok().cloned().flatten());
    check.faults.extend(signed.err());
    let last = segments.len().saturating_sub(1);
    for (index, (first, path)) in segments.iter().enumerate() {
        if *first != check.end.sequence + 1 {
            check.fault(format!("the file {first:020}.jsonl begins at event {first}, and {} is expected", check.end.sequence + 1));
        }
        let content = Content::read(path)?;
        for (line, _) in content.lines() {
            check.line(line);
        }
        let is_being_written = index == last && !content.remainder().contains(&0);
        let is_covered = check.signed.as_ref().is_some_and(|signed| check.end.sequence < signed.sequence);
        if !content.remainder().is_empty() && (!is_being_written || is_covered) {
            check.fault(format!("{} bytes after event {} are not an event", content.remainder().len(), check.end.sequence));
        }
    }
    if let Some(signed) = &check.signed
        && signed.public_key != public_key
    {
        check.fault(format!("the checkpoint at event {} is signed by another key than this server's", signed.sequence));
    }
    if check.signed.is_none() && !segments.is_empty() && check.faults.is_empty() {
        check.fault("its head is gone".to_owned());
    }
    Ok(check.finish())
}

/// A log that was exported: its lines, and the checkpoint that was taken with it or kept elsewhere.
pub fn verify_lines<'a>(project: &ProjectId, lines: impl IntoIterator<Item = &'a [u8]>, checkpoint: Option<Checkpoint>) -> AuditVerdict {
    let mut check = Check::new(project, checkpoint);
    if let Some(fault) = check.signed.as_ref().and_then(|signed| check_signature(signed).err()) {
        check.fault(fault);
    }
    for line in lines {
        check.line(line);
    }
    check.finish()
}

struct Check<'a> {
    project: &'a ProjectId,
    signed: Option<Checkpoint>,
    end: End,
    events: u64,
    covered: bool,
    faults: Vec<String>,
}

impl<'a> Check<'a> {
    fn new(project: &'a ProjectId, signed: Option<Checkpoint>) -> Self {
        let covered = signed.as_ref().is_none_or(|signed| signed.sequence == 0);
        Self { project, signed, end: End::of_nothing(project), events: 0, covered, faults: Vec::new() }
    }

    fn line(&mut self, line: &[u8]) {
        self.events += 1;
        if let Err(fault) = self.end.follow(self.project, line) {
            self.fault(fault);
            // Go on behind it, so that one change is told as one.
            let named = serde_json::from_slice::<belljar_types::AuditRecord>(line).map(|record| record.sequence);
            self.end = End { sequence: named.unwrap_or(self.end.sequence + 1), hash: hash_of(line) };
        }
        if let Some(signed) = &self.signed
            && signed.sequence == self.end.sequence
        {
            self.covered = true;
            if signed.hash != self.end.hash {
                self.fault(format!("event {} is not the one that was signed", self.end.sequence));
            }
        }
    }

    fn fault(&mut self, fault: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        }
    }

    fn finish(mut self) -> AuditVerdict {
        if let (false, Some(signed)) = (self.covered, &self.signed) {
            let fault = format!("it ends at event {}, and {} were signed: the end was cut off", self.end.sequence, signed.sequence);
            self.fault(fault);
        }
        AuditVerdict { events: self.events, checkpoint: self.signed, faults: self.faults }
    }
}
