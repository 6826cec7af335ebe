//! A connection to a program as an ordinary byte stream, carried by a task that keeps the sandbox in use while the connection lives.
//!
//! Neither direction waits for the other: a program may say much before it listens again, or never listen. When the client has gone, nobody is left
//! to wait for, whatever the program does: a sandbox must not stay in use by a program that does not read.

mod client_end;

use std::time::Duration;

use belljar_core::{GuestConnection, GuestError, GuestReader, GuestWriter};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

pub(super) use client_end::ClientEnd;

/// Bytes under way in each direction; whoever is faster waits.
const BUFFER: usize = 64 << 10;
/// How long a program may take over what a client that has gone said last.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Carries a connection; `in_use` is held until it has ended.
pub(super) fn pump(connection: GuestConnection, in_use: impl Send + 'static) -> ClientEnd {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (client, gone) = ClientEnd::new(theirs);
    tokio::spawn(async move {
        let _in_use = in_use;
        tokio::select! {
            // Both ends learn of the end by their stream being closed; there is nobody else to tell.
            _ = carry(connection, ours) => {}
            () = async { gone.await; tokio::time::sleep(LAST_WORDS).await } => {}
        }
    });
    client
}

async fn carry(connection: GuestConnection, stream: DuplexStream) -> Result<(), GuestError> {
    let (reader, writer) = connection.split();
    let (from_client, to_client) = tokio::io::split(stream);
    // What has ended stays open until the other direction has, too: dropped, it would end that one.
    tokio::try_join!(up(from_client, writer), down(reader, to_client)).map(drop)
}

async fn up(
    mut from_client: ReadHalf<DuplexStream>,
    mut writer: Box<dyn GuestWriter>,
) -> Result<(ReadHalf<DuplexStream>, Box<dyn GuestWriter>), GuestError> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(BUFFER / 4);
        match from_client.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => {
                writer.finish().await?;
                return Ok((from_client, writer));
            }
            Ok(_) => {
                let bytes: Bytes = buffer.split().freeze();
                writer.write(bytes).await?;
            }
        }
    }
}

async fn down(
    mut reader: Box<dyn GuestReader>,
    mut to_client: WriteHalf<DuplexStream>,
) -> Result<(Box<dyn GuestReader>, WriteHalf<DuplexStream>), GuestError> {
    while let Some(bytes) = reader.read().await? {
        if to_client.write_all(&bytes).await.is_err() {
            // The client has gone; what it said last is still on its way.
            return Ok((reader, to_client));
        }
    }
    // The client may have gone already.
    let _ = to_client.shutdown().await;
    Ok((reader, to_client))
}

#[cfg(test)]
mod tests;
