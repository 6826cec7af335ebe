//! What was copied so far and what was left out.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use belljar_types::escape_untrusted;
use indicatif::ProgressBar;
use serde_json::json;

use crate::command_error::CommandError;
use crate::{progress, screen, units};

/// Counts, and shows bytes on their way.
pub(super) struct Report {
    files: AtomicU64,
    directories: AtomicU64,
    links: AtomicU64,
    left_out: Mutex<Vec<(String, &'static str)>>,
    bar: ProgressBar,
}

impl Report {
    pub(super) fn new() -> Self {
        Self {
            files: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            links: AtomicU64::new(0),
            left_out: Mutex::new(Vec::new()),
            bar: progress::bytes(None),
        }
    }

    pub(super) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    pub(super) fn file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn directory(&self) {
        self.directories.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn links(&self, count: usize) {
        self.links.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Something was not copied, and that is no failure. Told at once; its name may be anything.
    pub(super) fn leave_out(&self, name: &[u8], why: &'static str) {
        let name = escape_untrusted(name);
        self.bar.suspend(|| screen::remark(&format!("belljar: left out {name}: {why}")));
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).push((name, why));
    }

    /// Says what was done.
    pub(super) fn tell(&self, json: bool, to_stream: bool) -> Result<(), CommandError> {
        self.bar.finish_and_clear();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (files, directories, links) = (count(&self.files), count(&self.directories), count(&self.links));
        let bytes = self.bar.position();
        // Standard output may be the destination.
        if json && !to_stream {
            let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
            let left_out: Vec<_> = left_out.iter().map(|(path, reason)| json!({ "path": path, "reason": reason })).collect();
            screen::json(&json!({ "files": files, "directories": directories, "links": links, "bytes": bytes, "left_out": left_out }))?;
        } else if files + directories + links > 1 {
            screen::remark(&format!("copied {files} files, {directories} directories and {links} links, {}", units::size(bytes)));
        }
        Ok(())
    }
}
