//! A process's output as lines, and the place from which a client that was cut off goes on.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::HeaderMap;
use belljar_core::{CoreError, OutputStream, Session};
use belljar_http::Problem;
use belljar_types::{Invalid, Offsets, OutputEvent, ProcessInfo, StreamKind};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};

use super::{Line, Piece, TextPieces};
use crate::dto::{OutputLine, OutputQuery};
use crate::translate::{exit_view, process_view, stream_word, to_base64};

/// After a sandbox began to end, what is under way still gets this long.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where to begin.
pub(crate) struct Resume;

impl Resume {
    /// From the query, or, for a client of server-sent events that comes back by itself, from the id of its last event.
    pub(crate) fn offsets(query: &OutputQuery, headers: &HeaderMap) -> Result<Offsets, Invalid> {
        let last = headers.get("last-event-id").map(|value| {
            let text = value.to_str().unwrap_or_default();
            let read = || {
                let (stdout, stderr) = text.split_once(',')?;
                Some(Offsets { stdout: stdout.parse().ok()?, stderr: stderr.parse().ok()? })
            };
            read().ok_or_else(|| Invalid::new("Last-Event-ID", "what `id` of an event said", text))
        });
        let last = last.transpose()?.unwrap_or_default();
        Ok(Offsets { stdout: query.stdout.unwrap_or(last.stdout), stderr: query.stderr.unwrap_or(last.stderr) })
    }
}

/// Turns output into lines.
pub(crate) struct OutputLines {
    session: Session,
    ended: BoxFuture<'static, ()>,
    events: OutputStream,
    stdout: TextPieces,
    stderr: TextPieces,
    given: Offsets,
    ready: VecDeque<Line>,
    is_over: bool,
}

impl OutputLines {
    /// Lines of `events`, which begin at `from`; first the process itself, if it was just started.
    pub(crate) fn of(
        session: Session,
        events: OutputStream,
        from: Offsets,
        started: Option<&ProcessInfo>,
    ) -> impl Stream<Item = Line> + Send + 'static {
        let watched = session.clone();
        let ended = async move {
            watched.ended().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        let started = started.map(|info| Line::new(&OutputLine::Started { process: Box::new(process_view(info)) }));
        let lines = Self {
            session,
            ended: ended.boxed(),
            events,
            stdout: TextPieces::default(),
            stderr: TextPieces::default(),
            given: from,
            ready: started.into_iter().collect(),
            is_over: false,
        };
        futures_util::stream::unfold(lines, |mut lines| async move { lines.next().await.map(|line| (line, lines)) })
    }

    async fn next(&mut self) -> Option<Line> {
        while self.ready.is_empty() && !self.is_over {
            let event = tokio::select! {
                biased;
                event = self.events.next() => event,
                () = &mut self.ended => None,
            };
            match event {
                Some(Ok(event)) => self.take(event),
                Some(Err(error)) => {
                    let error = self.session.explain(error).await;
                    self.fail(error);
                }
                None => self.fail(how_it_ended(&self.session)),
            }
        }
        self.ready.pop_front()
    }

    fn take(&mut self, event: OutputEvent) {
        match event {
            OutputEvent::Data { stream, offset, bytes } => {
                let piece = self.pieces(stream).take(offset, &bytes);
                self.give(stream, piece);
            }
            OutputEvent::Gap { stream, from, to } => {
                let held = self.pieces(stream).finish();
                self.give(stream, held);
                self.advance(stream, to);
                let line = Line::new(&OutputLine::Gap { stream: stream_word(stream), from, to }).with_id(self.id());
                self.ready.push_back(line);
            }
            OutputEvent::Exit(exit) => {
                self.flush();
                self.ready.push_back(Line::new(&OutputLine::Exit(exit_view(exit))).with_id(self.id()));
                self.is_over = true;
            }
        }
    }

    fn fail(&mut self, error: CoreError) {
        self.flush();
        let problem = serde_json::to_value(Problem::from(error).body(None)).unwrap_or_default();
        self.ready.push_back(Line::new(&OutputLine::Error { problem }));
        self.is_over = true;
    }

    fn flush(&mut self) {
        for stream in [StreamKind::Stdout, StreamKind::Stderr] {
            let held = self.pieces(stream).finish();
            self.give(stream, held);
        }
    }

    fn give(&mut self, stream: StreamKind, piece: Option<Piece>) {
        let Some(piece) = piece else { return };
        self.advance(stream, piece.end());
        let stream = stream_word(stream);
        let line = match piece {
            Piece::Text { offset, text } => OutputLine::Data { stream, offset, text: Some(text), base64: None },
            Piece::Binary { offset, bytes } => OutputLine::Data { stream, offset, text: None, base64: Some(to_base64(&bytes)) },
        };
        let line = Line::new(&line).with_id(self.id());
        self.ready.push_back(line);
    }

    fn pieces(&mut self, stream: StreamKind) -> &mut TextPieces {
        match stream {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
        }
    }

    fn advance(&mut self, stream: StreamKind, to: u64) {
        match stream {
            StreamKind::Stdout => self.given.stdout = to,
            StreamKind::Stderr => self.given.stderr = to,
        }
    }

    fn id(&self) -> String {
        format!("{},{}", self.given.stdout, self.given.stderr)
    }
}

/// Output that ends without an exit ended with its sandbox.
pub(crate) fn how_it_ended(session: &Session) -> CoreError {
    let sandbox = session.sandbox();
    match &sandbox.end {
        Some(end) => CoreError::Ended { id: sandbox.id.clone(), end: end.clone() },
        None => CoreError::WrongState { id: sandbox.id.clone(), state: sandbox.state, verb: "read on" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_goes_on_where_its_last_event_ended() {
        let headers = |id: &'static str| HeaderMap::from_iter([("last-event-id".parse().unwrap(), id.parse().unwrap())]);
        let query = |stdout| OutputQuery { stdout, stderr: None };
        assert_eq!(Resume::offsets(&query(None), &headers("5,7")).unwrap(), Offsets { stdout: 5, stderr: 7 });
        assert_eq!(Resume::offsets(&query(Some(1)), &headers("5,7")).unwrap(), Offsets { stdout: 1, stderr: 7 });
        assert_eq!(Resume::offsets(&query(None), &HeaderMap::new()).unwrap(), Offsets::default());
        assert_eq!(Resume::offsets(&query(None), &headers("5")).unwrap_err().field, "Last-Event-ID");
    }
}
