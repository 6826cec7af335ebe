//! Tells what happens in a directory and below it.
//!
//! The kernel watches single directories, so each new one is added when it is seen. What was put into it before that is found by looking: such
//! files are told as created, perhaps twice, never not at all.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use belljar_guest_protocol::Failure;
use belljar_types::{FileEvent, FileEventKind};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{as_os, join, refused};

/// Directories in one watch; beyond that the reader is told to look again.
const MOST_DIRECTORIES: usize = 8192;
const EVENTS_AT_ONCE: usize = 256;

/// What was watched, by the kernel's number for it.
pub(crate) struct Places {
    inotify: OwnedFd,
    root: Vec<u8>,
    recursive: bool,
    directories: HashMap<i32, Vec<u8>>,
}

/// A watch.
pub(crate) struct Watcher {
    ready: AsyncFd<OwnedFd>,
    places: Option<Places>,
}

/// Events, and directories that are new.
pub(crate) struct Batch {
    pub(crate) events: Vec<FileEvent>,
    new_directories: Vec<Vec<u8>>,
}

fn flags() -> WatchFlags {
    WatchFlags::CREATE
        | WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::ATTRIB
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::EXCL_UNLINK
}

impl Places {
    /// Puts the watch in place; to be called with the user's identity.
    pub(crate) fn begin(root: &[u8], recursive: bool) -> Result<Self, Failure> {
        let failed = |errno: rustix::io::Errno| refused(root, &errno.into());
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(failed)?;
        let mut places = Self { inotify, root: root.to_vec(), recursive, directories: HashMap::new() };
        let number = inotify::add_watch(&places.inotify, as_os(root), flags()).map_err(failed)?;
        places.directories.insert(number, Vec::new());
        if recursive {
            places.add_below(Vec::new(), &mut Vec::new());
        }
        Ok(places)
    }

    /// Watches all directories below one that is watched already, and tells what is in them.
    fn add_below(&mut self, first: Vec<u8>, found: &mut Vec<FileEvent>) {
        let mut pending = vec![first];
        while let Some(relative) = pending.pop() {
            let Ok(entries) = std::fs::read_dir(as_os(&self.absolute(&relative))) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let path = if relative.is_empty() { name.as_bytes().to_vec() } else { join(&relative, name.as_bytes()) };
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && self.add(&path) {
                    pending.push(path.clone());
                }
                if found.len() < EVENTS_AT_ONCE * 4 {
                    found.push(FileEvent { kind: FileEventKind::Created, name: path });
                }
            }
        }
    }

    fn absolute(&self, relative: &[u8]) -> Vec<u8> {
        if relative.is_empty() { self.root.clone() } else { join(&self.root, relative) }
    }

    fn add(&mut self, relative: &[u8]) -> bool {
        if self.directories.len() >= MOST_DIRECTORIES {
            return false;
        }
        let flags = flags() | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.inotify, as_os(&self.absolute(relative)), flags) {
            Ok(number) => {
                self.directories.insert(number, relative.to_vec());
                true
            }
            Err(_) => false,
        }
    }

    /// Watches directories that came to be; to be called with the user's identity.
    pub(crate) fn add_new(&mut self, batch: Batch) -> Vec<FileEvent> {
        let mut events = batch.events;
        for directory in batch.new_directories {
            if self.add(&directory) {
                self.add_below(directory, &mut events);
            } else if self.directories.len() >= MOST_DIRECTORIES {
                events.push(FileEvent { kind: FileEventKind::Overflowed, name: Vec::new() });
            }
        }
        events
    }

    fn read(&mut self) -> Batch {
        let mut batch = Batch { events: Vec::new(), new_directories: Vec::new() };
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut gone = Vec::new();
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        while batch.events.len() < EVENTS_AT_ONCE || !reader.is_buffer_empty() {
            let Ok(event) = reader.next() else { break };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                batch.events.push(FileEvent { kind: FileEventKind::Overflowed, name: Vec::new() });
                continue;
            }
            if what.contains(ReadFlags::IGNORED) {
                gone.push(event.wd());
                continue;
            }
            let Some(directory) = self.directories.get(&event.wd()) else { continue };
            let name = event.file_name().map(std::ffi::CStr::to_bytes).unwrap_or_default();
            let name = match (directory.is_empty(), name.is_empty()) {
                (true, _) => name.to_vec(),
                (false, true) => directory.clone(),
                (false, false) => join(directory, name),
            };
            let came = what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
            if came && what.contains(ReadFlags::ISDIR) && self.recursive {
                batch.new_directories.push(name.clone());
            }
            if let Some(kind) = kind(what) {
                let event = FileEvent { kind, name };
                // A program that writes in small pieces makes one event, not thousands.
                if batch.events.last() != Some(&event) {
                    batch.events.push(event);
                }
            }
        }
        for number in gone {
            self.directories.remove(&number);
        }
        batch
    }
}

fn kind(what: ReadFlags) -> Option<FileEventKind> {
    let kinds = [
        (ReadFlags::CREATE, FileEventKind::Created),
        (ReadFlags::MOVED_TO, FileEventKind::Created),
        (ReadFlags::MODIFY, FileEventKind::Written),
        (ReadFlags::CLOSE_WRITE, FileEventKind::Written),
        (ReadFlags::ATTRIB, FileEventKind::Attributes),
        (ReadFlags::DELETE, FileEventKind::Removed),
        (ReadFlags::MOVED_FROM, FileEventKind::Renamed),
    ];
    kinds.into_iter().find(|(flag, _)| what.contains(*flag)).map(|(_, kind)| kind)
}

impl Watcher {
    pub(crate) fn new(places: Places) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| refused(&places.root, &error);
        let ready = places.inotify.try_clone().map_err(failed)?;
        let ready = belljar_linux::readiness::register(ready, Interest::READABLE).map_err(failed)?;
        Ok(Self { ready, places: Some(places) })
    }

    /// Waits for events. Gives the places away with them, to be put back after new directories were added.
    pub(crate) async fn next(&mut self) -> Option<(Places, Batch)> {
        loop {
            let mut guard = self.ready.readable().await.ok()?;
            let mut places = self.places.take()?;
            let batch = places.read();
            if batch.events.is_empty() && batch.new_directories.is_empty() {
                guard.clear_ready();
                self.places = Some(places);
                continue;
            }
            return Some((places, batch));
        }
    }

    pub(crate) fn put_back(&mut self, places: Places) {
        self.places = Some(places);
    }
}
