//! Code that remembers what ran before, with pictures among its results.

use belljar_client::{ClientError, CodeLine};
use belljar_output::{Cleaner, Escapes};
use futures_util::StreamExt;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use super::commands::DEFAULT_TIMEOUT;
use crate::error::ToolError;
use crate::lodgings::Lodgings;
use crate::text;

/// Pictures of one run, and the base64 of one.
const MOST_PICTURES: usize = 8;
const MOST_OF_A_PICTURE: usize = 5 << 20;
/// The first of these that a result has is what is shown of it.
const PICTURES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];
const TEXTS: [&str; 5] = ["text/plain", "text/markdown", "application/json", "text/latex", "text/html"];

/// Run code that keeps its state: variables, imports and functions are there for the next run in the same language.
///
/// Gives what it writes, the value of its last expression, pictures (from matplotlib, for example) and errors with their traceback. For pandas, plots and
/// anything built up step by step. Needs a template with an interpreter, such as code-interpreter-v1; where there is none, run_command runs `python3`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct RunCode {
    /// The code.
    code: String,
    /// python, javascript, typescript, r, java or bash. python when left out.
    language: Option<String>,
    /// Interrupt it after so many seconds. 120 when left out.
    timeout_seconds: Option<f64>,
    /// Another sandbox of this connection, by the id that fork_sandbox gave.
    sandbox: Option<String>,
}

pub(super) async fn run(lodgings: &Lodgings, asked: RunCode) -> Outcome {
    let sandbox = lodgings.find(asked.sandbox.as_deref()).await?;
    let code = belljar_client::RunCode {
        code: asked.code,
        language: asked.language,
        timeout_seconds: Some(asked.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT)),
        ..belljar_client::RunCode::default()
    };
    let failed = |error: ClientError| match error.problem() {
        Some(problem) if problem.code == "no_interpreter" => ToolError::NoInterpreter { why: problem.detail.clone() },
        _ => lodgings.failed(&sandbox, "run code", error),
    };
    let lines = lodgings.once(|| lodgings.client.run_code(&sandbox, &code)).await.map_err(failed)?;
    let mut lines = std::pin::pin!(lines);
    let mut shown = Shown::new();
    while let Some(line) = lines.next().await {
        match line.map_err(failed)? {
            CodeLine::Failed { problem } => return Err(failed(ClientError::Refused(problem))),
            line => shown.take(line),
        }
    }
    Ok(shown.finish())
}

/// What a run gave, as it is shown. Memory is bounded whatever it gives.
struct Shown {
    stdout: Cleaner,
    stderr: Cleaner,
    results: Cleaner,
    error: Option<String>,
    pictures: Vec<ContentBlock>,
    pictures_left_out: usize,
}

impl Shown {
    fn new() -> Self {
        let gatherer = || text::gatherer(Escapes::Strip);
        Self { stdout: gatherer(), stderr: gatherer(), results: gatherer(), error: None, pictures: Vec::new(), pictures_left_out: 0 }
    }

    fn take(&mut self, line: CodeLine) {
        match line {
            CodeLine::Stdout { text } => self.stdout.push(text.as_bytes()),
            CodeLine::Stderr { text } => self.stderr.push(text.as_bytes()),
            CodeLine::Result { formats, .. } => {
                if let Some((kind, data)) = PICTURES.iter().find_map(|kind| Some((*kind, formats.get(*kind)?.as_str()?))) {
                    self.show(kind, data);
                } else if let Some(value) = TEXTS.iter().find_map(|kind| formats.get(*kind)) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    self.results.push(text.trim_end_matches('\n').as_bytes());
                    self.results.push(b"\n");
                }
            }
            CodeLine::Error { name, value, traceback } => {
                let text = if traceback.is_empty() { format!("{name}: {value}") } else { traceback.join("\n") };
                self.error = Some(text::clean(&text));
            }
            CodeLine::Lost { message } => self.error = Some(text::clean(&message)),
            CodeLine::Began { .. } | CodeLine::End | CodeLine::Heartbeat | CodeLine::Failed { .. } => {}
        }
    }

    fn show(&mut self, kind: &str, data: &str) {
        let data: String = data.split_ascii_whitespace().collect();
        if self.pictures.len() < MOST_PICTURES && data.len() <= MOST_OF_A_PICTURE {
            self.pictures.push(ContentBlock::image(data, kind));
        } else {
            self.pictures_left_out += 1;
        }
    }

    fn finish(self) -> CallToolResult {
        let mut parts = Vec::new();
        for (title, cleaner) in [("", self.stdout), ("[standard error]\n", self.stderr), ("[result]\n", self.results)] {
            let text = text::gathered(cleaner);
            if !text.is_empty() {
                parts.push(format!("{title}{}", text.trim_end_matches('\n')));
            }
        }
        parts.extend(self.error.map(|error| format!("[error]\n{}", error.trim_end_matches('\n'))));
        if self.pictures_left_out > 0 {
            parts.push(format!("[{} pictures left out: save them to files]", self.pictures_left_out));
        }
        if parts.is_empty() && self.pictures.is_empty() {
            parts.push("[it ran and gave nothing]".to_owned());
        }
        let text = (!parts.is_empty()).then(|| ContentBlock::text(parts.join("\n")));
        CallToolResult::success(text.into_iter().chain(self.pictures).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn result(formats: &[(&str, &str)]) -> CodeLine {
        let formats: BTreeMap<_, _> = formats.iter().map(|(kind, data)| ((*kind).to_owned(), Value::from(*data))).collect();
        CodeLine::Result { main: true, formats }
    }

    fn shown(lines: impl IntoIterator<Item = CodeLine>) -> Vec<ContentBlock> {
        let mut shown = Shown::new();
        lines.into_iter().for_each(|line| shown.take(line));
        shown.finish().content
    }

    #[test]
    fn text_values_and_pictures_are_each_shown_as_what_they_are() {
        let said = CodeLine::Stdout { text: "one\u{1b}[1m\n".to_owned() };
        let all = shown([
            said,
            result(&[("text/plain", "<Figure>"), ("image/png", "aGk=\n")]),
            result(&[("text/html", "<b>"), ("text/plain", "42")]),
        ]);
        assert_eq!(all[0].as_text().unwrap().text, "one\n[result]\n42");
        let picture = all[1].as_image().unwrap();
        assert_eq!((picture.data.as_str(), picture.mime_type.as_str()), ("aGk=", "image/png"));
    }

    #[test]
    fn errors_come_last_and_silence_is_said() {
        let failed = CodeLine::Error { name: "E".to_owned(), value: "v".to_owned(), traceback: vec!["\u{1b}[31mline 1".to_owned()] };
        let all = shown([failed, CodeLine::Stdout { text: "before".to_owned() }]);
        assert_eq!(all[0].as_text().unwrap().text, "before\n[error]\nline 1");
        assert_eq!(shown([CodeLine::End])[0].as_text().unwrap().text, "[it ran and gave nothing]");
    }

    #[test]
    fn too_many_pictures_are_counted_and_not_kept() {
        let all = shown((0..10).map(|_| result(&[("image/png", "aGk=")])));
        assert_eq!(all.len(), 1 + MOST_PICTURES);
        assert_eq!(all[0].as_text().unwrap().text, "[2 pictures left out: save them to files]");
    }
}
