//! Names of archive entries, made harmless before any of them reaches a system call.

use super::{ArchiveLimits, Refusal};

const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4096;

/// A relative path without `.`, `..`, empty parts and NUL bytes. Empty means the root of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EntryPath(Vec<u8>);

impl EntryPath {
    /// Takes a name as the archive gives it.
    pub(crate) fn parse(raw: &[u8], limits: &ArchiveLimits) -> Result<Self, Refusal> {
        if raw.is_empty() || raw.contains(&0) {
            return Err(Refusal::BadName);
        }
        if raw.starts_with(b"/") {
            return Err(Refusal::AbsolutePath);
        }
        if raw.len() >= PATH_MAX {
            return Err(Refusal::LongName);
        }
        let mut path = Vec::with_capacity(raw.len());
        let mut parts = 0;
        for part in raw.split(|b| *b == b'/') {
            match part {
                b"" | b"." => continue,
                b".." => return Err(Refusal::ParentPath),
                part if part.len() > NAME_MAX => return Err(Refusal::LongName),
                part => {
                    if !path.is_empty() {
                        path.push(b'/');
                    }
                    path.extend_from_slice(part);
                    parts += 1;
                }
            }
        }
        if parts > limits.depth { Err(Refusal::Depth { limit: limits.depth }) } else { Ok(Self(path)) }
    }

    /// Whether it is the root of the tree itself.
    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory it is in, and its name there.
    pub(crate) fn split(&self) -> (&[u8], &[u8]) {
        match self.0.iter().rposition(|b| *b == b'/') {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&[], &self.0),
        }
    }

    /// The path.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &[u8], expected: Result<&[u8], Refusal>) {
        let limits = ArchiveLimits { depth: 4, ..ArchiveLimits::default() };
        assert_eq!(EntryPath::parse(raw, &limits), expected.map(|path| EntryPath(path.to_vec())), "{raw:?}");
    }

    #[test]
    fn harmless_names_are_tidied() {
        check(b"./a/b/", Ok(b"a/b"));
        check(b"a//./b", Ok(b"a/b"));
        check(b"./", Ok(b""));
        check(b"..a/b..", Ok(b"..a/b.."));
        check(b"\xff\xfe", Ok(b"\xff\xfe"));
    }

    #[test]
    fn names_that_leave_the_tree_are_refused() {
        check(b"/etc/passwd", Err(Refusal::AbsolutePath));
        check(b"//etc", Err(Refusal::AbsolutePath));
        check(b"a/../../b", Err(Refusal::ParentPath));
        check(b"..", Err(Refusal::ParentPath));
        check(b"./../x", Err(Refusal::ParentPath));
        check(b"a\0b", Err(Refusal::BadName));
        check(b"", Err(Refusal::BadName));
        check(b"a/b/c/d/e", Err(Refusal::Depth { limit: 4 }));
        check(&[b'a'; 256], Err(Refusal::LongName));
        check(&[b'/', b'a'].repeat(3000)[1..], Err(Refusal::LongName));
    }
}
