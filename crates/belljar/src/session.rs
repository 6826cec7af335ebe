//! A process in a sandbox, driven from here: its output is printed, input and signals are passed on, and its end is this program's end.
//!
//! ```text
//!   standard input ─► thread ─► feeder ──POST at offset──►┐
//!                                                          ├─ process
//!   standard output ◄─ printer ◄─ follower ◄─from offset──┘
//! ```
//!
//! Each arrow is a task of its own, so a full pipe on one side never stops the other: a large paste and its echo pass each other. When the server
//! goes away, follower and feeder wait for it for a minute and go on at the byte where they were. The process does not notice.

mod input;
mod interrupts;
mod printer;

use std::sync::Arc;
use std::time::Duration;

use belljar_client::{Client, Feeder, Follower, Link, Patience, StartProcess};
use belljar_types::{ExitStatus, KillCause, Offsets, ProcessId, SandboxId, Signal, Termination};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::command_error::CommandError;
use crate::screen;
use crate::terminal::RawTerminal;
use input::{Input, Left};
use interrupts::{Interrupt, Interrupts};
pub(crate) use printer::Style;
use printer::print;
pub(crate) use printer::print_event;

/// How long a lost server is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long somebody who leaves waits for the last word to arrive.
const LAST_WORD: Duration = Duration::from_secs(3);
/// A loss that is mended sooner is not worth a remark.
const WORTH_A_REMARK: Duration = Duration::from_secs(1);

/// How a process is driven.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Pass standard input on.
    pub(crate) input: bool,
    /// Keys go through as they are typed, and the window's size follows this one's.
    pub(crate) raw: bool,
    /// How output is printed.
    pub(crate) style: Style,
}

/// Starts the process and drives it to its end. The code is the process's, or 128 and the signal that ended it or us.
pub(crate) async fn drive(client: &Client, sandbox: &SandboxId, start: StartProcess, manner: Manner) -> Result<u8, CommandError> {
    let attempt =
        || CommandError::asked(format!("run {} in sandbox {sandbox}", screen::safe(start.argv.first().map_or("", String::as_str))));
    let patience = Arc::new(Patience::new(PATIENCE));
    let interrupts = Interrupts::listen(manner.raw).map_err(|source| CommandError::Here { operation: "listen for signals", source })?;
    let reading = patience.insist(|| client.start_attached(sandbox, &start)).await.map_err(attempt())?;
    let follower =
        Follower::new(client.clone(), sandbox.clone(), start.id.clone(), Offsets::default(), Arc::clone(&patience)).resuming(reading);
    let _terminal = match manner.raw {
        true => RawTerminal::enter().map_err(|source| CommandError::Here { operation: "make the terminal raw", source })?,
        false => None,
    };
    let printing = tokio::spawn(print(follower, manner.style));
    let feeder = Feeder::new(client.clone(), sandbox.clone(), start.id.clone(), 0, Arc::clone(&patience));
    let feeding = manner.input.then(|| tokio::spawn(Input::new(manner.raw).feed(feeder)));
    let remarks = tokio::spawn(tell_of_losses(patience.link(), manner.raw));
    let driven = Driven { client: client.clone(), sandbox: sandbox.clone(), process: start.id.clone() };
    let ended = driven.until_the_end(printing, feeding, interrupts).await;
    remarks.abort();
    match ended.map_err(|error| error.or_told(attempt))? {
        Ended::Process(status) => Ok(code_of(status)),
        Ended::Here(signal) => Ok(128 + signal),
    }
}

enum Ended {
    Process(ExitStatus),
    /// We were told to go, by a signal of this number.
    Here(u8),
}

/// Why driving ended badly.
pub(crate) enum Broken {
    Lost(belljar_client::ClientError),
    Told(CommandError),
}

impl Broken {
    fn or_told<F: FnOnce(belljar_client::ClientError) -> CommandError>(self, attempt: impl FnOnce() -> F) -> CommandError {
        match self {
            Self::Lost(error) => attempt()(error),
            Self::Told(error) => error,
        }
    }
}

struct Driven {
    client: Client,
    sandbox: SandboxId,
    process: ProcessId,
}

