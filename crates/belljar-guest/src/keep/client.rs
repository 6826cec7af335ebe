//! The asker's side: a program for a shell, a script or a model. Prints the artifact's id.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use belljar_guest_protocol::keep::{KeepRequest, Kept, MAX_KEEP, SOCKET};
use belljar_guest_protocol::{Decoder, Failure, Frame, FrameKind, decode, encode, encode_frame};

use crate::peer;
use crate::shell::{complain, say};

/// Another socket than the usual one; it only decides whom this program asks, which gives it nothing.
const OTHER_SOCKET: &str = "BELLJAR_KEEP_SOCKET";
const USAGE: &str = "usage: belljar-keep FILE [--name NAME] [--type TYPE]\n\
    Keeps a file outside the sandbox and prints the id under which it can be fetched when the sandbox is gone.";

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("{0}\n{USAGE}")]
    Usage(String),
    #[error("find the directory that {} is in", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the sandbox's agent does not answer at {}", path.display())]
    Connect {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Refused(String),
    #[error("lost the sandbox's agent")]
    Lost(#[source] io::Error),
    #[error("the sandbox's agent answered with nonsense")]
    Nonsense,
}

/// Runs as `belljar-keep`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match parse(arguments).and_then(|request| request.as_ref().map(ask).transpose()) {
        Ok(said) => {
            say(said.as_deref().unwrap_or(USAGE));
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain("belljar-keep", &error);
            ExitCode::FAILURE
        }
    }
}

/// What is asked; nothing if only how to ask.
fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Option<KeepRequest>, KeepError> {
    let (mut file, mut name, mut media_type) = (None::<PathBuf>, None, None);
    let mut only_files = false;
    while let Some(argument) = arguments.next() {
        let option = if only_files { None } else { argument.to_str().filter(|text| text.starts_with('-') && text.len() > 1) };
        match option {
            None if file.is_none() => file = Some(argument.into()),
            None => return Err(KeepError::Usage("one file at a time".to_owned())),
            Some("--") => only_files = true,
            Some("-h" | "--help") => return Ok(None),
            Some("--name") => name = Some(text("--name", arguments.next())?),
            Some("--type") => media_type = Some(text("--type", arguments.next())?),
            Some(other) => match other.split_once('=') {
                Some(("--name", value)) => name = Some(value.to_owned()),
                Some(("--type", value)) => media_type = Some(value.to_owned()),
                _ => return Err(KeepError::Usage(format!("there is no option {other}"))),
            },
        }
    }
    let file = file.ok_or_else(|| KeepError::Usage("which file?".to_owned()))?;
    let path = std::path::absolute(&file).map_err(|source| KeepError::Directory { path: file, source })?;
    Ok(Some(KeepRequest { path: path.into_os_string().into_vec().into(), name, media_type }))
}

fn text(option: &str, value: Option<OsString>) -> Result<String, KeepError> {
    value.and_then(|value| value.into_string().ok()).ok_or_else(|| KeepError::Usage(format!("{option} takes text")))
}

fn ask(request: &KeepRequest) -> Result<String, KeepError> {
    let path = std::env::var_os(OTHER_SOCKET).map_or_else(|| Path::new(SOCKET).to_owned(), PathBuf::from);
    let mut stream = UnixStream::connect(&path).map_err(|source| KeepError::Connect { path, source })?;
    let frame = encode_frame(FrameKind::Request, 0, &encode(request));
    let sent = peer::introduce(&stream, &frame, &[]).map_err(KeepError::Lost)?;
    stream.write_all(frame.get(sent..).unwrap_or_default()).map_err(KeepError::Lost)?;
    let frame = receive(&mut stream)?;
    match frame.kind {
        FrameKind::Response => decode::<Kept>(&frame.body).map(|kept| kept.artifact).map_err(|_| KeepError::Nonsense),
        FrameKind::Failure => {
            let failure: Failure = decode(&frame.body).map_err(|_| KeepError::Nonsense)?;
            Err(KeepError::Refused(match (failure.field, failure.expected) {
                (Some(field), Some(expected)) => format!("{field} is wrong: expected {expected}, got {}", failure.message),
                _ => failure.message,
            }))
        }
        _ => Err(KeepError::Nonsense),
    }
}

fn receive(stream: &mut UnixStream) -> Result<Frame, KeepError> {
    let mut decoder = Decoder::new(MAX_KEEP);
    let mut buffer = [0u8; 4096];
    loop {
        if let Some(frame) = decoder.next_frame().map_err(|_| KeepError::Nonsense)? {
            return Ok(frame);
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err(KeepError::Lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => decoder.feed(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(KeepError::Lost(error)),
        }
    }
}
