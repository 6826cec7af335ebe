//! What a command that runs through `sudo` gets: the target's environment, or the asker's where that is kept.

use std::os::fd::OwnedFd;

use belljar_guest_protocol::Failure;
use belljar_guest_protocol::sudo::SudoRequest;

use super::environment::{Environment, PATH, Variables, launch};
use super::launch::{Launch, Wiring};
use crate::users::User;

/// Variables of the asker's that are harmless and missed when they are not there.
const KEPT: [&[u8]; 9] =
    [b"TERM", b"COLORTERM", b"LANG", b"LANGUAGE", b"DISPLAY", b"LS_COLORS", b"TZ", b"DEBIAN_FRONTEND", super::kill::MARK.as_bytes()];

/// A start of the command that was asked for.
pub(crate) fn sudo_launch(
    environment: &Environment,
    request: SudoRequest,
    asker: &User,
    mut target: User,
    group: Option<u32>,
    stdio: [OwnedFd; 3],
) -> Result<Launch, Failure> {
    let split = |variable: &[u8]| {
        let at = memchr::memchr(b'=', variable).filter(|at| *at > 0)?;
        Some((variable.get(..at)?.to_vec(), variable.get(at + 1..)?.to_vec()))
    };
    let asked: Variables = request.env.iter().filter_map(|variable| split(variable)).collect();
    let mut variables = environment.variables(&target);
    // The sandbox's environment may name another user's home.
    variables.insert(b"HOME".to_vec(), target.home.clone());
    variables.insert(b"USER".to_vec(), target.name.clone().into_bytes());
    variables.insert(b"LOGNAME".to_vec(), target.name.clone().into_bytes());
    let keep = |name: &[u8]| if request.keep_env { name != b"HOME" } else { KEPT.contains(&name) || name.starts_with(b"LC_") };
    variables.extend(asked.into_iter().filter(|(name, _)| keep(name)));
    variables.entry(b"PATH".to_vec()).or_insert_with(|| PATH.as_bytes().to_vec());
    let argv: Vec<Vec<u8>> = request.argv.into_iter().map(Vec::from).collect();
    variables.insert(b"SUDO_USER".to_vec(), asker.name.clone().into_bytes());
    variables.insert(b"SUDO_UID".to_vec(), asker.uid.to_string().into_bytes());
    variables.insert(b"SUDO_GID".to_vec(), asker.gid.to_string().into_bytes());
    variables.insert(b"SUDO_COMMAND".to_vec(), argv.join(&b' '));
    variables.extend(request.set.iter().filter_map(|variable| split(variable)));
    let cwd = if request.login { target.home.clone() } else { Vec::from(request.cwd) };
    let argv = if request.login || request.shell { through_shell(&target, &argv, request.login) } else { argv };
    if let Some(gid) = group {
        target.gid = gid;
    }
    launch(&argv, &variables, cwd, &target, Wiring::Given { stdio, terminal: request.terminal })
}

/// The shell takes one line, so each word is quoted for it.
fn through_shell(target: &User, argv: &[Vec<u8>], login: bool) -> Vec<Vec<u8>> {
    let mut command = vec![target.shell.clone()];
    if login {
        command.push(b"-l".to_vec());
    }
    if !argv.is_empty() {
        let quoted = argv.iter().map(|word| {
            let inner: Vec<u8> = word.iter().flat_map(|b| if *b == b'\'' { b"'\\''".to_vec() } else { vec![*b] }).collect();
            [b"'", inner.as_slice(), b"'"].concat()
        });
        command.push(b"-c".to_vec());
        command.push(quoted.collect::<Vec<_>>().join(&b' '));
    }
    command
}
