//! What running code gives, as it comes. Read from lines that the sandbox wrote.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One thing in many formats, by MIME type: text and pictures as strings (pictures in base64), data as JSON.
pub type Formats = BTreeMap<String, Value>;

/// No honest result has more formats.
const MOST_FORMATS: usize = 64;
/// No honest traceback has more parts.
const MOST_LINES: usize = 1000;

/// Something that happened while code ran.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The code was taken; it is the context's n-th.
    Began {
        /// Counts from 1.
        count: u64,
    },
    /// It wrote to standard output.
    Stdout {
        /// What.
        text: String,
        /// Milliseconds since 1970, by the sandbox's clock.
        at: u64,
    },
    /// It wrote to standard error.
    Stderr {
        /// What.
        text: String,
        /// Milliseconds since 1970, by the sandbox's clock.
        at: u64,
    },
    /// It gave something to show.
    Result {
        /// Whether it is the value of the last expression, and not merely shown on the way.
        main: bool,
        /// The thing.
        formats: Formats,
    },
    /// It failed. Nothing but [`Event::End`] follows.
    Error {
        /// The kind of error, as the language calls it.
        name: String,
        /// The message.
        value: String,
        /// Where, in the language's own form.
        traceback: Vec<String>,
    },
    /// The kernel died, and with it what the context remembered. A new one is there for the next run.
    Lost {
        /// In words.
        message: String,
    },
    /// All has been said.
    End,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Told {
    Began {
        count: u64,
    },
    Stdout {
        text: String,
        #[serde(default)]
        at: u64,
    },
    Stderr {
        text: String,
        #[serde(default)]
        at: u64,
    },
    Result {
        #[serde(default)]
        main: bool,
        data: Formats,
    },
    Error {
        #[serde(default)]
        name: String,
        #[serde(default)]
        value: String,
        #[serde(default)]
        traceback: Vec<String>,
    },
    Lost {
        #[serde(default)]
        message: String,
    },
    End,
}

impl Event {
    /// An event from its line, or what is wrong with it.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let told: Told = serde_json::from_slice(line).map_err(|error| format!("a line that is no event: {error}"))?;
        Ok(match told {
            Told::Began { count } => Self::Began { count },
            Told::Stdout { text, at } => Self::Stdout { text, at },
            Told::Stderr { text, at } => Self::Stderr { text, at },
            Told::Result { data, .. } if data.len() > MOST_FORMATS => return Err(format!("a result in {} formats", data.len())),
            Told::Result { main, data } => Self::Result { main, formats: data },
            Told::Error { name, value, mut traceback } => {
                traceback.truncate(MOST_LINES);
                Self::Error { name, value, traceback }
            }
            Told::Lost { message } => Self::Lost { message },
            Told::End => Self::End,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_become_events() {
        for (line, expected) in [
            (r#"{"event":"began","count":3}"#, Event::Began { count: 3 }),
            (r#"{"event":"stdout","text":"a\n","at":5}"#, Event::Stdout { text: "a\n".to_owned(), at: 5 }),
            (
                r#"{"event":"result","main":true,"data":{"text/plain":"1"}}"#,
                Event::Result { main: true, formats: [("text/plain".to_owned(), "1".into())].into() },
            ),
            (
                r#"{"event":"error","name":"E","value":"v","traceback":["t"],"more":1}"#,
                Event::Error { name: "E".to_owned(), value: "v".to_owned(), traceback: vec!["t".to_owned()] },
            ),
            (r#"{"event":"lost"}"#, Event::Lost { message: String::new() }),
            (r#"{"event":"end"}"#, Event::End),
        ] {
            assert_eq!(Event::parse(line.as_bytes()), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let many: BTreeMap<String, u8> = (0..=MOST_FORMATS).map(|number| (number.to_string(), 0)).collect();
        let deep = format!(r#"{{"event":"result","data":{{"a":{}}}}}"#, "[".repeat(10_000));
        for line in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"event":"dance"}"#,
            r#"{"event":"stdout"}"#,
            r#"{"event":"stdout","text":1}"#,
            r#"{"event":"began","count":-1}"#,
            r#"{"event":"result","data":[]}"#,
            r#"{"event":"end"} {"event":"end"}"#,
            &deep,
            &serde_json::json!({ "event": "result", "data": many }).to_string(),
        ] {
            assert!(Event::parse(line.as_bytes()).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line: Vec<u8>) {
            let _ = Event::parse(&line);
        }

        #[test]
        fn no_damaged_event_makes_it_panic(at in 0_usize..60, byte: u8) {
            let mut line = br#"{"event":"result","main":true,"data":{"text/plain":"\ud83d\ude00"}}"#.to_vec();
            if let Some(place) = line.get_mut(at) {
                *place = byte;
            }
            let _ = Event::parse(&line);
        }
    }
}
