//! Processor time of a sandbox over all its runs.
//!
//! A control group counts from zero and goes when its sandbox is paused, put back or ended. What it had counted is kept in the sandbox's home
//! together with the group's number, before the group goes: whoever is killed in between finds either the group or the note, and knows from
//! the number whether they speak of the same time.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_linux::cgroup::{Cgroup, Tree};
use belljar_types::SandboxId;

use crate::config::Places;
use crate::error::HostError;
use crate::release::{empty, remove};

const FILE: &str = "spent.json";
const NEXT: &str = "spent.json.next";

/// What groups that went had counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
struct Spent {
    /// All groups but the last.
    before: u64,
    /// The last, and what it counted: it may still be there.
    last: Option<(u64, u64)>,
}

impl Spent {
    /// All runs before the group of this number.
    fn before(self, group: u64) -> u64 {
        match self.last {
            Some((last, _)) if last == group => self.before,
            _ => self.in_all(),
        }
    }

    fn in_all(self) -> u64 {
        self.before.saturating_add(self.last.map_or(0, |(_, counted)| counted))
    }
}

/// Processor time of a sandbox since its making, in microseconds.
pub(crate) fn cpu_micros(places: &Places, cgroup: &Cgroup, id: &SandboxId) -> Result<u64, HostError> {
    let spent = read(places, id)?;
    let counted = |source| HostError::Cgroup { operation: "read the counters of", id: id.clone(), source };
    match cgroup.generation().map_err(counted)? {
        None => Ok(spent.in_all()),
        Some(group) => Ok(spent.before(group).saturating_add(cgroup.usage().map_err(counted)?.cpu_micros)),
    }
}

/// Whether a note is on disk when it was written: only a paused sandbox is there after the machine's power went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    Lasting,
    Passing,
}

/// Ends what runs of a sandbox and removes its group, once what it counted is written down. Does nothing if there is none.
pub(crate) fn end_run(places: &Places, tree: &Arc<Tree>, id: &SandboxId, note: Note) -> Result<(), HostError> {
    let cgroup = tree.group(id.as_str());
    if !empty(&cgroup, id)? {
        return Ok(());
    }
    let failed = |source| HostError::Cgroup { operation: "read the counters of", id: id.clone(), source };
    if let Some(group) = cgroup.generation().map_err(failed)? {
        let before = read(places, id)?.before(group);
        let counted = cgroup.usage().map_err(failed)?.cpu_micros;
        write(places, id, Spent { before, last: Some((group, counted)) }, Note::Passing)?;
        remove(&cgroup, id)?;
        // Numbers are used again after a restart of the machine.
        write(places, id, Spent { before: before.saturating_add(counted), last: None }, note)?;
    } else {
        remove(&cgroup, id)?;
    }
    Ok(())
}

fn read(places: &Places, id: &SandboxId) -> Result<Spent, HostError> {
    let failed = |source| HostError::Record { operation: "read what was spent from", id: id.clone(), source };
    match fs::read(places.home(id).join(FILE)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Spent::default()),
        Err(source) => Err(failed(source)),
    }
}

fn write(places: &Places, id: &SandboxId, spent: Spent, note: Note) -> Result<(), HostError> {
    let home: PathBuf = places.home(id);
    match put(&home, spent, note) {
        // The home went first: nobody will ask.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written.map_err(|source| HostError::Record { operation: "write what was spent to", id: id.clone(), source }),
    }
}

fn put(home: &Path, spent: Spent, note: Note) -> io::Result<()> {
    let next = home.join(NEXT);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(&serde_json::to_vec(&spent)?)?;
    if note == Note::Lasting {
        file.sync_all()?;
    }
    fs::rename(next, home.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_the_note_of_it_are_counted_once() {
        let first = Spent::default();
        assert_eq!(first.before(7), 0);
        let noted = Spent { before: first.before(7), last: Some((7, 100)) };
        assert_eq!((noted.before(7), noted.in_all()), (0, 100), "while the group is there it counts itself");
        assert_eq!(noted.before(8), 100, "another group comes on top");
        let again = Spent { before: noted.before(7), last: Some((7, 120)) };
        assert_eq!(again.in_all(), 120, "noting twice is noting once");
        let gone = Spent { before: again.in_all(), last: None };
        assert_eq!((gone.before(7), gone.in_all()), (120, 120), "the number may come again");
    }
}
