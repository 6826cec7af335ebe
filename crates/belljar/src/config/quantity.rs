//! Sizes and times in the configuration file: a number, or text with a unit.

use std::time::Duration;

use belljar_types::{parse_bytes, parse_duration};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(u64);

impl Bytes {
    pub(crate) const fn gibibytes(count: u64) -> Self {
        Self(count << 30)
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(Duration);

impl Time {
    pub(crate) const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub(crate) fn get(self) -> Duration {
        self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl NumberOrText {
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = NumberOrText::deserialize(deserializer)?.text();
        parse_bytes("size", &text).map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = NumberOrText::deserialize(deserializer)?.text();
        parse_duration("time", &text).map(Self).map_err(D::Error::custom)
    }
}
