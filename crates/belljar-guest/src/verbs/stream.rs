//! Verbs that carry content or many items: read, write, list, search, watch. All in constant memory; the client's pace is the pace.

use std::fs::File;
use std::io::{Read, Write};
use std::pin::pin;

use belljar_guest_line::Driven;
use belljar_guest_protocol::wire::{EventBody, FileBody, HitBody, ListDirectory, ReadFile, Search, Watch, WriteFile};
use belljar_guest_protocol::{Failure, FrameKind};
use belljar_types::{ByteRange, Invalid, SearchQuery};
use bytes::Bytes;

use super::output::items;
use crate::call::{Call, CallError, ContentOr, user_name};
use crate::files::{self, ListTask, Places, Reading, SearchTask, Watcher, act, guest_path, refused};

const PIECE: usize = 128 << 10;
/// What may wait in memory until the file takes it.
const GATHERED_AT_MOST: usize = 512 << 10;
/// Items of up to 4 KiB each, below a frame's limit.
const ITEMS_AT_ONCE: usize = 48;

pub(super) async fn read(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: ReadFile = call.body()?;
    let path = guest_path(&body.path)?;
    let range = ByteRange { offset: body.offset, length: body.length };
    let agent = call.agent;
    let opened = act(agent, user_name(body.user.as_ref())?, move |actor| files::open_for_reading(actor, &actor.path(&path), range));
    let reading = call.wait(opened).await??;
    let answer = FileBody::from(&reading.info);
    // One piece is read while the one before it is sent.
    let mut next = read_piece(reading);
    call.respond(&answer).await?;
    loop {
        let (bytes, reading) = call.wait(next).await??;
        if bytes.is_empty() {
            return call.end().await;
        }
        next = read_piece(reading);
        call.line.send(FrameKind::Data, bytes).await?;
    }
}

/// Begins at once, waited for or not.
fn read_piece(mut reading: Reading) -> impl Future<Output = Result<(Bytes, Reading), Failure>> {
    crate::blocking::run(move || {
        let wanted = usize::try_from(reading.left).unwrap_or(usize::MAX).min(PIECE);
        let mut buffer = vec![0u8; wanted];
        let mut filled = 0;
        // Files in /proc give a little at a time; a network filesystem too.
        while filled < wanted {
            match reading.file.read(buffer.get_mut(filled..).unwrap_or_default()) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(reading.info.path.as_bytes(), &error)),
            }
        }
        buffer.truncate(filled);
        reading.left -= filled as u64;
        Ok((buffer.into(), reading))
    })
}

pub(super) async fn write(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: WriteFile = call.body()?;
    let options = body.options()?;
    let path = guest_path(&body.path)?;
    let agent = call.agent;
    let user = options.user.clone();
    let opened = act(agent, user.clone(), move |actor| {
        let path = actor.path(&path);
        let file = files::open_for_writing(actor, &path, &options)?;
        Ok((file, path))
    });
    let (file, path) = call.wait(opened).await??;
    let file = take_content(call, file, &path).await?;
    let described = act(agent, user, move |actor| {
        let metadata = file.metadata().map_err(|error| refused(&path, &error))?;
        actor.describer().describe(&path, &metadata)
    });
    let info = call.wait(described).await??;
    call.respond(&FileBody::from(&info)).await
}

/// Takes the content to its end. While a piece is being written, those that come meanwhile are gathered and then written in one go: a change of
/// threads for each would cost more than the writing.
async fn take_content(call: &mut Call<'_>, mut file: File, path: &[u8]) -> Result<File, CallError> {
    let (mut gathered, mut more) = (Vec::new(), true);
    while more {
        let Some(piece) = call.content().await? else { break };
        gathered.push(piece);
        while !gathered.is_empty() {
            let mut bytes = 0;
            let mut writing = pin!(write_pieces(file, std::mem::take(&mut gathered), path));
            file = loop {
                if !more || bytes >= GATHERED_AT_MOST {
                    break call.wait(writing.as_mut()).await??;
                }
                match call.content_or(writing.as_mut()).await? {
                    ContentOr::Content(Some(piece)) => {
                        bytes += piece.len();
                        gathered.push(piece);
                    }
                    ContentOr::Content(None) => more = false,
                    ContentOr::Done(written) => break written?,
                }
            };
        }
    }
    Ok(file)
}

fn write_pieces(mut file: File, pieces: Vec<Bytes>, path: &[u8]) -> impl Future<Output = Result<File, Failure>> + use<> {
    let path = path.to_vec();
    crate::blocking::run(move || {
        pieces.iter().try_for_each(|piece| file.write_all(piece)).map_err(|error| refused(&path, &error))?;
        Ok(file)
    })
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
