//! Verbs about processes: start them, find them again after the client was gone, feed, signal and wait for them.

use std::time::Duration;

use belljar_guest_protocol::wire::{Attach, ProcessBody, ProcessOnly, Resize, SignalProcess, Start, Taken, Wait, Waited, WriteStdin};
use belljar_types::{Invalid, Offsets, ProcessSpec, PtySize, Signal};

use super::output;
use crate::call::{Call, CallError};

/// How long a process that was killed is waited for. Some do not die at once: the kernel is busy for them.
const DYING_AT_MOST: Duration = Duration::from_secs(2);
/// Process descriptions that fit in one frame with room to spare.
const AT_ONCE: usize = 4;

pub(super) async fn start(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Start = call.body()?;
    let attach = body.attach;
    let spec = ProcessSpec::try_from(body)?;
    let processes = std::rc::Rc::clone(&call.agent.processes);
    let process = call.wait(processes.start(spec)).await??;
    let reader = attach.then(|| process.attach(Offsets::default()));
    call.respond(&ProcessBody::from(&process.info())).await?;
    match reader {
        Some(reader) => output::send(call, reader, Offsets::default()).await,
        None => Ok(()),
    }
}

pub(super) async fn list(call: &mut Call<'_>) -> Result<(), CallError> {
    let bodies: Vec<_> = call.agent.processes.all().iter().map(|process| ProcessBody::from(&process.info())).collect();
    for some in bodies.chunks(AT_ONCE) {
        output::items(call, some).await?;
    }
    call.end().await
}

pub(super) async fn attach(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Attach = call.body()?;
    let process = call.agent.processes.find(&body.id)?;
    let from = Offsets { stdout: body.stdout, stderr: body.stderr };
    let written = process.info().written;
    for (field, asked, end) in [("from.stdout", from.stdout, written.stdout), ("from.stderr", from.stderr, written.stderr)] {
        if asked > end {
            return Err(Invalid::new(field, format!("at most {end}, which is what was written so far"), asked.to_string()).into());
        }
    }
    let reader = process.attach(from);
    call.respond(&ProcessBody::from(&process.info())).await?;
    output::send(call, reader, from).await
}

pub(super) async fn wait(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Wait = call.body()?;
    let process = call.agent.processes.find(&body.id)?;
    let end = async {
        loop {
            match process.exit() {
                Some(exit) => return exit,
                None => process.changed.notified().await,
            }
        }
    };
    let exit = call.wait(tokio::time::timeout(Duration::from_millis(body.at_most_millis), end)).await?;
    call.respond(&Waited { exit: exit.ok().map(Into::into) }).await
}

pub(super) async fn write_stdin(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: WriteStdin = call.body()?;
    let process = call.agent.processes.find(&body.id)?;
    let mut offset = body.offset;
    while let Some(bytes) = call.content().await? {
        call.wait(process.write_stdin(offset, &bytes)).await??;
        offset = offset.saturating_add(bytes.len() as u64);
    }
    call.respond(&Taken { offset: process.info().stdin_offset }).await
}

pub(super) async fn close_stdin(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: ProcessOnly = call.body()?;
    let process = call.agent.processes.find(&body.id)?;
    call.wait(process.close_stdin()).await??;
    call.respond(&()).await
}

pub(super) async fn signal(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: SignalProcess = call.body()?;
    let signal = Signal::new(i32::from(body.signal))?;
    let process = call.agent.processes.find(&body.id)?;
    process.signal(signal.number())?;
    if signal == Signal::KILL {
        // Whoever kills a process expects that it is not there any more.
        let _too_long = call.wait(tokio::time::timeout(DYING_AT_MOST, process.gone())).await?;
    }
    call.respond(&()).await
}

pub(super) async fn resize(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Resize = call.body()?;
    if body.columns == 0 || body.rows == 0 {
        return Err(Invalid::new("size", "at least 1 column and 1 row", "0").into());
    }
    call.agent.processes.find(&body.id)?.resize(PtySize { columns: body.columns, rows: body.rows })?;
    call.respond(&()).await
}
