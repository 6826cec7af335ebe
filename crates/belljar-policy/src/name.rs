//! Host names, in the one spelling that is compared: lower case, ASCII, without the last dot.
//!
//! What a guest sends is never repaired: a name with any other byte in it, or one that some program would read as an address, is no name.

use std::fmt;

use serde::{Deserialize, Serialize};

const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A host name as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Box<str>);

impl HostName {
    /// Reads a name from the wire: ASCII letters, digits, `-` and `_`, one trailing dot at most, and nothing that looks like an address.
    pub fn from_wire(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
        is_name(&text).then(|| Self(text.into()))
    }

    /// Reads a name that a person wrote: may be Unicode, which is turned into the form that goes over the wire.
    pub fn from_text(text: &str) -> Option<Self> {
        let ascii = idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::EMPTY).ok()?;
        Self::from_wire(ascii.as_bytes())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
    };
    !text.is_empty() && text.len() <= LONGEST && text.split('.').all(is_label) && !ends_in_a_number(text)
}

/// `127.1`, `0x7f.1` and `2130706433` are addresses to many programs.
fn ends_in_a_number(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text);
    let hexadecimal = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    hexadecimal || last.bytes().all(|b| b.is_ascii_digit())
}

/// Which names a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum NamePattern {
    /// This one.
    Exact(HostName),
    /// All below it, at any depth, without itself: `*.example.com`.
    Below(HostName),
    /// The operator's list of this name: `@registries`.
    Set(String),
}

impl NamePattern {
    /// The name that it is, or that all of it is below.
    pub(crate) fn base(&self) -> Option<String> {
        match self {
            Self::Exact(name) | Self::Below(name) => Some(name.to_string()),
            Self::Set(_) => None,
        }
    }

    /// Whether every name of `other` is one of this.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(mine), Self::Exact(theirs)) => mine == theirs,
            (Self::Below(above), Self::Exact(name)) => is_below(name.as_str(), above.as_str()),
            (Self::Below(above), Self::Below(name)) => name == above || is_below(name.as_str(), above.as_str()),
            (Self::Set(mine), Self::Set(theirs)) => mine == theirs,
            _ => false,
        }
    }
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl TryFrom<String> for NamePattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("expected a host name, *.name or @set, got {:?}", belljar_types::escape_untrusted(text.as_bytes()));
        if let Some(set) = text.strip_prefix('@') {
            let plain =
                !set.is_empty() && set.len() <= 64 && set.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
            return if plain { Ok(Self::Set(set.to_owned())) } else { Err(wrong()) };
        }
        match text.strip_prefix("*.") {
            None => HostName::from_text(&text).map(Self::Exact).ok_or_else(wrong),
            Some(above) => {
                let name = HostName::from_text(above).ok_or_else(wrong)?;
                if name.as_str().contains('.') {
                    Ok(Self::Below(name))
                } else {
                    Err(format!(
                        "a wildcard needs at least two labels behind it, got \"*.{name}\": whole top-level domains are not ruled by name"
                    ))
                }
            }
        }
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> String {
        pattern.to_string()
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => write!(f, "{name}"),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Set(name) => write!(f, "@{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_spelling_is_compared_and_addresses_are_no_names() {
        for (wire, name) in [("Allowed.TEST", "allowed.test"), ("allowed.test.", "allowed.test"), ("_sip.a-b.test", "_sip.a-b.test")] {
            assert_eq!(HostName::from_wire(wire.as_bytes()).unwrap().as_str(), name);
        }
        let refused: [&[u8]; 19] = [
            b"",
            b".",
            b"a..b",
            b"allowed.test..",
            b"evil\0.allowed.test",
            b"allowed.test@evil.test",
            b"a b.test",
            b"a%2eb.test",
            b"127.0.0.1",
            b"127.1",
            b"0x7f.1",
            b"0x7f000001",
            b"2130706433",
            b"0",
            b"0.0.0.0",
            b"[::1]",
            "b\u{fc}cher.test".as_bytes(),
            "allowed\u{3002}test".as_bytes(),
            &[b'a'; 64],
        ];
        for wire in refused {
            assert_eq!(HostName::from_wire(wire), None, "{}", String::from_utf8_lossy(wire));
        }
        assert_eq!(HostName::from_text("B\u{fc}cher.test").unwrap().as_str(), "xn--bcher-kva.test");
    }

    #[test]
    fn a_wildcard_is_below_its_name_and_never_the_name_itself_nor_one_that_only_ends_alike() {
        let pattern = |text: &str| NamePattern::try_from(text.to_owned()).unwrap();
        let wide = pattern("*.allowed.test");
        for (name, covered) in [
            ("a.allowed.test", true),
            ("b.a.allowed.test", true),
            ("*.a.allowed.test", true),
            ("*.allowed.test", true),
            ("allowed.test", false),
            ("evilallowed.test", false),
            ("allowed.test.evil.test", false),
        ] {
            assert_eq!(wide.covers(&pattern(name)), covered, "{name}");
        }
        for text in ["*", "*.test", "a.*.test", "**.a.test", "@", "@A", "1.2.3.4", "*.1.2.3.4", "a/b"] {
            assert!(NamePattern::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
