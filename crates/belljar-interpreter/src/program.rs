//! The program inside that keeps the kernels: reached on the sandbox's loopback, and started if nobody listens there.
//!
//! Starting it twice does no harm: the second one finds the port taken, says so and ends.

use std::time::Duration;

use belljar_core::{GuestConnection, GuestError, OutputStream, Session};
use belljar_types::{GuestPath, Invalid, OutputEvent, ProcessId, ProcessSpec, SpoolPolicy, UserName, escape_untrusted};
use futures_util::StreamExt;

use crate::InterpreterError;

/// Where it listens.
const PORT: u16 = 49999;
const PROGRAM: &str = "/usr/bin/belljar-kernels";
/// What it is called among the sandbox's processes.
const TAG: &str = "belljar-kernels";
/// Linux's numbers for "nobody listens there" and "no such file".
const ECONNREFUSED: i32 = 111;
const ENOENT: i32 = 2;
/// A first kernel on a busy machine.
const SLOWEST_START: Duration = Duration::from_secs(120);
const LAST_WORDS: usize = 2000;

/// A connection to it.
pub(crate) async fn connect(session: &Session) -> Result<GuestConnection, InterpreterError> {
    match session.connect(PORT).await {
        Ok(connection) => Ok(connection),
        Err(GuestError::Refused { errno: ECONNREFUSED, .. }) => {
            start(session).await?;
            match session.connect(PORT).await {
                Ok(connection) => Ok(connection),
                Err(error) => Err(explained(session, error).await),
            }
        }
        Err(error) => Err(explained(session, error).await),
    }
}

/// Whether it is there to be started.
pub(crate) async fn is_installed(session: &Session) -> Result<bool, InterpreterError> {
    match session.stat(&GuestPath::new(PROGRAM)?, None).await {
        Ok(_) => Ok(true),
        Err(GuestError::Refused { errno: ENOENT, .. }) => Ok(false),
        Err(error) => Err(explained(session, error).await),
    }
}

/// What went wrong between here and the agent, as the end of the sandbox where that is the cause.
pub(crate) async fn explained(session: &Session, error: GuestError) -> InterpreterError {
    InterpreterError::Sandbox(session.explain(error).await)
}

async fn start(session: &Session) -> Result<(), InterpreterError> {
    let spec = ProcessSpec {
        id: ProcessId::random(),
        argv: vec![PROGRAM.into()],
        env: Default::default(),
        cwd: None,
        user: Some(root()?),
        stdin: false,
        pty: None,
        tag: Some(TAG.to_owned()),
        deadline: None,
        spool: SpoolPolicy { capacity: 64 << 10, ..SpoolPolicy::default() },
    };
    let output = match session.start_attached(&spec).await {
        Ok((_, output)) => output,
        Err(GuestError::Refused { errno: ENOENT, .. }) => {
            return Err(InterpreterError::NotInstalled { template: session.sandbox().template.to_string() });
        }
        Err(error) => return Err(explained(session, error).await),
    };
    match tokio::time::timeout(SLOWEST_START, listens(output)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Ended::Guest(error))) => Err(explained(session, error).await),
        Ok(Err(Ended::Saying(last_words))) => Err(InterpreterError::NotStarted { last_words }),
        Err(_) => Err(InterpreterError::Silent { after: SLOWEST_START }),
    }
}

/// Kernels may be used by everything in the sandbox that may use its loopback, and may do what the sandbox's own root may.
fn root() -> Result<UserName, Invalid> {
    "root".parse()
}

enum Ended {
    Guest(GuestError),
    Saying(String),
}

/// Waits for the word that it listens.
async fn listens(mut output: OutputStream) -> Result<(), Ended> {
    let mut said = Vec::new();
    while let Some(event) = output.next().await {
        match event.map_err(Ended::Guest)? {
            OutputEvent::Data { bytes, .. } => {
                said.extend_from_slice(&bytes);
                let is_word = |line: &[u8]| line == b"ready" || line == b"taken";
                if said.split(|byte| *byte == b'\n').any(is_word) {
                    return Ok(());
                }
                let excess = said.len().saturating_sub(LAST_WORDS);
                said.drain(..excess);
            }
            OutputEvent::Gap { .. } => {}
            OutputEvent::Exit(_) => break,
        }
    }
    Err(Ended::Saying(escape_untrusted(&said)))
}
