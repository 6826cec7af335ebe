//! The keys that leave a shell whose other end does not answer any more: Enter, `~`, `.`, as in ssh.
//!
//! `~~` after Enter sends one `~`, `~?` says what there is. Everything else, everywhere else, goes through as typed. Only a `~` that comes as the first
//! byte after Enter is held back, so a paste is changed only if one of its lines begins with one of these three pairs.

/// What to do with what was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Send these bytes; none is possible.
    Send(Vec<u8>),
    /// Send these bytes, then say what keys there are.
    Help(Vec<u8>),
    /// Leave.
    Leave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    LineStart,
    Tilde,
    Within,
}

/// Watches for the leaving keys.
#[derive(Debug)]
pub(crate) struct LeaveKeys {
    at: At,
}

impl LeaveKeys {
    /// At the start of a session, which counts as the start of a line.
    pub(crate) fn new() -> Self {
        Self { at: At::LineStart }
    }

    /// Takes what was typed and says what to do with it.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Typed {
        let mut send = Vec::with_capacity(bytes.len() + 1);
        let mut help = false;
        for &byte in bytes {
            match (self.at, byte) {
                (At::LineStart, b'~') => {
                    self.at = At::Tilde;
                    continue;
                }
                (At::Tilde, b'.') => return Typed::Leave,
                (At::Tilde, b'?') => {
                    help = true;
                    self.at = At::LineStart;
                    continue;
                }
                (At::Tilde, b'~') => send.push(b'~'),
                (At::Tilde, other) => send.extend([b'~', other]),
                (_, other) => send.push(other),
            }
            self.at = if matches!(byte, b'\r' | b'\n') { At::LineStart } else { At::Within };
        }
        if help { Typed::Help(send) } else { Typed::Send(send) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: &[Typed]) {
        let mut keys = LeaveKeys::new();
        let got: Vec<Typed> = pieces.iter().map(|piece| keys.take(piece)).collect();
        assert_eq!(got, expected);
    }

    fn send(bytes: &[u8]) -> Typed {
        Typed::Send(bytes.to_vec())
    }

    #[test]
    fn leaves_only_at_the_start_of_a_line() {
        check(&[b"~."], &[Typed::Leave]);
        check(&[b"ls\r", b"~", b"."], &[send(b"ls\r"), send(b""), Typed::Leave]);
        check(&[b"cat ~."], &[send(b"cat ~.")]);
        check(&[b"ls\r~.more"], &[Typed::Leave]);
    }

    #[test]
    fn other_tildes_arrive() {
        check(&[b"~/bin/x\r"], &[send(b"~/bin/x\r")]);
        check(&[b"~", b"/bin"], &[send(b""), send(b"~/bin")]);
        check(&[b"~~."], &[send(b"~.")]);
        check(&[b"a~~b"], &[send(b"a~~b")]);
        check(&[b"~?x"], &[Typed::Help(b"x".to_vec())]);
    }

    #[test]
    fn a_large_paste_is_not_changed() {
        let paste: Vec<u8> = (0..1_000_000_u32).map(|n| if n % 80 == 79 { b'\r' } else { b'a' }).collect();
        check(&[&paste], &[Typed::Send(paste.clone())]);
    }
}
