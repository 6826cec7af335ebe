//! [`TapeDirectory`]: what terminals showed, one file each, as asciicast of version 2: a line of JSON about the terminal, then a line for whatever
//! happened. A line is written whole or not at all, so that a tape can be played up to wherever the server was killed.

mod shelf;

use std::collections::{HashMap, HashSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use belljar_ports::{KeptTapes, TapeInfo, TapeName, Tapes};
use belljar_types::{ProjectId, PtySize, SandboxId, Timestamp, escape_untrusted};
use serde_json::json;

/// A tape ends at this size: nobody inside can fill the disk with it.
const LONGEST: u64 = 16 << 20;
const EXTENSION: &str = "cast";

/// The tapes of a data directory: a directory a project, a directory a sandbox, a file a terminal.
pub struct TapeDirectory {
    root: PathBuf,
    running: Mutex<HashMap<TapeName, Running>>,
}

/// A tape that is being recorded.
struct Running {
    file: File,
    began: Instant,
    written: u64,
    /// The beginning of a character whose end has not come yet.
    rest: Vec<u8>,
}

impl TapeDirectory {
    /// The tapes below a directory, which is made when the first begins.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), running: Mutex::default() }
    }

    fn sandbox(&self, project: &ProjectId, sandbox: &SandboxId) -> PathBuf {
        self.root.join(project.as_str()).join(sandbox.as_str())
    }

    fn path(&self, name: &TapeName) -> PathBuf {
        self.sandbox(&name.project, &name.sandbox).join(format!("{}.{EXTENSION}", name.process))
    }

    /// Does something with a tape that is being recorded; nothing with one that is not.
    fn with(&self, name: &TapeName, work: impl FnOnce(&mut Running) -> io::Result<()>) -> io::Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tape) = running.get_mut(name) else { return Ok(()) };
        let done = work(tape);
        if done.is_err() || tape.written >= LONGEST {
            running.remove(name);
        }
        done
    }
}

impl Running {
    fn event(&mut self, code: &str, data: &str) -> io::Result<()> {
        let mut line = json!([self.began.elapsed().as_secs_f64(), code, data]).to_string();
        if self.written + u64::try_from(line.len()).unwrap_or(u64::MAX) >= LONGEST {
            line = json!([self.began.elapsed().as_secs_f64(), "m", "the recording is full"]).to_string();
            self.written = LONGEST;
        }
        line.push('\n');
        self.written += u64::try_from(line.len()).unwrap_or(u64::MAX);
        self.file.write_all(line.as_bytes())
    }

    /// Whole characters; what is no character is shown as such.
    fn text(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.rest.len());
        let mut left = self.rest.as_slice();
        let rest = loop {
            match std::str::from_utf8(left) {
                Ok(whole) => {
                    text.push_str(whole);
                    break Vec::new();
                }
                Err(error) => {
                    let (whole, after) = left.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(whole));
                    let Some(wrong) = error.error_len() else { break after.to_vec() };
                    text.push(char::REPLACEMENT_CHARACTER);
                    left = after.get(wrong..).unwrap_or_default();
                }
            }
        };
        self.rest = rest;
        text
    }
}

