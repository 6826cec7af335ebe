//! One call: which verb it is, its answer or its failure. A verb that is not known is a failure like any other, not a hang-up.

use std::future::Future;
use std::rc::Rc;

use belljar_guest_line::{AsyncStream, Driven, Line, LineError};
use belljar_guest_protocol::{Failure, FailureCode, Frame, FrameKind, Verb, decode, encode};
use belljar_types::{Invalid, UserName};
use bytes::{Buf, Bytes};

use crate::agent::Agent;
use crate::verbs;

/// Why a call did not end well.
#[derive(Debug)]
pub(crate) enum CallError {
    /// Tell the client; the connection stays.
    Failure(Failure),
    /// The connection is of no use any more, whatever the reason.
    Line,
    /// The client broke the protocol.
    OutOfTurn,
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Invalid> for CallError {
    fn from(invalid: Invalid) -> Self {
        Self::Failure(invalid.into())
    }
}

impl From<LineError> for CallError {
    fn from(_: LineError) -> Self {
        Self::Line
    }
}

/// What came first.
pub(crate) enum ContentOr<T> {
    /// A piece of content, or its end.
    Content(Option<Bytes>),
    /// The end of the work.
    Done(T),
}

/// A call being answered.
pub(crate) struct Call<'a> {
    pub(crate) agent: &'a Rc<Agent>,
    pub(crate) line: &'a mut Line<Box<dyn AsyncStream>>,
    body: Bytes,
    /// The client still sends content that has to be taken before the next call.
    content_comes: bool,
}

impl<'a> Call<'a> {
    /// Answers one request. An error means that the connection cannot be used any more.
    pub(crate) async fn answer(
        agent: &'a Rc<Agent>,
        line: &'a mut Line<Box<dyn AsyncStream>>,
        generation: u16,
        mut request: Bytes,
    ) -> Result<(), CallError> {
        let number = if request.len() >= 2 { request.get_u16_le() } else { 0 };
        let known = Verb::from_number(number).filter(|verb| verb.since() <= generation);
        let content_comes = matches!(known, Some(Verb::WriteFile | Verb::WriteStdin));
        let mut call = Self { agent, line, body: request, content_comes };
        let answered = match known {
            Some(verb) => verbs::answer(&mut call, verb).await,
            None => Err(Failure::of(FailureCode::UnknownVerb, format!("no verb {number} in generation {generation}")).into()),
        };
        match answered {
            Err(CallError::Failure(failure)) => {
                call.line.send(FrameKind::Failure, encode(&failure).into()).await?;
                while call.content_comes {
                    call.content().await?;
                }
                Ok(())
            }
            other => other,
        }
    }

    /// The request's body.
    pub(crate) fn body<T: for<'b> minicbor::Decode<'b, ()>>(&self) -> Result<T, Failure> {
        decode(&self.body).map_err(|error| {
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Failure::of(FailureCode::Invalid, format!("the request's body makes no sense: {why}"))
        })
    }

    /// Waits for something while the connection is kept alive; stops waiting if the client leaves.
    pub(crate) async fn wait<F: Future>(&mut self, work: F) -> Result<F::Output, CallError> {
        Ok(self.line.hold(work).await?)
    }

    pub(crate) async fn respond<T: minicbor::Encode<()>>(&mut self, body: &T) -> Result<(), CallError> {
        Ok(self.line.send(FrameKind::Response, encode(body).into()).await?)
    }

    /// Says that no more items or bytes come.
    pub(crate) async fn end(&mut self) -> Result<(), CallError> {
        Ok(self.line.send(FrameKind::End, Bytes::new()).await?)
    }

    /// The next piece of content from the client; `None` at its end.
    pub(crate) async fn content(&mut self) -> Result<Option<Bytes>, CallError> {
        let frame = self.line.receive().await?;
        self.taken(frame)
    }

    /// The next piece of content or the end of `work`, whichever comes first; `work` can be given again.
    pub(crate) async fn content_or<F: Future>(&mut self, work: F) -> Result<ContentOr<F::Output>, CallError> {
        match self.line.drive(work).await? {
            Driven::Frame(frame) => self.taken(frame).map(ContentOr::Content),
            Driven::Done(output) => Ok(ContentOr::Done(output)),
        }
    }

    fn taken(&mut self, frame: Frame) -> Result<Option<Bytes>, CallError> {
        match frame.kind {
            FrameKind::Data => Ok(Some(frame.body)),
            FrameKind::End => {
                self.content_comes = false;
                Ok(None)
            }
            _ => Err(CallError::OutOfTurn),
        }
    }
}

/// A user's name in a request.
pub(crate) fn user_name(text: Option<&String>) -> Result<Option<UserName>, Failure> {
    Ok(text.map(|name| name.parse()).transpose()?)
}
