//! [`Interpreter`]: the verbs, for one sandbox in use. Each is one connection; one that is dropped tells the program inside to stop.

use std::collections::BTreeMap;
use std::time::Duration;

use belljar_core::Session;
use belljar_types::escape_untrusted;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};

use crate::line::{Lines, NoLine};
use crate::program::{connect, explained, is_installed};
use crate::request::check_language;
use crate::{Context, ContextId, Event, InterpreterError, Refusal, Run, Where};

/// The longest that anything but code may take: a kernel's start on a busy machine.
const LONGEST_ANSWER: Duration = Duration::from_secs(150);
/// How much later than its deadline an execution may end: the program inside interrupts it, and replaces what does not heed that.
const GRACE: Duration = Duration::from_secs(15);
/// Text from inside that goes into an error.
const LONGEST_WORDS: usize = 2000;

/// The kernels of one sandbox.
#[derive(Clone)]
pub struct Interpreter {
    session: Session,
}

#[derive(Deserialize)]
struct Refused {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct ContextBody {
    id: String,
    language: String,
    cwd: String,
}

/// Every answer that is no event.
#[derive(Deserialize)]
struct Answer {
    refused: Option<Refused>,
    contexts: Option<Vec<ContextBody>>,
    context: Option<ContextBody>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    accepted: bool,
}

impl Interpreter {
    /// The kernels of the sandbox that is in use.
    pub fn new(session: Session) -> Self {
        Self { session }
    }

    /// The sandbox.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// All contexts, oldest first.
    pub async fn contexts(&self) -> Result<Vec<Context>, InterpreterError> {
        let answer = self.ask(json!({ "do": "contexts" })).await?;
        answer.contexts.ok_or_else(|| misbehaved("an answer without contexts"))?.into_iter().map(context).collect()
    }

    /// Makes a context, in the home directory unless told otherwise.
    pub async fn create(&self, language: &str, cwd: Option<&str>) -> Result<Context, InterpreterError> {
        check_language(language)?;
        let answer = self.ask(json!({ "do": "create", "language": language, "cwd": cwd, "env": self.env(&BTreeMap::new()) })).await?;
        context(answer.context.ok_or_else(|| misbehaved("an answer without a context"))?)
    }

    /// Starts a context again: all it remembered is gone, and what runs in it ends.
    pub async fn restart(&self, id: &ContextId) -> Result<(), InterpreterError> {
        self.tell("restart", id).await
    }

    /// Interrupts what runs in a context.
    pub async fn interrupt(&self, id: &ContextId) -> Result<(), InterpreterError> {
        self.tell("interrupt", id).await
    }

    /// Removes a context.
    pub async fn remove(&self, id: &ContextId) -> Result<(), InterpreterError> {
        self.tell("remove", id).await
    }

    /// Runs code. If the execution is dropped before its end, the code is interrupted.
    pub async fn execute(&self, run: &Run) -> Result<Execution, InterpreterError> {
        run.validate()?;
        let (context, language) = match &run.place {
            Where::Context(id) => (Some(id.as_str()), None),
            Where::Language(language) => (None, Some(language.as_str())),
        };
        let request = json!({
            "do": "execute", "context": context, "language": language, "code": run.code, "env": run.env,
            "base_env": self.env(&run.always_env),
            "deadline_ms": run.deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        });
        // What is refused is refused here, so that a front can still choose its status.
        let (lines, answer) = self.begin(request).await?;
        if !answer.accepted {
            return Err(misbehaved("an answer that neither accepts nor refuses"));
        }
        let until = run.deadline.map(|deadline| (deadline + GRACE, Instant::now() + deadline + GRACE));
        Ok(Execution { lines, session: self.session.clone(), until, ended: false })
    }

    /// Whether the template has kernels at all.
    pub async fn is_installed(&self) -> Result<bool, InterpreterError> {
        is_installed(&self.session).await
    }

