//! Content that goes up. The agent may say no at any moment, so it is listened to all the while.

use std::time::Duration;

use belljar_guest_line::Driven;
use belljar_guest_protocol::{Frame, FrameKind, MAX_FRAME};
use belljar_ports::{ByteStream, GuestError};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::error::too_slow;
use crate::exchange::Exchange;

/// As large as what the agent sends: each frame wakes the other side.
const PIECE: usize = MAX_FRAME as usize;

/// Sends everything and takes the answer. No piece, and not the answer either, may take longer than `limit`: an agent that only says that it is
/// still there would keep its caller for ever.
pub(crate) async fn send_all(mut exchange: Exchange, mut content: ByteStream, limit: Duration) -> Result<(Exchange, Frame), GuestError> {
    let verb = exchange.verb;
    loop {
        let mut piece = match exchange.drive(content.next()).await {
            Ok(Driven::Done(Some(piece))) => piece?,
            Ok(Driven::Done(None)) => break,
            Ok(Driven::Frame(frame)) => return Err(exchange.out_of_turn(&frame)),
            Err(error) => return Err(give_up(exchange, error).await),
        };
        while !piece.is_empty() {
            let some = piece.split_to(piece.len().min(PIECE));
            let sent = tokio::time::timeout(limit, exchange.send(FrameKind::Data, some)).await;
            sent.unwrap_or_else(|_| Err(too_slow(verb)))?;
            match exchange.received() {
                Ok(None) => {}
                Ok(Some(frame)) => return Err(exchange.out_of_turn(&frame)),
                Err(error) => return Err(give_up(exchange, error).await),
            }
        }
    }
    let answer = async {
        exchange.send(FrameKind::End, Bytes::new()).await?;
        exchange.receive().await
    };
    match tokio::time::timeout(limit, answer).await {
        Ok(Ok(frame)) => Ok((exchange, frame)),
        Ok(Err(error)) => {
            if is_refusal(&error) {
                exchange.finish();
            }
            Err(error)
        }
        Err(_) => Err(too_slow(verb)),
    }
}

/// The agent said no and waits for the end of the content; after that the connection can be used again.
async fn give_up(mut exchange: Exchange, error: GuestError) -> GuestError {
    if is_refusal(&error) && exchange.send(FrameKind::End, Bytes::new()).await.is_ok() {
        exchange.finish();
    }
    error
}

fn is_refusal(error: &GuestError) -> bool {
    matches!(error, GuestError::Refused { .. } | GuestError::Invalid(_) | GuestError::NoProcess { .. } | GuestError::TooOld { .. })
}
