//! [`TallyFile`]: one place of 64 bytes for each live sandbox, written in place.
//!
//! A write of so little is whole or not there when the process is killed, and costs about a microsecond: the kernel has it, the disk gets it
//! when it likes. A place that makes no sense, as after a power cut, is taken for an empty one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use belljar_ports::Tallies;
use belljar_types::{SandboxId, Tally};

const NAME: &str = "tallies";
const PLACE: usize = 64;
/// The id comes first, padded with zeros; then three numbers.
const ID: usize = 40;
const NUMBER: usize = 8;

/// The tallies of a data directory.
#[derive(Debug)]
pub struct TallyFile {
    file: File,
    places: Mutex<PlacesInUse>,
}

#[derive(Debug, Default)]
struct PlacesInUse {
    of: HashMap<SandboxId, (u64, Tally)>,
    free: Vec<u64>,
    next: u64,
}

impl TallyFile {
    /// Opens the tallies of a data directory, or begins them.
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(data_dir.join(NAME))?;
        let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        let mut places = PlacesInUse::default();
        for place in bytes.chunks_exact(PLACE) {
            let number = places.next;
            places.next += 1;
            match read(place) {
                Some((id, tally)) => drop(places.of.insert(id, (number, tally))),
                None => places.free.push(number),
            }
        }
        Ok(Self { file, places: Mutex::new(places) })
    }

    fn lock(&self) -> MutexGuard<'_, PlacesInUse> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tallies for TallyFile {
    fn keep(&self, sandbox: &SandboxId, tally: &Tally) -> io::Result<()> {
        let mut places = self.lock();
        let number = match places.of.get(sandbox) {
            Some((number, _)) => *number,
            None => places.free.last().copied().unwrap_or(places.next),
        };
        self.file.write_all_at(&written(sandbox, tally)?, number * PLACE as u64)?;
        if places.of.insert(sandbox.clone(), (number, *tally)).is_none() && places.free.pop().is_none() {
            places.next += 1;
        }
        Ok(())
    }

    fn kept(&self, sandbox: &SandboxId) -> Option<Tally> {
        self.lock().of.get(sandbox).map(|(_, tally)| *tally)
    }

    fn sandboxes(&self) -> Vec<SandboxId> {
        self.lock().of.keys().cloned().collect()
    }

    fn drop_tally(&self, sandbox: &SandboxId) -> io::Result<()> {
        let mut places = self.lock();
        if let Some((number, _)) = places.of.get(sandbox).copied() {
            self.file.write_all_at(&[0; PLACE], number * PLACE as u64)?;
            places.of.remove(sandbox);
            places.free.push(number);
        }
        Ok(())
    }
}

fn written(sandbox: &SandboxId, tally: &Tally) -> io::Result<[u8; PLACE]> {
    let mut place = [0; PLACE];
    let (id, numbers) = place.split_at_mut(ID);
    let text = sandbox.as_str().as_bytes();
    let room = id.get_mut(..text.len()).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the id is too long for its place"))?;
    room.copy_from_slice(text);
    for (room, number) in numbers.chunks_exact_mut(NUMBER).zip([tally.executions, tally.egress_bytes, tally.ingress_bytes]) {
        room.copy_from_slice(&number.to_le_bytes());
    }
    Ok(place)
}

fn read(place: &[u8]) -> Option<(SandboxId, Tally)> {
    let (id, numbers) = place.split_at_checked(ID)?;
    let text = id.split(|byte| *byte == 0).next()?;
    let id = std::str::from_utf8(text).ok()?.parse().ok()?;
    let mut numbers = numbers.chunks_exact(NUMBER).filter_map(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let tally = Tally { executions: numbers.next()?, egress_bytes: numbers.next()?, ingress_bytes: numbers.next()? };
    Some((id, tally))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_for_whoever_opens_it_next() {
        let directory = tempfile::tempdir().unwrap();
        let ids: Vec<SandboxId> = (0..3).map(|_| SandboxId::random()).collect();
        let tally = |executions| Tally { executions, egress_bytes: 2, ingress_bytes: u64::MAX };
        let file = TallyFile::open(directory.path()).unwrap();
        for (id, number) in ids.iter().zip(1..) {
            file.keep(id, &tally(number)).unwrap();
            file.keep(id, &tally(number * 10)).unwrap();
        }
        file.drop_tally(&ids[1]).unwrap();
        file.drop_tally(&ids[1]).unwrap();
        // Not closed: whoever is killed closes nothing.
        let next = TallyFile::open(directory.path()).unwrap();
        assert_eq!(ids.iter().map(|id| next.kept(id)).collect::<Vec<_>>(), [Some(tally(10)), None, Some(tally(30))]);
        let newcomer = SandboxId::random();
        next.keep(&newcomer, &tally(4)).unwrap();
        let length = std::fs::metadata(directory.path().join(NAME)).unwrap().len();
        assert_eq!(length, 3 * PLACE as u64, "the place of one that went is used again");
        assert_eq!(TallyFile::open(directory.path()).unwrap().kept(&newcomer), Some(tally(4)));
    }

    #[test]
    fn nonsense_is_an_empty_place() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(NAME), [0xff; PLACE + 7]).unwrap();
        let file = TallyFile::open(directory.path()).unwrap();
        let id = SandboxId::random();
        file.keep(&id, &Tally { executions: 1, ..Tally::default() }).unwrap();
        assert_eq!(TallyFile::open(directory.path()).unwrap().kept(&id).map(|tally| tally.executions), Some(1));
    }
}
