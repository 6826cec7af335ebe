//! Which of a file's writes are told. The agent tells a write when it is made and again when the file is closed; E2B's daemon only tells the first,
//! and its clients count.
//!
//! ```text
//!   write ──► told ──► another within 20 ms ──► left out ──► nothing more for 20 ms ──► told, if the file is another than when it was told last
//!               ▲             20 ms later         │ │
//!               └─────────────────────────────────┘ └──► the end, a failure, or a write to another file: looked at before that
//! ```
//! Only the file itself says whether what was left out was its being closed or one more write: nobody must miss the last one.

use std::time::Duration;

use belljar_core::{EventStream, GuestError};
use belljar_types::{FileEvent, FileEventKind, FileInfo};
use futures_util::StreamExt;
use futures_util::stream::Fuse;
use tokio::time::Instant;

const SAME_WRITE: Duration = Duration::from_millis(20);

/// What changes with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    modified_nanos: i64,
    size: u64,
}

impl Content {
    pub(super) fn of(info: &FileInfo) -> Self {
        Self { modified_nanos: info.modified_nanos, size: info.size }
    }
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Step {
    /// Something happened; of a write [`Writes::told`] wants to know with what in the file it is told.
    Tell(FileEvent),
    /// A write was left out; it is told if it [is news](Writes::is_news).
    LeftOut(FileEvent),
    Failed(GuestError),
}

/// The events of a directory, with its writes thinned out.
pub(super) struct Writes {
    events: Fuse<EventStream>,
    last: Option<Last>,
    /// What came while something was left out that has to go first.
    after: Option<Result<FileEvent, GuestError>>,
}

/// The write that was told last.
struct Last {
    name: Vec<u8>,
    at: Instant,
    content: Option<Content>,
    left_out: Option<(FileEvent, Instant)>,
}

impl Writes {
    pub(super) fn new(events: EventStream) -> Self {
        Self { events: events.fuse(), last: None, after: None }
    }

    /// None when there will be no more.
    pub(super) async fn next(&mut self) -> Option<Step> {
        loop {
            let event = match self.after.take() {
                Some(event) => Some(event),
                None => match self.last.as_ref().and_then(|last| last.left_out.as_ref()) {
                    Some((_, at)) => match tokio::time::timeout_at(*at + SAME_WRITE, self.events.next()).await {
                        Ok(event) => event,
                        Err(_quiet) => return self.take_left_out(),
                    },
                    None => self.events.next().await,
                },
            };
            let goes_first = match &event {
                Some(Ok(event)) => event.kind == FileEventKind::Written && self.last.as_ref().is_some_and(|last| last.name != event.name),
                Some(Err(_)) | None => true,
            };
            if goes_first && let Some(left_out) = self.take_left_out() {
                self.after = event;
                return Some(left_out);
            }
            match event? {
                Err(error) => return Some(Step::Failed(error)),
                Ok(event) if event.kind != FileEventKind::Written => return Some(Step::Tell(event)),
                Ok(event) => {
                    let now = Instant::now();
                    match self.last.as_mut().filter(|last| last.name == event.name && now < last.at + SAME_WRITE) {
                        Some(last) => last.left_out = Some((event, now)),
                        None => {
                            self.last = Some(Last { name: event.name.clone(), at: now, content: None, left_out: None });
                            return Some(Step::Tell(event));
                        }
                    }
                }
            }
        }
    }

    fn take_left_out(&mut self) -> Option<Step> {
        self.last.as_mut()?.left_out.take().map(|(event, _)| Step::LeftOut(event))
    }

    /// The last write is being told, and this is in the file: whoever reads it then sees no less.
    pub(super) fn told(&mut self, content: Option<Content>) {
        if let Some(last) = &mut self.last {
            last.content = content;
        }
    }

    /// Whether a write that was left out is to be told after all, with this in the file. A file that is gone is told as gone.
    pub(super) fn is_news(&mut self, content: Option<Content>) -> bool {
        let Some(last) = &mut self.last else { return false };
        let is_news = content.is_some() && content != last.content;
        if is_news {
            (last.content, last.at) = (content, Instant::now());
        }
        is_news
    }
}

#[cfg(test)]
mod tests;
