//! `WatchDir`: what happens in a directory, as it happens.

use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::response::Response;
use belljar_core::{EventStream, Session};
use belljar_types::{FileEvent, FileEventKind, GuestPath, UserName};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::daemon::{As, Sandboxed};
use super::entries::{as_daemon, describe};
use super::filesystem::require_directory;
use super::process::first_message;
use crate::dto::{Entry, Event, EventEnvelope, WatchDir};
use crate::errors::{Code, RpcError};
use crate::stream::{self as connect_stream, Frames};
use crate::translate::{clean, event_kind};

/// The agent tells a write when it is made and when the file is closed; E2B's daemon only tells the first.
const SAME_WRITE: Duration = Duration::from_millis(20);

/// `WatchDir`.
pub(super) async fn stream(Sandboxed(inside): Sandboxed, As(user): As, request: Request) -> Response {
    let (headers, hangup, message) = match first_message::<WatchDir>(request).await {
        Ok(parts) => parts,
        Err(error) => return connect_stream::refused(error),
    };
    let session = inside.session.clone();
    let watched = match Watched::begin(session.clone(), user, &message).await {
        Ok(watched) => watched,
        Err(error) => return connect_stream::refused(error),
    };
    let started = stream::once(async { Ok(connect_stream::frame(&serde_json::json!({ "start": {} }))) });
    let told = stream::unfold(watched, |mut watched| async move {
        let next = watched.next().await?;
        Some((next.map(|event| connect_stream::frame(&EventEnvelope { filesystem: event })), watched))
    });
    let frames: Frames = started.chain(told).boxed();
    let keepalive: Bytes = connect_stream::frame(&serde_json::json!({ "keepalive": {} }));
    connect_stream::serve(session, frames, &headers, keepalive, hangup)
}

/// A directory that is being watched.
pub(super) struct Watched {
    session: Session,
    user: Option<UserName>,
    directory: String,
    events: EventStream,
    include_entry: bool,
    last_write: Option<(Vec<u8>, Instant)>,
}

impl Watched {
    pub(super) async fn begin(session: Session, user: Option<UserName>, asked: &WatchDir) -> Result<Self, RpcError> {
        let directory = require_directory(&session, user.as_ref(), &asked.path).await?;
        let events = as_daemon(&session, user.as_ref(), &directory, |path, user| {
            let session = &session;
            async move { session.watch(&path, asked.recursive, user.as_ref()).await }
        })
        .await;
        let events = match events {
            Ok(events) => events,
            Err(error) => return Err(RpcError::of_guest(&session, user.as_ref(), error).await),
        };
        let directory = clean(&String::from_utf8_lossy(directory.as_bytes()));
        Ok(Self { session, user, directory, events, include_entry: asked.include_entry, last_write: None })
    }

    /// The next event; none when there will be no more.
    pub(super) async fn next(&mut self) -> Option<Result<Event, RpcError>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(RpcError::of_guest(&self.session, self.user.as_ref(), error).await)),
            };
            if self.is_end_of_write(&event) {
                continue;
            }
            let Some(kind) = event_kind(event.kind) else {
                return Some(Err(RpcError::new(Code::Internal, "watcher error: more happened than could be told; look again")));
            };
            let name = String::from_utf8_lossy(&event.name).into_owned();
            let entry =
                if self.include_entry { entry_of(&self.session, self.user.as_ref(), &self.directory, &event, &name).await } else { None };
            let name = if name.is_empty() { ".".to_owned() } else { name };
            return Some(Ok(Event { name, kind, entry }));
        }
    }

    fn is_end_of_write(&mut self, event: &FileEvent) -> bool {
        if event.kind != FileEventKind::Written {
            return false;
        }
        let same = self.last_write.as_ref().is_some_and(|(name, at)| *name == event.name && at.elapsed() < SAME_WRITE);
        self.last_write = Some((event.name.clone(), Instant::now()));
        same
    }
}

/// What is there now. What was removed or moved away is not looked for: something else may have its name.
async fn entry_of(session: &Session, user: Option<&UserName>, directory: &str, event: &FileEvent, name: &str) -> Option<Entry> {
    if matches!(event.kind, FileEventKind::Removed | FileEventKind::Renamed) {
        return None;
    }
    let at = clean(&format!("{directory}/{name}"));
    let path = GuestPath::new(at.as_str()).ok()?;
    let look = |path: GuestPath, user: Option<UserName>| async move { session.stat(&path, user.as_ref()).await };
    let info = as_daemon(session, user, &path, look).await.ok()?;
    Some(describe(session, user, &at, &info).await)
}
