//! Verbs that carry content or many items: read, write, list, search, watch. All in constant memory; the client's pace is the pace.

use std::sync::Arc;

use belljar_guest_line::Driven;
use belljar_guest_protocol::wire::{EventBody, FileBody, HitBody, ListDirectory, ReadFile, Search, Watch, WriteFile};
use belljar_guest_protocol::{Failure, FrameKind, MAX_FRAME};
use belljar_types::{ByteRange, Invalid, SearchQuery};
use bytes::Bytes;

use super::output::items;
use crate::call::{Call, CallError, ContentOr, user_name};
use crate::files::{self, Inflow, ListTask, Places, Reading, SearchTask, Watcher, act, acting, guest_path};

/// What is read with one change of threads and sent in one frame.
const PIECE: usize = MAX_FRAME as usize;
/// Items of up to 4 KiB each, below a frame's limit.
const ITEMS_AT_ONCE: usize = 48;

pub(super) async fn read(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: ReadFile = call.body()?;
    let path = guest_path(&body.path)?;
    let range = ByteRange { offset: body.offset, length: body.length };
    let agent = call.agent;
    let opened = act(agent, user_name(body.user.as_ref())?, move |actor| {
        let mut reading = files::open_for_reading(actor, &actor.path(&path), range)?;
        // Most files are small: whoever opened it has it in hand.
        let first = reading.piece(PIECE)?;
        Ok((first, reading))
    });
    let (mut bytes, reading) = call.wait(opened).await??;
    let answer = FileBody::from(&reading.info);
    // One piece is read while the one before it is sent.
    let mut next = read_piece(reading);
    call.respond(&answer).await?;
    loop {
        if !bytes.is_empty() {
            call.line.send(FrameKind::Data, bytes).await?;
        }
        let Some(reading) = next else { return call.end().await };
        let (more, reading) = call.wait(reading).await??;
        (bytes, next) = (more, read_piece(reading));
    }
}

/// Reads on if there is more. Begins at once, waited for or not.
fn read_piece(mut reading: Reading) -> Option<impl Future<Output = Result<(Bytes, Reading), Failure>>> {
    (reading.left > 0).then(|| crate::blocking::run(move || Ok((reading.piece(PIECE)?, reading))))
}

pub(super) async fn write(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: WriteFile = call.body()?;
    let options = body.options()?;
    let path = guest_path(&body.path)?;
    let inflow = Inflow::begin(acting(call.agent, options.user.clone(), move |actor| {
        let writing = files::open_for_writing(actor, &actor.path(&path), &options)?;
        Ok((writing, Arc::clone(&actor.users)))
    }));
    loop {
        call.wait(inflow.room()).await?;
        match call.content_or(inflow.outcome()).await? {
            ContentOr::Content(Some(piece)) => inflow.add(piece),
            ContentOr::Content(None) => break,
            // Before its end, content can only fail.
            ContentOr::Done(failed) => return Err(failed.err().map_or(CallError::OutOfTurn, CallError::Failure)),
        }
    }
    inflow.end();
    let info = call.wait(inflow.outcome()).await??;
    call.respond(&FileBody::from(&info)).await
}

pub(super) async fn list(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: ListDirectory = call.body()?;
    let path = guest_path(&body.path)?;
    if body.depth == 0 {
        return Err(Invalid::new("depth", "at least 1", "0").into());
    }
    let user = user_name(body.user.as_ref())?;
    let agent = call.agent;
    let begun = act(agent, user.clone(), move |actor| ListTask::begin(&actor.path(&path), body.depth, body.max_entries));
    let mut task = call.wait(begun).await??;
    call.respond(&()).await?;
    loop {
        let step = act(agent, user.clone(), move |actor| {
            let found = task.step(actor);
            Ok((found, task))
        });
        let (found, rest) = call.wait(step).await??;
        task = rest;
        if found.is_empty() {
            return call.end().await;
        }
        items(call, &found.iter().map(FileBody::from).collect::<Vec<_>>()).await?;
    }
}

pub(super) async fn search(call: &mut Call<'_>) -> Result<(), CallError> {
    let query = SearchQuery::try_from(call.body::<Search>()?)?;
    let user = query.user.clone();
    let agent = call.agent;
    let begun = act(agent, user.clone(), move |actor| SearchTask::begin(&actor.path(&query.root), &query));
    let mut task = call.wait(begun).await??;
    call.respond(&()).await?;
    loop {
        let step = act(agent, user.clone(), move |_| {
            let (hits, more) = task.step();
            Ok((hits, more, task))
        });
        let (hits, more, rest) = call.wait(step).await??;
        task = rest;
        for some in hits.chunks(ITEMS_AT_ONCE) {
            items(call, &some.iter().map(HitBody::from).collect::<Vec<_>>()).await?;
        }
        if !more {
            return call.end().await;
        }
    }
}

pub(super) async fn watch(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Watch = call.body()?;
    let path = guest_path(&body.path)?;
    let user = user_name(body.user.as_ref())?;
    let agent = call.agent;
    let begun = act(agent, user.clone(), move |actor| Places::begin(&actor.path(&path), body.recursive));
    let mut watcher = Watcher::new(call.wait(begun).await??)?;
    call.respond(&()).await?;
    loop {
        let (mut places, batch) = match call.line.drive(watcher.next()).await? {
            Driven::Done(Some(next)) => next,
            Driven::Done(None) => return call.end().await,
            Driven::Frame(_) => return Err(CallError::OutOfTurn),
        };
        let added = act(agent, user.clone(), move |_| {
            let events = places.add_new(batch);
            Ok((events, places))
        });
        let (events, places) = call.wait(added).await??;
        watcher.put_back(places);
        for some in events.chunks(ITEMS_AT_ONCE) {
            items(call, &some.iter().map(EventBody::from).collect::<Vec<_>>()).await?;
        }
    }
}
