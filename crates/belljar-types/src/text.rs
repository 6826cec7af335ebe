//! What every crate needs to write things down: bytes as digits, an error with its causes, and whether one of them is a full disk.

use std::error::Error;
use std::io;

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// An error with all its causes on one line, for a log or a person.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Whether something was not written because there is no room, on a disk or within a limit, whichever of the causes says so.
pub fn lacks_room(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let full = |error: &io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    causes.filter_map(|error| error.downcast_ref::<io::Error>()).any(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn an_error_is_told_with_its_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("open the store")]
        struct Open(#[source] io::Error);
        assert_eq!(chain(&Open(io::Error::other("no room"))), "open the store: no room");
        assert!(!lacks_room(&Open(io::Error::other("no room"))));
        assert!(lacks_room(&Open(io::ErrorKind::StorageFull.into())));
    }
}
