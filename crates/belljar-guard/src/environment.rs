//! Which variables the command gets: few by name, and what is asked for. Tokens live in the environment, so nothing else goes along.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::errors::GuardError;

const PASSED_ON: [&str; 11] = ["PATH", "HOME", "USER", "LOGNAME", "TERM", "LANG", "LANGUAGE", "TZ", "COLORTERM", "NO_COLOR", "SHELL"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

fn is_passed_on(name: &OsStr) -> bool {
    PASSED_ON.iter().any(|passed| name == *passed) || name.as_bytes().starts_with(b"LC_")
}

/// The caller's variables that are passed on, and what `asked` adds: `NAME=VALUE`, or `NAME` for the caller's own value.
pub(crate) fn reduce(
    caller: impl Iterator<Item = (OsString, OsString)>,
    asked: &[OsString],
) -> Result<Vec<(OsString, OsString)>, GuardError> {
    let caller: Vec<_> = caller.collect();
    let mut kept: Vec<_> = caller.iter().filter(|(name, _)| is_passed_on(name)).cloned().collect();
    if !kept.iter().any(|(name, _)| name == "PATH") {
        kept.push(("PATH".into(), PATH.into()));
    }
    for wanted in asked {
        let bytes = wanted.as_bytes();
        let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
            Some(0) => return Err(invalid(wanted)),
            Some(end) => (OsStr::from_bytes(&bytes[..end]), Some(OsStr::from_bytes(&bytes[end + 1..]).to_owned())),
            None if bytes.is_empty() => return Err(invalid(wanted)),
            None => (wanted.as_os_str(), caller.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())),
        };
        kept.retain(|(kept, _)| kept != name);
        // A variable that the caller does not have, the command does not have either.
        if let Some(value) = value {
            kept.push((name.to_owned(), value));
        }
    }
    Ok(kept)
}

fn invalid(wanted: &OsStr) -> GuardError {
    GuardError::Invalid { option: "--env", value: wanted.to_string_lossy().into_owned(), expected: "expected NAME or NAME=VALUE" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_or_asked_for() {
        let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        let caller = [("PATH", "/bin"), ("AWS_SECRET_ACCESS_KEY", "s"), ("LC_ALL", "C"), ("SSH_AUTH_SOCK", "/x"), ("CI", "1")];
        let check = |asked: &[&str], expected: &[(&str, &str)]| {
            let asked: Vec<_> = asked.iter().map(OsString::from).collect();
            assert_eq!(reduce(caller.iter().map(pair), &asked).unwrap(), expected.iter().map(pair).collect::<Vec<_>>());
        };
        check(&[], &[("PATH", "/bin"), ("LC_ALL", "C")]);
        check(&["CI"], &[("PATH", "/bin"), ("LC_ALL", "C"), ("CI", "1")]);
        check(&["PATH=/x", "A=b=c", "MISSING"], &[("LC_ALL", "C"), ("PATH", "/x"), ("A", "b=c")]);
        assert!(reduce(std::iter::empty(), &["=x".into()]).is_err());
        assert!(reduce(std::iter::empty(), &["".into()]).is_err());
    }
}
