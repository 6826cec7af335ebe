//! Looking through a log: the segments that can hold what is asked for, line by line. What cannot be read is passed over here and told by
//! `verify`, so that a damaged log can still be looked at.

use std::io::ErrorKind;
use std::path::Path;

use belljar_ports::{AuditError, AuditPage, AuditQuery};
use belljar_types::AuditRecord;

use crate::segment::{self, Content};

pub(crate) fn page(directory: &Path, query: &AuditQuery) -> Result<AuditPage, AuditError> {
    let mut page = AuditPage { looked_until: query.after, ..AuditPage::default() };
    let segments = match segment::list(directory) {
        Ok(segments) => segments,
        Err(AuditError::Disk { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(page),
        Err(error) => return Err(error),
    };
    let begin = segments.partition_point(|(first, _)| *first <= query.after.saturating_add(1)).saturating_sub(1);
    for (_, path) in segments.get(begin..).unwrap_or_default() {
        for (line, _) in Content::read(path)?.lines() {
            let Ok(record) = serde_json::from_slice::<AuditRecord>(line) else { continue };
            if record.sequence <= query.after {
                continue;
            }
            if page.records.len() >= query.limit {
                page.more = true;
                return Ok(page);
            }
            page.looked_until = record.sequence;
            if fits(&record, query) {
                page.records.push((record, String::from_utf8_lossy(line).into_owned()));
            }
        }
    }
    Ok(page)
}

fn fits(record: &AuditRecord, query: &AuditQuery) -> bool {
    let event = &record.event;
    query.sandbox.as_ref().is_none_or(|sandbox| event.sandbox.as_ref() == Some(sandbox))
        && (query.kinds.is_empty() || query.kinds.iter().any(|kind| kind == event.action.kind()))
        && query.since.is_none_or(|since| record.at >= since)
        && query.until.is_none_or(|until| record.at < until)
}