impl Tapes for TapeDirectory {
    fn begin(&self, name: &TapeName, size: PtySize, command: &str) -> io::Result<bool> {
        let path = self.path(name);
        // Whoever removes what is empty waits until this is not.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        DirBuilder::new().recursive(true).mode(0o700).create(self.sandbox(&name.project, &name.sandbox))?;
        let mut file = match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        };
        let header = json!({
            "version": 2,
            "width": size.columns,
            "height": size.rows,
            "timestamp": Timestamp::now().0 / 1000,
            "command": escape_untrusted(command.as_bytes()),
            "title": format!("{} {}", name.sandbox, name.process),
        });
        let line = format!("{header}\n");
        file.write_all(line.as_bytes())?;
        let written = u64::try_from(line.len()).unwrap_or(u64::MAX);
        running.insert(name.clone(), Running { file, began: Instant::now(), written, rest: Vec::new() });
        Ok(true)
    }

    fn shown(&self, name: &TapeName, bytes: &[u8]) -> io::Result<()> {
        self.with(name, |tape| match tape.text(bytes) {
            text if text.is_empty() => Ok(()),
            text => tape.event("o", &text),
        })
    }

    fn resized(&self, name: &TapeName, size: PtySize) -> io::Result<()> {
        self.with(name, |tape| tape.event("r", &format!("{}x{}", size.columns, size.rows)))
    }

    fn marked(&self, name: &TapeName, what: &str) -> io::Result<()> {
        self.with(name, |tape| tape.event("m", what))
    }

    fn end(&self, name: &TapeName) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn list(&self, project: &ProjectId, sandbox: &SandboxId) -> io::Result<Vec<TapeInfo>> {
        let entries = match std::fs::read_dir(self.sandbox(project, sandbox)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut tapes = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(EXTENSION)).and_then(|name| name.strip_suffix('.'));
            let Some(Ok(process)) = stem.map(str::parse) else { continue };
            let about = entry.metadata()?;
            let millis = about.created()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
            tapes.push(TapeInfo { process, began_at: Timestamp(u64::try_from(millis).unwrap_or(0)), bytes: about.len() });
        }
        tapes.sort_by_key(|tape| tape.began_at);
        Ok(tapes)
    }

    fn prune(&self, keep: KeptTapes) -> io::Result<usize> {
        let busy = || {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let paths: HashSet<PathBuf> = running.keys().map(|name| self.path(name)).collect();
            (paths, running)
        };
        let at_first = busy().0;
        let mut gone = 0;
        for path in shelf::superfluous(&self.root, keep, &at_first, SystemTime::now())? {
            // Nobody begins one while this looks.
            let (now_busy, _still) = busy();
            if !now_busy.contains(&path) {
                shelf::remove(&path)?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    fn read(&self, name: &TapeName) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(self.path(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn name() -> TapeName {
        TapeName { project: "default".parse().unwrap(), sandbox: SandboxId::random(), process: "shell".parse().unwrap() }
    }

    fn lines(tapes: &TapeDirectory, name: &TapeName) -> Vec<serde_json::Value> {
        let text = String::from_utf8(tapes.read(name).unwrap().unwrap()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_tape_has_whole_characters_sizes_and_times() {
        let (directory, name) = (tempfile::tempdir().unwrap(), name());
        let tapes = TapeDirectory::new(directory.path());
        let size = PtySize { columns: 80, rows: 24 };
        assert!(tapes.begin(&name, size, "sh \u{1b}[2J").unwrap());
        assert!(!tapes.begin(&name, size, "again").unwrap(), "once");
        let text = "grün".as_bytes();
        tapes.shown(&name, &text[..3]).unwrap();
        tapes.shown(&name, &text[3..]).unwrap();
        tapes.shown(&name, b"\xff!\x1b[1m").unwrap();
        tapes.resized(&name, PtySize { columns: 100, rows: 50 }).unwrap();
        tapes.end(&name);
        tapes.shown(&name, b"nobody listens").unwrap();
        let lines = lines(&tapes, &name);
        assert_eq!((&lines[0]["version"], &lines[0]["width"], &lines[0]["height"]), (&json!(2), &json!(80), &json!(24)));
        assert!(!lines[0]["command"].as_str().unwrap().contains('\u{1b}'), "{}", lines[0]);
        let events: Vec<_> = lines[1..].iter().map(|line| (line[1].as_str().unwrap(), line[2].as_str().unwrap())).collect();
        assert_eq!(events, [("o", "gr"), ("o", "ün"), ("o", "\u{fffd}!\u{1b}[1m"), ("r", "100x50")]);
        let times: Vec<f64> = lines[1..].iter().map(|line| line[0].as_f64().unwrap()).collect();
        assert!(times.is_sorted() && times.iter().all(|time| *time >= 0.0), "{times:?}");
        assert_eq!(tapes.list(&name.project, &name.sandbox).unwrap().len(), 1);
        assert!(tapes.list(&name.project, &SandboxId::random()).unwrap().is_empty());
    }

    #[test]
    fn old_tapes_go_then_the_oldest_and_never_one_that_is_being_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let tapes = TapeDirectory::new(directory.path());
        let size = PtySize { columns: 80, rows: 24 };
        let day = Duration::from_secs(24 * 3600);
        let made: Vec<TapeName> = (0..5u32)
            .map(|days| {
                let name = name();
                tapes.begin(&name, size, "sh").unwrap();
                tapes.shown(&name, &[b'x'; 10_000]).unwrap();
                let file = File::options().append(true).open(tapes.path(&name)).unwrap();
                file.set_modified(SystemTime::now() - day * days).unwrap();
                // The oldest goes on.
                if days < 4 {
                    tapes.end(&name);
                }
                name
            })
            .collect();
        let left = || made.iter().map(|name| tapes.read(name).unwrap().is_some()).collect::<Vec<_>>();
        let keep = |days: u32, bytes| KeptTapes { age: day * days, bytes };
        assert_eq!(tapes.prune(keep(9, u64::MAX)).unwrap(), 0, "nothing is too old or too much");
        assert_eq!(left(), [true; 5]);
        assert_eq!(tapes.prune(keep(3, u64::MAX)).unwrap(), 1);
        assert_eq!(left(), [true, true, true, false, true], "too old, but the one that goes on");
        assert_eq!(tapes.prune(keep(9, 25_000)).unwrap(), 2);
        assert_eq!(left(), [true, false, false, false, true], "the oldest that may go, until the rest is small enough");
        assert!(!tapes.sandbox(&made[2].project, &made[2].sandbox).exists(), "nothing empty stays");
        tapes.end(&made[4]);
        assert_eq!(tapes.prune(keep(9, 0)).unwrap(), 2);
        assert_eq!(left(), [false; 5]);
        assert!(tapes.begin(&made[2], size, "sh").unwrap(), "and it can be recorded again");
        assert_eq!(TapeDirectory::new(&directory.path().join("none")).prune(keep(0, 0)).unwrap(), 0);
    }

    #[test]
    fn a_tape_does_not_fill_the_disk() {
        let (directory, name) = (tempfile::tempdir().unwrap(), name());
        let tapes = TapeDirectory::new(directory.path());
        tapes.begin(&name, PtySize { columns: 80, rows: 24 }, "yes").unwrap();
        for _ in 0..40 {
            tapes.shown(&name, &vec![b'y'; 1 << 20]).unwrap();
        }
        assert!(tapes.read(&name).unwrap().unwrap().len() < 17 << 20);
        assert_eq!(lines(&tapes, &name).last().unwrap()[2], "the recording is full");
    }
}
