//! The agent's side: believes the kernel about who asks, and makes it a wish.
//!
//! Sockets here go through [`Channel`], so that a checkpoint finds nothing ready in the agent's epoll instance while programs wait.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use belljar_guest_protocol::keep::{KeepRequest, Kept, MAX_KEEP};
use belljar_guest_protocol::wire::WishBody;
use belljar_guest_protocol::{Decoder, Failure, FrameKind, decode, encode, encode_frame};
use belljar_types::KeepWish;
use tokio::io::Interest;

use crate::agent::Agent;
use crate::listen::Counted;
use crate::peer;
use crate::process::Channel;
use crate::users::Users;

const ASKING_TIME: Duration = Duration::from_secs(5);
/// Connections at one time: those whose wishes wait, and some that are told that there are too many.
const ASKERS: usize = 32;

/// Waits for `belljar-keep` for ever. Everybody may ask; the file is read with the rights of whoever does.
pub(crate) async fn serve(agent: Rc<Agent>, path: &Path) -> io::Result<()> {
    let listener = Channel::new(peer::listen(path)?.into(), Interest::READABLE)?;
    let askers = Rc::<Cell<usize>>::default();
    loop {
        match listener.accept().await.and_then(|stream| Channel::new(stream, Interest::READABLE)) {
            Ok(stream) => {
                if let Some(place) = Counted::take(&askers, ASKERS) {
                    tokio::task::spawn_local(one(Rc::clone(&agent), stream, place));
                }
            }
            // Out of descriptors or memory: programs inside can cause that, and it passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn one(agent: Rc<Agent>, stream: Channel, place: Counted) {
    if peer::identify(stream.fd()).is_err() {
        return;
    }
    let Ok(Some((uid, request))) = tokio::time::timeout(ASKING_TIME, receive(&stream)).await else { return };
    let mut more = [0u8; 1];
    let answer = tokio::select! {
        answer = grant(&agent, uid, request) => answer,
        // Whoever asked is gone, or says what nobody wants to hear.
        _ = stream.read(&mut more) => return,
    };
    let frame = match answer {
        Ok(artifact) => encode_frame(FrameKind::Response, 0, &encode(&Kept { artifact })),
        Err(failure) => encode_frame(FrameKind::Failure, 0, &encode(&failure)),
    };
    // A socket on which nothing was sent has room for one answer; whoever asked may be gone.
    let _ = rustix::io::write(stream.fd(), &frame);
    drop(place);
}

async fn receive(stream: &Channel) -> Option<(u32, KeepRequest)> {
    let mut decoder = Decoder::new(MAX_KEEP);
    let mut buffer = [0u8; 4096];
    let first = stream.when_ready(Interest::READABLE, |fd| peer::receive(fd.as_fd(), &mut buffer)).await.ok()?;
    let mut count = first.count;
    loop {
        decoder.feed(buffer.get(..count).filter(|bytes| !bytes.is_empty())?);
        if let Some(frame) = decoder.next_frame().ok()? {
            let request = decode(&frame.body).ok().filter(|_| frame.kind == FrameKind::Request)?;
            return Some((first.uid, request));
        }
        count = stream.read(&mut buffer).await.ok()?;
    }
}

async fn grant(agent: &Agent, uid: u32, request: KeepRequest) -> Result<String, Failure> {
    let stranger = move || Failure::refused(1, format!("user {uid} is not in /etc/passwd, so nobody can read the file for them"));
    let user = crate::blocking::run(move || Users::read().find_uid(uid).ok_or_else(stranger)).await?;
    let mut id = [0u8; 16];
    getrandom::fill(&mut id).map_err(|_| Failure::refused(5, "the sandbox has no randomness"))?;
    let KeepRequest { path, name, media_type } = request;
    let wish = WishBody { id: id.into(), path, user: user.type_name().to_string(), name, media_type };
    // What the host would take for nonsense is told to whoever asked.
    KeepWish::try_from(wish.clone())?;
    agent.wishes.ask(wish).await
}
