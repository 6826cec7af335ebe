//! One project's log, open for writing: where it ends, and how it is taken up again after any end of the server.
//!
//! | at the end of the log | what is done |
//! |---|---|
//! | whole lines up to the signed head or beyond | taken up; those beyond the head were written and perhaps not yet acknowledged |
//! | half a line after all that the head covers | it was never acknowledged: cut off, and the cut is an event |
//! | anything else that does not fit | reported, and left exactly as it is: nothing is written to this log until somebody has looked |

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use belljar_ports::{AuditError, Checkpoint};
use belljar_types::{Actor, AuditAction, AuditEvent, ProjectId, Timestamp};

use crate::chain::End;
use crate::head::{self, Head};
use crate::key::SigningKey;
use crate::segment::{self, Content, Segment};

pub(crate) struct ProjectLog {
    project: ProjectId,
    directory: PathBuf,
    head: Head,
    segment: Segment,
    end: End,
}

impl ProjectLog {
    /// Takes up a log, or begins one.
    pub(crate) fn open(root: &Path, project: &ProjectId, key: &SigningKey) -> Result<Self, AuditError> {
        let directory = root.join(project.as_str());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|source| AuditError::Disk { operation: "make the directory of", path: directory.clone(), source })?;
        let damaged = |detail| AuditError::Damaged { project: project.clone(), detail };
        let signed = head::read(&directory)?.map_err(damaged)?;
        let segments = segment::list(&directory)?;
        let head = Head::open_or_make(&directory)?;
        let Some((first, path)) = segments.last() else {
            return match signed {
                Some(signed) if signed.sequence > 0 => Err(damaged(format!("all {} events are gone", signed.sequence))),
                _ => Self::begin(root, directory, project, key, head),
            };
        };
        let Some(signed) = signed else { return Err(damaged("its head is gone".to_owned())) };
        if signed.public_key != key.public() {
            return Err(damaged("its head is signed by another key than this server's".to_owned()));
        }
        let content = Content::read(path)?;
        let (end, length) = Self::walk(project, *first, &content, &signed).map_err(damaged)?;
        let mut segment = Segment::open(&directory, *first, length)?;
        let remainder = content.remainder();
        let log = if remainder.is_empty() {
            Self { project: project.clone(), directory, head, segment, end }
        } else {
            segment.cut()?;
            let detail = format!("cut off {} bytes of an event that was being written when the server ended", remainder.len());
            let mut log = Self { project: project.clone(), directory, head, segment, end };
            let action = AuditAction::Log { detail };
            log.append(key, vec![AuditEvent { project: project.clone(), sandbox: None, actor: Actor::default(), action }])?;
            log
        };
        log.settle(key)?;
        Ok(log)
    }

    fn begin(root: &Path, directory: PathBuf, project: &ProjectId, key: &SigningKey, head: Head) -> Result<Self, AuditError> {
        let end = End::of_nothing(project);
        head.write(&head::sign(key, project, &end))?;
        head.sync()?;
        let segment = Segment::open(&directory, 1, 0)?;
        segment::sync_directory(root)?;
        Ok(Self { project: project.clone(), directory, head, segment, end })
    }

    /// Follows the last segment to its end, and compares that with the head. The segments before it are for `verify`.
    fn walk(project: &ProjectId, first: u64, content: &Content, signed: &Checkpoint) -> Result<(End, u64), String> {
        let mut end = if first == 1 { End::of_nothing(project) } else { End { sequence: first.saturating_sub(1), hash: String::new() } };
        let mut length = 0;
        let mut covered = signed.sequence + 1 == first || signed.sequence == 0;
        for (line, ends_at) in content.lines() {
            if end.hash.is_empty() {
                // The link to the segment before is checked by `verify`; here it is taken as given.
                let record: belljar_types::AuditRecord =
                    serde_json::from_slice(line).map_err(|_| format!("event {first} cannot be read"))?;
                end.hash = record.previous;
            }
            end.follow(project, line)?;
            length = ends_at;
            if end.sequence == signed.sequence {
                if end.hash != signed.hash {
                    return Err(format!("event {} is not the one that was signed", end.sequence));
                }
                covered = true;
            }
        }
        if end.hash.is_empty() {
            end.hash = signed.hash.clone();
        }
        if !covered || end.sequence < signed.sequence {
            return Err(format!("it ends at event {}, and {} were signed: the end was cut off", end.sequence, signed.sequence));
        }
        Ok((end, length))
    }

    /// Writes events down; nobody may be told before [`Self::settle`]. If either fails, the log must be opened anew.
    pub(crate) fn append(&mut self, key: &SigningKey, events: Vec<AuditEvent>) -> Result<(), AuditError> {
        if self.segment.is_full() {
            self.segment.cut()?;
            self.head.write(&head::sign(key, &self.project, &self.end))?;
            self.head.sync()?;
            self.segment = Segment::open(&self.directory, self.end.sequence + 1, 0)?;
        }
        let at = Timestamp::now();
        let mut lines = Vec::with_capacity(events.len() * 512);
        let mut end = self.end.clone();
        for event in events {
            end.append(event, at, &mut lines)?;
        }
        self.segment.append(&lines)?;
        self.end = end;
        Ok(())
    }

    /// Brings what was written to the disk, and signs for it. The signature is made while the disk works, and written when it is done: the head is
    /// never ahead of the disk.
    pub(crate) fn settle(&self, key: &SigningKey) -> Result<(), AuditError> {
        self.segment.begin_sync();
        let checkpoint = head::sign(key, &self.project, &self.end);
        self.segment.sync()?;
        self.head.write(&checkpoint)
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.end.sequence
    }
}
