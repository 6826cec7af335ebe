//! Standard output and error in one stream, as Daytona's logs have them: three bytes before each stretch say which of the two it is.

use belljar_types::StreamKind;

const STDOUT_MARK: [u8; 3] = [1; 3];
const STDERR_MARK: [u8; 3] = [2; 3];

/// A piece with its mark.
pub(crate) fn marked(kind: StreamKind, bytes: &[u8]) -> Vec<u8> {
    let mark = match kind {
        StreamKind::Stdout => STDOUT_MARK,
        StreamKind::Stderr => STDERR_MARK,
    };
    [&mark, bytes].concat()
}
