//! Finds files by name and by content, in constant memory, binary files included.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use belljar_guest_protocol::Failure;
use belljar_types::{GuestPath, SearchHit, SearchQuery};
use memchr::memmem::Finder;

use super::pattern;
use super::walk::Walk;

const DEEP: u32 = u32::MAX;
const PIECE: usize = 64 << 10;
/// How much of a line is shown, before and after the place.
const SHOWN: usize = 120;
const HITS_AT_ONCE: usize = 64;
/// A thread is given back after this long, so that others get their turn.
const TURN: Duration = Duration::from_millis(50);
/// Trees that are not files: entered only when asked for.
const NOT_FILES: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// A search under way.
pub(crate) struct SearchTask {
    walk: Walk,
    name: Option<Vec<u8>>,
    content: Option<Finder<'static>>,
    left: u32,
    scan: Option<Scan>,
}

impl SearchTask {
    pub(crate) fn begin(root: &[u8], query: &SearchQuery) -> Result<Self, Failure> {
        Ok(Self {
            walk: Walk::begin(root, DEEP)?,
            name: query.name.clone().map(String::into_bytes),
            content: query.content.as_ref().map(|bytes| Finder::new(bytes).into_owned()),
            left: query.max_hits,
            scan: None,
        })
    }

    /// The next hits, and whether there may be more.
    pub(crate) fn step(&mut self) -> (Vec<SearchHit>, bool) {
        let begun = Instant::now();
        let mut hits = Vec::new();
        while self.left > 0 && hits.len() < HITS_AT_ONCE && begun.elapsed() < TURN {
            if let (Some(scan), Some(finder)) = (&mut self.scan, &self.content) {
                let most = (HITS_AT_ONCE - hits.len()).min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let before = hits.len();
                if !scan.step(finder, most, &mut hits) {
                    self.scan = None;
                }
                self.left -= u32::try_from(hits.len() - before).unwrap_or(0);
                continue;
            }
            let Some((path, entry)) = self.walk.next() else { return (hits, false) };
            if !NOT_FILES.contains(&path.as_slice()) {
                self.walk.enter(&path, &entry);
            }
            if self.name.as_ref().is_some_and(|name| !pattern::matches(name, entry.file_name().as_bytes())) {
                continue;
            }
            let Ok(guest_path) = GuestPath::new(path.as_slice()) else { continue };
            if self.content.is_none() {
                hits.push(SearchHit { path: guest_path, line: None, text: Vec::new() });
                self.left -= 1;
            } else if entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(file) = super::tree::open_without_waiting(&path)
            {
                self.scan = Some(Scan::new(guest_path, file));
            }
        }
        (hits, self.left > 0)
    }
}

/// One file being looked through.
struct Scan {
    path: GuestPath,
    file: File,
    window: Vec<u8>,
    /// Everything before this place in the window was looked at.
    looked: usize,
    /// The line that `counted` is in.
    line: u64,
    /// Newlines before this place in the window are counted.
    counted: usize,
    at_end: bool,
}

impl Scan {
    fn new(path: GuestPath, file: File) -> Self {
        Self { path, file, window: Vec::new(), looked: 0, line: 1, counted: 0, at_end: false }
    }

    /// Looks through one more piece, one hit a line. Says whether there is more.
    fn step(&mut self, finder: &Finder<'_>, most: usize, hits: &mut Vec<SearchHit>) -> bool {
        let needle = finder.needle().len();
        let mut found = 0;
        loop {
            // Near the window's end a line could not be shown whole, so that part waits for the next piece.
            let sure = if self.at_end { self.window.len() } else { self.window.len().saturating_sub(needle + SHOWN) };
            let place = finder.find(self.window.get(self.looked..).unwrap_or_default()).map(|place| place + self.looked);
            let Some(place) = place.filter(|place| *place < sure || self.at_end) else {
                self.looked = self.looked.max(sure);
                break;
            };
            if found == most {
                return true;
            }
            self.line += newlines(self.window.get(self.counted..place).unwrap_or_default());
            self.counted = place;
            hits.push(SearchHit { path: self.path.clone(), line: Some(self.line), text: self.shown(place, needle) });
            found += 1;
            let rest = self.window.get(place..).unwrap_or_default();
            self.looked = place + memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1).max(1);
        }
        !self.at_end && self.slide()
    }

    /// Drops what was looked at, except what a later line may show, and reads on.
    fn slide(&mut self) -> bool {
        let keep_from = self.looked.min(self.window.len()).saturating_sub(SHOWN);
        self.line += newlines(self.window.get(self.counted..keep_from).unwrap_or_default());
        self.counted = self.counted.max(keep_from) - keep_from;
        self.window.drain(..keep_from);
        self.looked -= keep_from;
        let before = self.window.len();
        self.window.resize(before + PIECE, 0);
        let count = self.file.read(self.window.get_mut(before..).unwrap_or_default()).unwrap_or(0);
        self.window.truncate(before + count);
        self.at_end = count == 0;
        true
    }

    fn shown(&self, place: usize, needle: usize) -> Vec<u8> {
        let before = self.window.get(place.saturating_sub(SHOWN)..place).unwrap_or_default();
        let begin = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let after = self.window.get(place..).unwrap_or_default();
        let after = after.get(..needle.min(SHOWN) + SHOWN).unwrap_or(after);
        let end =
            memchr::memchr(b'\n', after.get(needle.min(SHOWN)..).unwrap_or_default()).map_or(after.len(), |end| end + needle.min(SHOWN));
        [before.get(begin..).unwrap_or_default(), after.get(..end).unwrap_or_default()].concat()
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
#[path = "search/tests.rs"]
mod tests;
