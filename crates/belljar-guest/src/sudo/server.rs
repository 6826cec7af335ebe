//! The agent's side: believes the kernel about who asks, and the policy about what they may do.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use belljar_guest_line::{Driven, Line, Patience};
use belljar_guest_protocol::sudo::{SudoExit, SudoRequest, SudoSignal};
use belljar_guest_protocol::{Failure, FrameKind, MAX_REQUEST, decode, encode};
use belljar_types::{PrivilegePolicy, Termination, escape_untrusted};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};

use crate::agent::Agent;
use crate::peer;
use crate::process::{Launched, kill_family, sudo_launch};
use crate::users::{User, Users};

const ASKING_TIME: Duration = Duration::from_secs(5);
/// Groups whose members may become root, as distributions have them.
const ADMIN_GROUPS: [&str; 2] = ["sudo", "wheel"];

/// Waits for `sudo` for ever. Everybody may connect; who may run what is decided for each.
pub(crate) async fn serve(agent: Rc<Agent>, path: &Path) -> io::Result<()> {
    let listener = peer::listen(path)?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::task::spawn_local(one(Rc::clone(&agent), stream))),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn one(agent: Rc<Agent>, stream: UnixStream) {
    if peer::identify(&stream).is_err() {
        return;
    }
    let Ok(Ok((stdio, uid))) = tokio::time::timeout(ASKING_TIME, receive_stdio(&stream)).await else { return };
    let mut line = Line::new(stream, MAX_REQUEST, Patience::default());
    line.begin(0);
    let started = start(&agent, &mut line, uid, stdio).await;
    let answer = match started {
        Ok(launched) => follow(&mut line, launched).await.map(|exit| (FrameKind::Response, encode(&exit))),
        Err(failure) => Some((FrameKind::Failure, encode(&failure))),
    };
    if let Some((kind, body)) = answer {
        // The asker may be gone; then nobody wants to know.
        let _ = line.send(kind, body.into()).await;
    }
}

/// The first byte on the socket brings three descriptors, and who sends them.
async fn receive_stdio(stream: &UnixStream) -> io::Result<([OwnedFd; 3], u32)> {
    let first = stream.async_io(Interest::READABLE, || peer::receive(stream.as_fd(), &mut [0u8; 1])).await?;
    let stdio = first.fds.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    Ok((stdio, first.uid))
}

async fn start(agent: &Rc<Agent>, line: &mut Line<UnixStream>, uid: u32, stdio: [OwnedFd; 3]) -> Result<Launched, Failure> {
    let frame = tokio::time::timeout(ASKING_TIME, line.receive()).await;
    let lost = || Failure::refused(5, "the request did not come");
    let frame = frame.map_err(|_| lost())?.map_err(|_| lost())?;
    let request: SudoRequest = decode(&frame.body).map_err(|_| Failure::refused(22, "the request makes no sense"))?;
    let policy = agent.users.clone();
    let (asker, target, group) = {
        let (user, group) = (request.user.clone(), request.group.clone());
        crate::blocking::run(move || {
            let users = Users::read();
            let asker = permitted(&users, &policy, uid)?;
            let name = user.as_deref().unwrap_or("root");
            let missing = |kind: &str, name: &str| Failure::refused(0, format!("unknown {kind} {}", escape_untrusted(name.as_bytes())));
            let target = users.find(name).ok_or_else(|| missing("user", name))?;
            let group = match &group {
                Some(name) => Some(users.find_group(name).ok_or_else(|| missing("group", name))?),
                None => None,
            };
            Ok((asker, target, group))
        })
        .await?
    };
    let launch = sudo_launch(&agent.processes.environment, request, &asker, target, group, stdio)?;
    agent.processes.reaper.launch(launch).await
}

/// Who asks, if they may.
fn permitted(users: &Users, policy: &crate::users::UserPolicy, uid: u32) -> Result<User, Failure> {
    if policy.privilege == PrivilegePolicy::UserOnly {
        return Err(Failure::refused(1, "this sandbox does not allow root: its privilege policy is user-only"));
    }
    let nameless = || User { name: format!("#{uid}"), uid, gid: uid, groups: Vec::new(), home: b"/".into(), shell: b"/bin/sh".into() };
    let asker = users.find_uid(uid).unwrap_or_else(nameless);
    let is_default = policy.resolve(users, None).is_ok_and(|default| default.uid == uid);
    let is_admin =
        ADMIN_GROUPS.iter().filter_map(|name| users.group_number(name)).any(|gid| asker.gid == gid || asker.groups.contains(&gid));
    if uid == 0 || is_default || is_admin {
        Ok(asker)
    } else {
        Err(Failure::refused(1, format!("user {} may not use sudo: only the sandbox's user and members of the group sudo may", asker.name)))
    }
}

/// Passes signals on until the command ends. An asker that vanishes takes its command with it: a deadline that killed it must not be outlived.
async fn follow(line: &mut Line<UnixStream>, mut launched: Launched) -> Option<SudoExit> {
    loop {
        match line.drive(&mut launched.ended).await {
            Ok(Driven::Done(ended)) => {
                return Some(match ended.unwrap_or(Termination::Signaled(9)) {
                    Termination::Exited(code) => SudoExit { code: Some(code), signal: None },
                    Termination::Signaled(signal) => SudoExit { code: None, signal: Some(signal) },
                });
            }
            Ok(Driven::Frame(frame)) if frame.kind == FrameKind::Notice => {
                let signal = decode::<SudoSignal>(&frame.body).ok().and_then(|body| Signal::from_named_raw(i32::from(body.signal)));
                let pid = i32::try_from(launched.pid).ok().and_then(Pid::from_raw);
                if let (Some(signal), Some(pid)) = (signal, pid) {
                    // It may just have ended.
                    let _ = kill_process_group(pid, signal);
                }
            }
            Ok(Driven::Frame(_)) | Err(_) => {
                let pid = launched.pid;
                drop(tokio::task::spawn_blocking(move || kill_family(pid, None)));
                return None;
            }
        }
    }
}
