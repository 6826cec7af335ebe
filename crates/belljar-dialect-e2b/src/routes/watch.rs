//! `WatchDir`: what happens in a directory, as it happens.

mod writes;

use axum::extract::Request;
use axum::response::Response;
use belljar_core::Session;
use belljar_types::{FileEvent, FileEventKind, FileInfo, GuestPath, UserName};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use self::writes::{Content, Step, Writes};
use super::daemon::{As, Sandboxed};
use super::entries::{as_daemon, describe};
use super::filesystem::require_directory;
use super::process::first_message;
use crate::dto::{Event, EventEnvelope, WatchDir};
use crate::errors::{Code, RpcError};
use crate::stream::{self as connect_stream, Frames};
use crate::translate::event_kind;

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
    directory: Directory,
    events: Writes,
    include_entry: bool,
}

/// Where to look for what has changed, and for whom.
struct Directory {
    session: Session,
    user: Option<UserName>,
    path: String,
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
        let directory = Directory { session, user, path: belljar_http::clean_path(&String::from_utf8_lossy(directory.as_bytes())) };
        Ok(Self { directory, events: Writes::new(events), include_entry: asked.include_entry })
    }

    /// The next event; none when there will be no more.
    pub(super) async fn next(&mut self) -> Option<Result<Event, RpcError>> {
        let directory = &self.directory;
        loop {
            let (event, info) = match self.events.next().await? {
                Step::Failed(error) => return Some(Err(RpcError::of_guest(&directory.session, directory.user.as_ref(), error).await)),
                Step::Tell(event) if event.kind == FileEventKind::Written => {
                    let info = directory.look(&event).await;
                    self.events.told(info.as_ref().map(Content::of));
                    (event, info)
                }
                Step::Tell(event) => {
                    let info = if self.include_entry { directory.look(&event).await } else { None };
                    (event, info)
                }
                Step::LeftOut(event) => {
                    let info = directory.look(&event).await;
                    if !self.events.is_news(info.as_ref().map(Content::of)) {
                        continue;
                    }
                    (event, info)
                }
            };
            let Some(kind) = event_kind(event.kind) else {
                return Some(Err(RpcError::new(Code::Internal, "watcher error: more happened than could be told; look again")));
            };
            let entry = match info.filter(|_| self.include_entry) {
                Some(info) => Some(describe(&directory.session, directory.user.as_ref(), &directory.path_of(&event), &info).await),
                None => None,
            };
            let name = String::from_utf8_lossy(&event.name).into_owned();
            let name = if name.is_empty() { ".".to_owned() } else { name };
            return Some(Ok(Event { name, kind, entry }));
        }
    }
}

impl Directory {
    fn path_of(&self, event: &FileEvent) -> String {
        belljar_http::clean_path(&format!("{}/{}", self.path, String::from_utf8_lossy(&event.name)))
    }

    /// What is there now. What was removed or moved away is not looked for: something else may have its name.
    async fn look(&self, event: &FileEvent) -> Option<FileInfo> {
        if matches!(event.kind, FileEventKind::Removed | FileEventKind::Renamed) {
            return None;
        }
        let path = GuestPath::new(self.path_of(event).as_str()).ok()?;
        let session = &self.session;
        let look = |path: GuestPath, user: Option<UserName>| async move { session.stat(&path, user.as_ref()).await };
        as_daemon(session, self.user.as_ref(), &path, look).await.ok()
    }
}
