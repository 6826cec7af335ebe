//! A connection to a program inside, carried over the client's connection.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use belljar_guest_line::Driven;
use belljar_guest_protocol::wire::Connect;
use belljar_guest_protocol::{Failure, FrameKind};
use belljar_types::Invalid;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::call::{Call, CallError};

const PIECE: usize = 64 << 10;
const LONGEST_CONNECT: Duration = Duration::from_secs(10);

enum Moved {
    Read(std::io::Result<usize>),
    Wrote(std::io::Result<usize>),
}

pub(super) async fn connect(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Connect = call.body()?;
    if body.port == 0 {
        return Err(Invalid::new("port", "1 to 65535", "0").into());
    }
    let stream = call.wait(reach(body.port)).await??;
    call.respond(&()).await?;
    carry(call, stream).await
}

/// As a client inside would: the old address first, then the new one.
async fn reach(port: u16) -> Result<TcpStream, Failure> {
    let mut last = None;
    for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))] {
        match tokio::time::timeout(LONGEST_CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            // Nobody has the new address where there is none; the first refusal says more.
            Ok(Err(error)) => last = last.or(Some(error)),
            Err(_) => last = last.or(Some(std::io::ErrorKind::TimedOut.into())),
        }
    }
    let errno = last.as_ref().and_then(std::io::Error::raw_os_error).unwrap_or(0);
    let reason = last.map_or_else(String::new, |error| error.to_string());
    Err(Failure::refused(errno, format!("nothing inside takes connections on port {port}: {reason}")))
}

/// Moves bytes both ways until both have ended. Neither way waits for the other.
async fn carry(call: &mut Call<'_>, mut stream: TcpStream) -> Result<(), CallError> {
    let (mut from_program, mut to_program) = stream.split();
    let mut buffer = vec![0u8; PIECE];
    let mut pending = Bytes::new();
    let (mut program_ended, mut client_ended) = (false, false);
    while !(program_ended && client_ended && pending.is_empty()) {
        let has_pending = !pending.is_empty();
        let local = async {
            tokio::select! {
                read = from_program.read(&mut buffer), if !program_ended => Moved::Read(read),
                wrote = to_program.write(&pending), if has_pending => Moved::Wrote(wrote),
                else => std::future::pending().await,
            }
        };
        let moved = if has_pending || client_ended { Driven::Done(call.wait(local).await?) } else { call.line.drive(local).await? };
        match moved {
            Driven::Frame(frame) if frame.kind == FrameKind::Data => pending = frame.body,
            Driven::Frame(frame) if frame.kind == FrameKind::End => {
                client_ended = true;
                let _ = to_program.shutdown().await;
            }
            Driven::Frame(_) => return Err(CallError::OutOfTurn),
            Driven::Done(Moved::Read(Ok(count @ 1..))) => {
                let bytes = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
                call.line.send(FrameKind::Data, bytes).await?;
            }
            Driven::Done(Moved::Read(_)) => {
                program_ended = true;
                call.end().await?;
            }
            Driven::Done(Moved::Wrote(Ok(count))) => pending.advance(count.min(pending.len())),
            // The program takes no more; what the client still sends has nowhere to go.
            Driven::Done(Moved::Wrote(Err(_))) => pending.clear(),
        }
    }
    Ok(())
}
