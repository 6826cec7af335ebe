//! Ports of a rule: single ones and ranges.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// From one port to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortRange {
    /// The lowest.
    pub first: u16,
    /// The highest.
    pub last: u16,
}

impl PortRange {
    /// All of them.
    pub const ALL: Self = Self { first: 1, last: u16::MAX };

    /// Whether the port is in it.
    pub fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    /// Whether all of `other` is in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// A list of ports and ranges.
pub type Ports = Vec<PortRange>;

#[derive(Deserialize)]
#[serde(untagged, expecting = "a port, a range such as \"8000-8100\", or \"*\"")]
enum Written {
    Number(u16),
    Text(String),
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let wrong = |got: &dyn fmt::Display| {
            serde::de::Error::custom(format!("expected a port from 1 to 65535, a range such as \"8000-8100\", or \"*\", got {got}"))
        };
        let range = match Written::deserialize(from)? {
            Written::Number(port) => Self { first: port, last: port },
            Written::Text(text) if text == "*" => Self::ALL,
            Written::Text(text) => {
                let (first, last) = text.split_once('-').unwrap_or((&text, &text));
                let number = |digits: &str| digits.parse::<u16>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
                match (number(first), number(last)) {
                    (Some(first), Some(last)) => Self { first, last },
                    _ => return Err(wrong(&belljar_types::escape_untrusted(text.as_bytes()))),
                }
            }
        };
        if range.first == 0 || range.first > range.last { Err(wrong(&range)) } else { Ok(range) }
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last { to.serialize_u16(self.first) } else { to.collect_str(self) }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            f.write_str("*")
        } else if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}
