//! Checking an export where it lies: the lines, the chain, and the checkpoint at its end.

use std::path::Path;

use belljar_audit::verify_lines;
use belljar_ports::Checkpoint;
use belljar_types::{AuditRecord, ProjectId};
use serde::Deserialize;

use crate::command_error::CommandError;
use crate::screen;

#[derive(Deserialize)]
struct Trailer {
    checkpoint: Checkpoint,
}

pub(super) fn verify(file: &Path, public_key: Option<&str>, json: bool) -> Result<(), CommandError> {
    let text = std::fs::read(file).map_err(CommandError::file("read", file))?;
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let checkpoint = lines.last().and_then(|line| serde_json::from_slice::<Trailer>(line).ok()).map(|trailer| trailer.checkpoint);
    if checkpoint.is_some() {
        lines.pop();
    }
    let first = lines.first().and_then(|line| serde_json::from_slice::<AuditRecord>(line).ok()).map(|record| record.event.project);
    let project: Option<ProjectId> = checkpoint.as_ref().map(|checkpoint| checkpoint.project.clone()).or(first);
    let Some(project) = project else { return Err(damaged("there is neither an event nor a checkpoint in it")) };
    let mut verdict = verify_lines(&project, lines, checkpoint);
    match (&verdict.checkpoint, public_key) {
        (None, _) => verdict.faults.push("there is no checkpoint at its end: what was cut off cannot be told".to_owned()),
        (Some(checkpoint), Some(key)) if !checkpoint.public_key.eq_ignore_ascii_case(key) => {
            verdict.faults.push(format!("its checkpoint is signed by {}, not by the key that was given", checkpoint.public_key));
        }
        _ => {}
    }
    if !verdict.faults.is_empty() {
        return Err(CommandError::AuditDamaged { faults: verdict.faults });
    }
    if json {
        let report = serde_json::json!({ "whole": true, "events": verdict.events, "checkpoint": verdict.checkpoint });
        return Ok(screen::json(&report)?);
    }
    let signer = verdict.checkpoint.map(|checkpoint| checkpoint.public_key).unwrap_or_default();
    Ok(screen::line(&format!("whole: {} events of project {project}, signed by {signer}", verdict.events))?)
}

fn damaged(fault: &str) -> CommandError {
    CommandError::AuditDamaged { faults: vec![fault.to_owned()] }
}
