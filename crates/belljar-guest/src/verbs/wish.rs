//! Verbs about what programs inside ask of the host.

use belljar_guest_line::Driven;
use belljar_guest_protocol::wire::AnswerWish;

use super::output::items;
use crate::call::{Call, CallError};

/// Tells wishes until somebody else listens. Silent in between: a sandbox in which nothing happens costs neither side anything.
pub(super) async fn listen(call: &mut Call<'_>) -> Result<(), CallError> {
    let mut listener = call.agent.wishes.listen();
    call.respond(&()).await?;
    call.line.bear_silence();
    loop {
        match call.line.drive(listener.next()).await? {
            Driven::Done(Some(wish)) => items(call, &[wish]).await?,
            Driven::Done(None) => return call.end().await,
            Driven::Frame(_) => return Err(CallError::OutOfTurn),
        }
    }
}

pub(super) async fn answer(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: AnswerWish = call.body()?;
    call.agent.wishes.answer(body);
    call.respond(&()).await
}
