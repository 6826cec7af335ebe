//! The asker's side: has no rights of its own, hands everything over and waits.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;

use belljar_guest_line::{Driven, Line, LineError, Patience};
use belljar_guest_protocol::sudo::{SOCKET, SudoExit, SudoRequest, SudoSignal};
use belljar_guest_protocol::{Failure, Frame, FrameKind, MAX_REQUEST, decode, encode};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::options::{Asked, Options, parse};
use super::relay::Relay;
use crate::peer;
use crate::shell::{complain, say};

/// Another socket than the usual one; it only decides whom this program asks, which gives it nothing.
const OTHER_SOCKET: &str = "BELLJAR_SUDO_SOCKET";
const WRONG_USE: u8 = 1;

#[derive(Debug, thiserror::Error)]
enum SudoError {
    #[error("{0}")]
    Usage(String),
    #[error("the sandbox's agent does not answer at {}", path.display())]
    Connect {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Refused(String),
    #[error("lost the sandbox's agent")]
    Lost(#[source] LineError),
    #[error("prepare the terminal")]
    Terminal(#[source] io::Error),
    #[error("the sandbox's agent answered with nonsense")]
    Nonsense,
}

/// Runs as `sudo`.
pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let outcome = match parse(arguments) {
        Ok(Asked::Run(options)) => run(options),
        Ok(Asked::List) => {
            say("this sandbox lets its user run all commands as anybody, without a password");
            Ok(0)
        }
        Ok(Asked::Version) => {
            say(&format!("belljar sudo {}", crate::agent::VERSION));
            Ok(0)
        }
        Ok(Asked::Nothing) => Ok(0),
        Err(wrong) => Err(SudoError::Usage(wrong)),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain("sudo", &error);
            ExitCode::from(WRONG_USE)
        }
    }
}

fn run(options: Options) -> Result<u8, SudoError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SudoError::Terminal)?;
    let outcome = runtime.block_on(ask(options));
    // A thread may sit in a read of the terminal; nobody waits for it.
    runtime.shutdown_background();
    outcome
}

async fn ask(options: Options) -> Result<u8, SudoError> {
    let path = std::env::var_os(OTHER_SOCKET).map_or_else(|| SOCKET.into(), PathBuf::from);
    let stream = UnixStream::connect(&path).await.map_err(|source| SudoError::Connect { path: path.clone(), source })?;
    let mut relay = Relay::begin().map_err(SudoError::Terminal)?;
    let stdio = relay.as_ref().map_or_else(|| [0, 1, 2].map(standard), Relay::stdio);
    // A socket that was just connected has room for one byte.
    peer::introduce(&stream, &[0], &stdio).map_err(|source| SudoError::Connect { path, source })?;
    let mut line = Line::new(stream, MAX_REQUEST, Patience::default());
    line.begin(0);
    let request = request(options, relay.is_some());
    line.send(FrameKind::Request, encode(&request).into()).await.map_err(SudoError::Lost)?;
    if let Some(relay) = &mut relay {
        relay.let_go();
    }
    let frame = wait(&mut line, relay.as_mut()).await?;
    if let Some(mut relay) = relay {
        relay.drain().await;
    }
    outcome(&frame)
}

fn standard(number: i32) -> BorrowedFd<'static> {
    match number {
        0 => rustix::stdio::stdin(),
        1 => rustix::stdio::stdout(),
        _ => rustix::stdio::stderr(),
    }
}

fn request(options: Options, terminal: bool) -> SudoRequest {
    let env = std::env::vars_os().map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'=').into());
    let cwd = std::env::current_dir().map_or_else(|_| b"/".to_vec(), |cwd| cwd.into_os_string().into_vec());
    SudoRequest {
        argv: options.argv.into_iter().map(Into::into).collect(),
        env: env.collect(),
        cwd: options.directory.unwrap_or(cwd).into(),
        user: options.user,
        keep_env: options.keep_env,
        login: options.login,
        shell: options.shell,
        terminal,
        group: options.group,
        set: options.set.into_iter().map(Into::into).collect(),
    }
}

/// Passes signals and terminal bytes on until the agent answers.
async fn wait(line: &mut Line<UnixStream>, mut relay: Option<&mut Relay>) -> Result<Frame, SudoError> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit(), SignalKind::user_defined1()];
    let mut signals = Vec::new();
    for kind in kinds {
        signals.push((kind, signal(kind).map_err(SudoError::Terminal)?));
    }
    loop {
        let local = async {
            tokio::select! {
                number = any(&mut signals) => Some(number),
                () = step(relay.as_deref_mut()) => None,
            }
        };
        match line.drive(local).await.map_err(SudoError::Lost)? {
            Driven::Frame(frame) => return Ok(frame),
            Driven::Done(Some(signal)) => {
                line.send(FrameKind::Notice, encode(&SudoSignal { signal }).into()).await.map_err(SudoError::Lost)?;
            }
            Driven::Done(None) => {}
        }
    }
}

async fn step(relay: Option<&mut Relay>) {
    match relay {
        Some(relay) => relay.step().await,
        None => std::future::pending().await,
    }
}

async fn any(signals: &mut [(SignalKind, Signal)]) -> u8 {
    std::future::poll_fn(|cx| {
        for (kind, signal) in signals.iter_mut() {
            if signal.poll_recv(cx).is_ready() {
                return std::task::Poll::Ready(u8::try_from(kind.as_raw_value()).unwrap_or(15));
            }
        }
        std::task::Poll::Pending
    })
    .await
}

fn outcome(frame: &Frame) -> Result<u8, SudoError> {
    match frame.kind {
        FrameKind::Response => {
            let exit: SudoExit = decode(&frame.body).map_err(|_| SudoError::Nonsense)?;
            let signal = exit.signal.map(|signal| 128 + signal);
            Ok(exit.code.and_then(|code| u8::try_from(code).ok()).or(signal).unwrap_or(1))
        }
        FrameKind::Failure => {
            let failure: Failure = decode(&frame.body).map_err(|_| SudoError::Nonsense)?;
            Err(SudoError::Refused(failure.message))
        }
        _ => Err(SudoError::Nonsense),
    }
}
