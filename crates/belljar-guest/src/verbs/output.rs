//! Sends a process's output to a reader, from its offsets to the process's end.

use belljar_guest_line::Driven;
use belljar_guest_protocol::wire::{Ack, Notice, OutputHeader, stream_number};
use belljar_guest_protocol::{Failure, FailureCode, Frame, FrameKind, decode, encode};
use belljar_types::{Offsets, StreamKind};
use bytes::Bytes;

use crate::call::{Call, CallError};
use crate::process::{Found, ReaderGuard};

const PIECE: usize = 64 << 10;

/// Sends output until the process has ended and all of it was sent.
pub(super) async fn send(call: &mut Call<'_>, reader: ReaderGuard, from: Offsets) -> Result<(), CallError> {
    let mut at = from;
    loop {
        while let Some(frame) = call.line.received()? {
            acknowledge(&reader, &frame)?;
        }
        // In this order: when the end is seen, all output was seen before.
        let exit = reader.process.exit();
        let sent_stdout = send_piece(call, &reader, StreamKind::Stdout, &mut at.stdout).await?;
        let sent_stderr = send_piece(call, &reader, StreamKind::Stderr, &mut at.stderr).await?;
        if sent_stdout || sent_stderr {
            continue;
        }
        if let Some(exit) = exit {
            call.line.send(FrameKind::Notice, encode(&Notice::Exit(exit.into())).into()).await?;
            return call.end().await;
        }
        if let Driven::Frame(frame) = call.line.drive(reader.process.changed.notified()).await? {
            acknowledge(&reader, &frame)?;
        }
    }
}

async fn send_piece(call: &mut Call<'_>, reader: &ReaderGuard, stream: StreamKind, at: &mut u64) -> Result<bool, CallError> {
    match reader.process.read(stream, *at, PIECE) {
        Found::Nothing => Ok(false),
        Found::Gap(to) => {
            let gap = Notice::Gap { stream: stream_number(stream), from: *at, to };
            call.line.send(FrameKind::Notice, encode(&gap).into()).await?;
            *at = to;
            Ok(true)
        }
        Found::Bytes(bytes) => {
            let header = OutputHeader { stream, offset: *at };
            *at += bytes.len() as u64;
            call.line.send_pair(FrameKind::Output, Bytes::copy_from_slice(&header.to_bytes()), bytes).await?;
            Ok(true)
        }
    }
}

fn acknowledge(reader: &ReaderGuard, frame: &Frame) -> Result<(), CallError> {
    if frame.kind != FrameKind::Ack {
        return Err(CallError::OutOfTurn);
    }
    let ack: Ack = decode(&frame.body).map_err(|_| Failure::of(FailureCode::Invalid, "an acknowledgement that makes no sense"))?;
    reader.acknowledge(Offsets { stdout: ack.stdout, stderr: ack.stderr });
    Ok(())
}

/// Sends a few items of a list.
pub(super) async fn items<T: minicbor::Encode<()>>(call: &mut Call<'_>, items: &[T]) -> Result<(), CallError> {
    Ok(call.line.send(FrameKind::Items, encode(items).into()).await?)
}
