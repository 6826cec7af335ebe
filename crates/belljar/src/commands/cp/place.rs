//! `SANDBOX:PATH`, a path on this machine, or `-`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use belljar_types::{GuestPath, SandboxId};

/// One end of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path in a sandbox.
    Sandbox(SandboxId, GuestPath),
    /// A path on this machine.
    Here(PathBuf),
    /// Standard input or output.
    Stream,
}

impl Place {
    /// Reads an argument. What is before the first colon must be a sandbox's id to count as one; `./name:with:colons` is always a file here.
    pub(crate) fn parse(text: &OsString) -> Result<Self, String> {
        let bytes = text.as_bytes();
        if bytes == b"-" {
            return Ok(Self::Stream);
        }
        let colon = bytes.iter().position(|byte| *byte == b':');
        let split = colon.and_then(|at| Some((std::str::from_utf8(bytes.get(..at)?).ok()?, bytes.get(at + 1..)?)));
        let Some((sandbox, path)) = split.and_then(|(before, path)| Some((before.parse::<SandboxId>().ok()?, path))) else {
            return if bytes.is_empty() { Err("a path has at least one character".to_owned()) } else { Ok(Self::Here(text.into())) };
        };
        // Nothing after the colon is the home directory, as in scp.
        let path = if path.is_empty() { b"." } else { path };
        GuestPath::new(path).map(|path| Self::Sandbox(sandbox, path)).map_err(|invalid| invalid.to_string())
    }
}

/// The last part of a path, if it names something: not `/`, `.` or `..`.
pub(crate) fn last_name(path: &[u8]) -> Option<OsString> {
    let trimmed = path.iter().rposition(|byte| *byte != b'/').and_then(|end| path.get(..=end))?;
    let start = trimmed.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    plain_name(trimmed.get(start..)?)
}

/// A name that can be used for one entry of a directory, whoever chose it; `None` for anything that would lead elsewhere.
pub(crate) fn plain_name(bytes: &[u8]) -> Option<OsString> {
    let harmless =
        !bytes.is_empty() && bytes != b"." && bytes != b".." && bytes.len() <= 255 && !bytes.iter().any(|byte| matches!(byte, b'/' | 0));
    harmless.then(|| OsString::from_vec(bytes.to_vec()))
}

/// `directory` and `name` as one path in a sandbox.
pub(crate) fn joined(directory: &GuestPath, name: &[u8]) -> Result<GuestPath, belljar_types::Invalid> {
    let mut bytes = directory.as_bytes().to_vec();
    if bytes.last() != Some(&b'/') {
        bytes.push(b'/');
    }
    bytes.extend_from_slice(name);
    GuestPath::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "sabcdefghijkmnpqrstu";

    #[test]
    fn an_id_before_the_colon_is_a_sandbox() {
        let check = |text: &str, expected: Place| assert_eq!(Place::parse(&text.into()), Ok(expected), "{text}");
        let inside = |path: &str| Place::Sandbox(ID.parse().unwrap(), GuestPath::new(path).unwrap());
        check(&format!("{ID}:/etc/passwd"), inside("/etc/passwd"));
        check(&format!("{ID}:notes:2.txt"), inside("notes:2.txt"));
        check(&format!("{ID}:"), inside("."));
        check(&format!("./{ID}:x"), Place::Here(format!("./{ID}:x").into()));
        check("C:file", Place::Here("C:file".into()));
        check("plain", Place::Here("plain".into()));
        check("-", Place::Stream);
        assert!(Place::parse(&OsString::new()).is_err());
        assert_eq!(Place::parse(&OsString::from_vec(b"\xff".to_vec())), Ok(Place::Here(OsString::from_vec(b"\xff".to_vec()).into())));
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_names() {
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b", &[b'x'; 256]] {
            assert_eq!(plain_name(bad), None);
        }
        for good in [&b"a"[..], b"...", b"-rf", b" ", b"\xff\xfe", b"new\nline"] {
            assert_eq!(plain_name(good).map(OsStringExt::into_vec).as_deref(), Some(good));
        }
    }

    #[test]
    fn the_last_name_of_a_path() {
        for (path, name) in
            [("/a/b", Some("b")), ("a", Some("a")), ("/a/b//", Some("b")), ("/", None), ("..", None), ("a/..", None), (".", None)]
        {
            assert_eq!(last_name(path.as_bytes()), name.map(OsString::from), "{path}");
        }
    }
}
