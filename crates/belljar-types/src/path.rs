//! Paths inside a sandbox. They are bytes, as on Linux, and hostile: they are never joined to a host path and never printed raw.

use std::fmt;

use crate::Invalid;

/// A path inside a sandbox: absolute, or relative to the home directory of the user who acts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestPath(Vec<u8>);

impl GuestPath {
    /// The longest path Linux takes, its terminating NUL included.
    pub const MAX_BYTES: usize = 4096;

    /// Takes a path as bytes; refuses empty ones, over-long ones and ones with a NUL.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, Invalid> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(Invalid::new("path", "at least one byte", ""));
        }
        if bytes.len() >= Self::MAX_BYTES {
            return Err(Invalid::new("path", format!("fewer than {} bytes", Self::MAX_BYTES), &bytes));
        }
        if bytes.contains(&0) {
            return Err(Invalid::new("path", "no NUL byte", &bytes));
        }
        Ok(Self(bytes))
    }

    /// The bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it starts at the root of the sandbox.
    pub fn is_absolute(&self) -> bool {
        self.0.first() == Some(&b'/')
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_untrusted(&self.0))
    }
}

impl fmt::Debug for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestPath(\"{self}\")")
    }
}

/// Makes bytes from a guest or a stranger safe for a log line or a terminal: printable text stays as it is, control characters,
/// bidirectional overrides and invalid UTF-8 are written as escapes.
pub fn escape_untrusted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                c if c.is_control() || is_invisible(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Characters that change how the rest of a line is shown without being seen themselves.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_cannot_reach_a_terminal() {
        assert_eq!(escape_untrusted(b"a\x1b[31mb\n\xff"), "a\\u{1b}[31mb\\n\\xff");
        assert_eq!(escape_untrusted("r\u{202e}txt.exe".as_bytes()), "r\\u{202e}txt.exe");
        assert_eq!(escape_untrusted("naïve 日本".as_bytes()), "naïve 日本");
    }

    #[test]
    fn paths_that_linux_cannot_hold_are_refused() {
        assert!(GuestPath::new("").is_err());
        assert!(GuestPath::new("a\0b").is_err());
        assert!(GuestPath::new(vec![b'a'; 4096]).is_err());
        assert!(GuestPath::new(vec![0xff, b'/']).is_ok());
    }
}
