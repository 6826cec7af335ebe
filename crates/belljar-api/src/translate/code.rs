//! Code, contexts and what comes of them.

use axum::http::StatusCode;
use belljar_http::Problem;
use belljar_interpreter::{Context, Event, InterpreterError, Refusal, Run, Where};
use belljar_types::{Invalid, Timestamp};

use super::{fractional_seconds, moment};
use crate::dto::{CodeErrorView, CodeLineView, CodeOutcome, CodeRequest, CodeResultView, ContextView};

/// The language of those who name none.
pub(crate) const DEFAULT_LANGUAGE: &str = "python";
/// What one answer holds of all streams and results together.
const MOST_IN_ONE_ANSWER: usize = 16 << 20;

/// Code to run.
pub(crate) fn run(request: CodeRequest) -> Result<Run, Invalid> {
    let place = match (request.context, request.language) {
        (Some(_), Some(language)) => return Err(Invalid::new("language", "nothing, because `context` is given too", language)),
        (Some(context), None) => Where::Context(context.parse()?),
        (None, language) => Where::Language(language.unwrap_or_else(|| DEFAULT_LANGUAGE.to_owned())),
    };
    let deadline = request.timeout_seconds.map(|value| fractional_seconds("timeout_seconds", value)).transpose()?;
    Ok(Run { place, env: request.env, deadline, ..Run::new(DEFAULT_LANGUAGE, request.code) })
}

/// A line of a stream; none for an event that has no word here.
pub(crate) fn code_line(event: Event) -> Option<CodeLineView> {
    Some(match event {
        Event::Began { count } => CodeLineView::Began { count },
        Event::Stdout { text, at } => CodeLineView::Stdout { text, at: moment(Timestamp(at)) },
        Event::Stderr { text, at } => CodeLineView::Stderr { text, at: moment(Timestamp(at)) },
        Event::Result { main, formats } => CodeLineView::Result(CodeResultView { main, formats }),
        Event::Error { name, value, traceback } => CodeLineView::Error(CodeErrorView { name, value, traceback }),
        Event::Lost { message } => CodeLineView::Lost { message },
        Event::End => CodeLineView::End,
        _ => return None,
    })
}

/// All events together, as far as one answer holds them.
#[derive(Default)]
pub(crate) struct Collected {
    outcome: CodeOutcome,
    bytes: usize,
}

impl Collected {
    /// Takes the next event.
    pub(crate) fn take(&mut self, event: Event) {
        match event {
            Event::Began { count } => self.outcome.count = Some(count),
            Event::Stdout { text, .. } if self.fits(text.len()) => self.outcome.stdout.push_str(&text),
            Event::Stderr { text, .. } if self.fits(text.len()) => self.outcome.stderr.push_str(&text),
            Event::Result { main, formats } => {
                // Only its size is wanted: a result that cannot be written is none.
                let size = serde_json::to_vec(&formats).map_or(0, |json| json.len());
                if self.fits(size) {
                    self.outcome.results.push(CodeResultView { main, formats });
                }
            }
            Event::Error { name, value, traceback } => self.outcome.error = Some(CodeErrorView { name, value, traceback }),
            Event::Lost { message } => self.outcome.lost = Some(message),
            _ => {}
        }
    }

    fn fits(&mut self, more: usize) -> bool {
        let fits = self.bytes + more <= MOST_IN_ONE_ANSWER;
        if fits {
            self.bytes += more;
        } else {
            self.outcome.truncated = true;
        }
        fits
    }

    /// What there is.
    pub(crate) fn finish(self) -> CodeOutcome {
        self.outcome
    }
}

/// A context as it is told.
pub(crate) fn context_view(Context { id, language, cwd }: Context) -> ContextView {
    ContextView { id: id.to_string(), language, cwd }
}

/// Why code was not run.
pub(crate) fn code_problem(error: InterpreterError) -> Problem {
    let detail = error.to_string();
    match error {
        InterpreterError::Invalid(invalid) => invalid.into(),
        InterpreterError::Sandbox(error) => error.into(),
        InterpreterError::NotInstalled { .. } => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no_interpreter", detail),
        InterpreterError::Refused { refusal, message } => match refusal {
            Refusal::NoContext => Problem::new(StatusCode::NOT_FOUND, "context_not_found", message),
            Refusal::NoLanguage => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no_language", message),
            Refusal::NoDirectory => Problem::invalid("cwd", message),
            Refusal::TooMany => Problem::new(StatusCode::CONFLICT, "too_many_contexts", message),
            Refusal::Invalid => Problem::invalid("code", message),
            Refusal::Failed => Problem::new(StatusCode::CONFLICT, "guest_refused", message),
        },
        InterpreterError::NotStarted { .. } => Problem::new(StatusCode::CONFLICT, "guest_refused", detail),
        InterpreterError::Silent { .. } => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "guest_lost", detail),
        _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "guest_misbehaved", detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: &str) -> Result<Run, Invalid> {
        run(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn code_runs_in_one_place() {
        assert_eq!(request(r#"{"code":"1"}"#).unwrap().place, Where::Language("python".to_owned()));
        assert_eq!(request(r#"{"code":"1","context":"c-1"}"#).unwrap().place, Where::Context("c-1".parse().unwrap()));
        for refused in
            [r#"{"code":"1","context":"c","language":"r"}"#, r#"{"code":"1","context":"../x"}"#, r#"{"code":"1","timeout_seconds":0}"#]
        {
            assert!(request(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn one_answer_does_not_grow_for_ever() {
        let mut collected = Collected::default();
        for _ in 0..40 {
            collected.take(Event::Stdout { text: "x".repeat(1 << 20), at: 0 });
        }
        let outcome = collected.finish();
        assert!(outcome.truncated);
        assert_eq!(outcome.stdout.len(), MOST_IN_ONE_ANSWER);
    }
}