    /// What every process of the sandbox finds in its environment. A kernel may be older than the sandbox, and must be told.
    fn env(&self, over: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let sandbox = self.session.sandbox();
        let mut env = sandbox.spec.defaults.env.clone();
        env.extend(sandbox.spec.env.clone());
        env.extend(over.clone());
        env
    }

    async fn tell(&self, verb: &str, id: &ContextId) -> Result<(), InterpreterError> {
        let answer = self.ask(json!({ "do": verb, "context": id.as_str() })).await?;
        if answer.done { Ok(()) } else { Err(misbehaved("an answer that does not say that it was done")) }
    }

    async fn ask(&self, request: serde_json::Value) -> Result<Answer, InterpreterError> {
        self.begin(request).await.map(|(_, answer)| answer)
    }

    /// Sends a request and reads the first line of the answer.
    async fn begin(&self, request: serde_json::Value) -> Result<(Lines, Answer), InterpreterError> {
        let asked = async {
            let mut lines = self.send(request).await?;
            let line = next_line(&self.session, &mut lines).await?.ok_or_else(|| misbehaved("no answer"))?;
            let answer: Answer =
                serde_json::from_slice(&line).map_err(|error| misbehaved(&format!("a line that is no answer: {error}")))?;
            match answer.refused {
                Some(refused) => Err(refusal(&refused)),
                None => Ok((lines, answer)),
            }
        };
        timeout(LONGEST_ANSWER, asked).await.unwrap_or(Err(InterpreterError::Silent { after: LONGEST_ANSWER }))
    }

    async fn send(&self, request: serde_json::Value) -> Result<Lines, InterpreterError> {
        let mut lines = Lines::new(connect(&self.session).await?);
        let mut line = request.to_string().into_bytes();
        line.push(b'\n');
        match lines.send(Bytes::from(line)).await {
            Ok(()) => Ok(lines),
            Err(error) => Err(explained(&self.session, error).await),
        }
    }
}

/// Code that runs. It is interrupted when this is dropped before [`Event::End`].
pub struct Execution {
    lines: Lines,
    session: Session,
    until: Option<(Duration, Instant)>,
    ended: bool,
}

impl Execution {
    /// The sandbox it runs in.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The next event; [`Event::End`] is the last one. Whoever stops waiting for it loses nothing.
    pub async fn next(&mut self) -> Result<Option<Event>, InterpreterError> {
        if self.ended {
            return Ok(None);
        }
        let next = next_line(&self.session, &mut self.lines);
        let line = match self.until {
            Some((after, at)) => timeout_at(at, next).await.unwrap_or(Err(InterpreterError::Silent { after }))?,
            None => next.await?,
        };
        let line = line.ok_or_else(|| misbehaved("the end of the connection before the end of the code"))?;
        let event = Event::parse(&line).map_err(|detail| misbehaved(&detail))?;
        self.ended = event == Event::End;
        Ok(Some(event))
    }
}

async fn next_line(session: &Session, lines: &mut Lines) -> Result<Option<Bytes>, InterpreterError> {
    match lines.next().await {
        Ok(line) => Ok(line),
        Err(NoLine::Guest(error)) => Err(explained(session, error).await),
        Err(NoLine::TooLong) => Err(misbehaved("a line that does not end")),
        Err(NoLine::Torn) => Err(misbehaved("half a line")),
    }
}

fn context(body: ContextBody) -> Result<Context, InterpreterError> {
    let id = body.id.parse().map_err(|_| misbehaved("a context whose name is none"))?;
    Ok(Context { id, language: body.language, cwd: body.cwd })
}

fn refusal(refused: &Refused) -> InterpreterError {
    InterpreterError::Refused { refusal: Refusal::from_code(&refused.code), message: words(&refused.message) }
}

fn misbehaved(detail: &str) -> InterpreterError {
    InterpreterError::Misbehaved { detail: words(detail) }
}

/// Text from inside, bounded and safe to print.
fn words(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_WORDS);
    escape_untrusted(text.get(..end).unwrap_or_default().as_bytes())
}
