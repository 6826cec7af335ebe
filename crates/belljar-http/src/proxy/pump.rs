//! A connection to a program as an ordinary byte stream, carried by a task that keeps the sandbox in use while the connection lives.

use belljar_core::{GuestConnection, GuestError, Session};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

/// Bytes under way in each direction; whoever is faster waits.
const BUFFER: usize = 64 << 10;

pub(super) fn pump(connection: Box<dyn GuestConnection>, session: Session) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    tokio::spawn(async move {
        let _in_use = session;
        // Both ends learn of the end by their stream being closed; there is nobody else to tell.
        let _ = carry(connection, ours).await;
    });
    theirs
}

async fn carry(mut connection: Box<dyn GuestConnection>, stream: DuplexStream) -> Result<(), GuestError> {
    let (mut from_client, mut to_client): (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) = tokio::io::split(stream);
    let (mut client_ended, mut program_ended) = (false, false);
    let mut buffer = BytesMut::new();
    while !(client_ended && program_ended) {
        buffer.reserve(BUFFER / 4);
        tokio::select! {
            read = connection.read(), if !program_ended => match read? {
                Some(bytes) => {
                    if to_client.write_all(&bytes).await.is_err() {
                        return Ok(());
                    }
                }
                None => {
                    program_ended = true;
                    // The client may have gone already.
                    let _ = to_client.shutdown().await;
                }
            },
            read = from_client.read_buf(&mut buffer), if !client_ended => match read {
                Ok(0) | Err(_) => {
                    client_ended = true;
                    connection.finish().await?;
                }
                Ok(_) => {
                    let bytes: Bytes = buffer.split().freeze();
                    connection.write(bytes).await?;
                }
            },
        }
    }
    Ok(())
}
