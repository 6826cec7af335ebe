//! What code gave, as the lines that E2B's SDKs read.

use belljar_http::moment;
use belljar_interpreter::{CHART, DATA, Event, Formats};
use belljar_types::Timestamp;
use serde_json::{Map, Value, json};

/// Which format becomes which field. What has none goes to `extra`.
const FIELDS: [(&str, &str); 12] = [
    ("text/plain", "text"),
    ("text/html", "html"),
    ("text/markdown", "markdown"),
    ("image/svg+xml", "svg"),
    ("image/png", "png"),
    ("image/jpeg", "jpeg"),
    ("application/pdf", "pdf"),
    ("text/latex", "latex"),
    ("application/json", "json"),
    ("application/javascript", "javascript"),
    (DATA, "data"),
    (CHART, "chart"),
];

/// The lines for an event; most have one.
pub(crate) fn output_lines(event: Event, java: bool) -> Vec<Value> {
    match event {
        Event::Began { count } => vec![json!({ "type": "number_of_executions", "execution_count": count })],
        Event::Stdout { text, at } => written("stdout", &text, at, java),
        Event::Stderr { text, at } => written("stderr", &text, at, java),
        Event::Result { main, formats } => vec![result(main, formats)],
        Event::Error { name, value, traceback } => {
            vec![json!({ "type": "error", "name": name, "value": value, "traceback": traceback.join("\n") })]
        }
        Event::Lost { .. } => {
            vec![json!({ "type": "error", "name": "ContextRestarting", "value": "Context was restarted", "traceback": "" })]
        }
        Event::End => vec![json!({ "type": "end_of_execution" })],
        // A kind of event that E2B's clients have no word for.
        _ => Vec::new(),
    }
}

fn written(kind: &str, text: &str, at: u64, java: bool) -> Vec<Value> {
    let line = |text: &str| json!({ "type": kind, "text": text, "timestamp": moment(Timestamp(at)) });
    match text.strip_suffix('\n') {
        // E2B's Java kernel writes the end of a line by itself, and clients compare the first piece.
        Some(words) if java && !words.is_empty() => vec![line(words), line("\n")],
        _ => vec![line(text)],
    }
}

fn result(main: bool, mut formats: Formats) -> Value {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), "result".into());
    for (mime, field) in FIELDS {
        let Some(value) = formats.remove(mime) else { continue };
        let value = if field == "text" { without_quotes(value) } else { value };
        fields.insert(field.to_owned(), value);
    }
    fields.insert("extra".to_owned(), formats.into_iter().collect::<Map<_, _>>().into());
    fields.insert("is_main_result".to_owned(), main.into());
    fields.into()
}

/// A string is shown without the quotes of its language.
fn without_quotes(value: Value) -> Value {
    let inner = |text: &str| ['\'', '"'].iter().find_map(|quote| Some(text.strip_prefix(*quote)?.strip_suffix(*quote)?.to_owned()));
    match value.as_str().and_then(inner) {
        Some(inner) => inner.into(),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(formats: &[(&str, Value)]) -> Value {
        let formats = formats.iter().map(|(mime, value)| ((*mime).to_owned(), value.clone())).collect();
        output_lines(Event::Result { main: true, formats }, false).remove(0)
    }

    #[test]
    fn formats_become_fields_and_the_rest_is_extra() {
        let line =
            shown(&[("text/plain", "'a'".into()), ("image/png", "iVBO".into()), (CHART, json!({ "type": "line" })), ("x/y", 1.into())]);
        let expected = json!({
            "type": "result", "text": "a", "png": "iVBO", "chart": { "type": "line" }, "extra": { "x/y": 1 }, "is_main_result": true
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn only_whole_quotes_are_taken_away() {
        for (text, expected) in [("'a'", "a"), ("\"a\"", "a"), ("'a\"", "'a\""), ("'", "'"), ("''", ""), ("[1] \"a\"", "[1] \"a\"")] {
            assert_eq!(shown(&[("text/plain", text.into())])["text"], expected, "{text}");
        }
    }

    #[test]
    fn a_line_of_java_comes_apart_and_others_do_not() {
        let texts = |java| {
            let lines = output_lines(Event::Stdout { text: "a\n".to_owned(), at: 0 }, java);
            lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(true), ["a", "\n"]);
        assert_eq!(texts(false), ["a\n"]);
    }

    #[test]
    fn a_lost_kernel_is_an_error() {
        let line = output_lines(Event::Lost { message: "x".to_owned() }, false).remove(0);
        assert_eq!((&line["type"], &line["name"]), (&json!("error"), &json!("ContextRestarting")));
    }
}