impl Driven {
    async fn until_the_end(
        &self,
        mut printing: JoinHandle<Result<ExitStatus, Broken>>,
        mut feeding: Option<JoinHandle<Result<Left, belljar_client::ClientError>>>,
        mut interrupts: Interrupts,
    ) -> Result<Ended, Broken> {
        let mut signals_sent = 0;
        loop {
            tokio::select! {
                printed = &mut printing => {
                    return match printed {
                        Ok(Ok(status)) => Ok(Ended::Process(status)),
                        Ok(Err(Broken::Told(CommandError::Silent(silent)))) => {
                            // Whoever read our output left: the process learns it as it would here.
                            self.tell(Signal::new(13)).await;
                            Err(Broken::Told(silent.into()))
                        }
                        Ok(Err(broken)) => Err(broken),
                        Err(_panicked) => Err(Broken::Told(CommandError::Refused("printing the output failed".to_owned()))),
                    };
                }
                fed = async { match &mut feeding { Some(task) => task.await, None => std::future::pending().await } } => {
                    feeding = None;
                    match fed {
                        Ok(Ok(Left::AtEnd)) | Err(_) => {}
                        Ok(Ok(Left::ByKeys)) => {
                            self.tell(Signal::new(1)).await;
                            return Ok(Ended::Here(1));
                        }
                        Ok(Err(error)) => return Err(Broken::Lost(error)),
                    }
                }
                interrupt = interrupts.next() => match interrupt {
                    Interrupt::Resized(size) => {
                        // A size that does not arrive is mended by the next one.
                        let _ = self.client.resize(&self.sandbox, &self.process, size).await;
                    }
                    Interrupt::Signal(number) if signals_sent > 0 => {
                        self.tell(Ok(Signal::KILL)).await;
                        return Ok(Ended::Here(number));
                    }
                    Interrupt::Signal(number) => {
                        signals_sent += 1;
                        self.tell(Signal::new(i32::from(number))).await;
                        if interrupts.ends_at_once(number) {
                            return Ok(Ended::Here(number));
                        }
                    }
                },
            }
        }
    }

    /// Sends a signal if that can be done soon; a process that has ended needs none.
    async fn tell(&self, signal: Result<Signal, belljar_types::Invalid>) {
        if let Ok(signal) = signal {
            let _ = tokio::time::timeout(LAST_WORD, self.client.signal(&self.sandbox, &self.process, signal)).await;
        }
    }
}

/// Says when the server has been away for a while, and when it is back.
async fn tell_of_losses(mut link: watch::Receiver<Link>, raw: bool) {
    let end = if raw { "\r" } else { "" };
    loop {
        if link.wait_for(|link| *link == Link::Lost).await.is_err() {
            return;
        }
        if tokio::time::timeout(WORTH_A_REMARK, link.wait_for(|link| *link == Link::Up)).await.is_ok() {
            continue;
        }
        screen::remark(&format!("{end}belljar: the server does not answer; trying again for {} s{end}", PATIENCE.as_secs()));
        if link.wait_for(|link| *link == Link::Up).await.is_err() {
            return;
        }
        screen::remark(&format!("{end}belljar: the server is back{end}"));
    }
}

fn code_of(status: ExitStatus) -> u8 {
    match status.cause {
        Some(KillCause::Deadline) => screen::remark("belljar: the command was ended because its time was up (--timeout)"),
        Some(KillCause::OutOfMemory) => {
            screen::remark("belljar: the command was killed: the sandbox needed more memory than it is allowed (--memory)");
        }
        Some(KillCause::Overflow) => screen::remark("belljar: the command was ended because it wrote more than is kept"),
        None => {}
    }
    match status.termination {
        Termination::Exited(code) => u8::try_from(code & 0xff).unwrap_or(u8::MAX),
        Termination::Signaled(signal) => 128_u8.saturating_add(signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_a_shell_shows() {
        let code = |termination| code_of(ExitStatus { termination, cause: None });
        assert_eq!(code(Termination::Exited(0)), 0);
        assert_eq!(code(Termination::Exited(42)), 42);
        assert_eq!(code(Termination::Exited(256)), 0);
        assert_eq!(code(Termination::Signaled(9)), 137);
        assert_eq!(code(Termination::Signaled(64)), 192);
    }
}
