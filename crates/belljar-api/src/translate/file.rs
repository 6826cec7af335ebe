//! Files: paths, permissions in octal, ranges, and what was found.

use axum::http::{HeaderMap, header};
use belljar_types::{ByteRange, FileEvent, FileEventKind, FileInfo, FileKind, GuestPath, Invalid, SearchHit, SearchQuery, UserName};

use super::{bounded, from_base64, renamed, text_or_base64};
use crate::dto::{FileLine, FileView, SearchRequest};

/// A path from the two ways to say it.
pub(crate) fn path(field: &str, text: Option<String>, base64: Option<String>) -> Result<GuestPath, Invalid> {
    let in_base64 = format!("{field}_base64");
    let bytes = match (text, base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(base64)) => from_base64(&in_base64, &base64)?,
        (None, None) => return Err(Invalid::new(field, format!("a path, or `{in_base64}`"), "")),
        (Some(_), Some(_)) => return Err(Invalid::new(in_base64, format!("nothing, because `{field}` is given too"), "both")),
    };
    GuestPath::new(bytes).map_err(|error| renamed(field, error))
}

pub(crate) fn user(text: Option<String>) -> Result<Option<UserName>, Invalid> {
    text.map(|text| text.parse()).transpose()
}

/// Permissions in octal, with or without leading zeros.
pub(crate) fn mode(text: &str) -> Result<u32, Invalid> {
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mode = digits.then(|| u32::from_str_radix(text, 8).ok()).flatten().filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| Invalid::new("mode", "permissions in octal, such as 0644", text))
}

pub(crate) fn file_view(info: &FileInfo) -> FileView {
    let (path, path_base64) = text_or_base64(info.path.as_bytes());
    let target = info.symlink_target.as_deref().map(text_or_base64);
    let (symlink_target, symlink_target_base64) = target.map_or((None, None), |(text, base64)| (Some(text), base64));
    let modified = jiff::Timestamp::from_nanosecond(i128::from(info.modified_nanos)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    FileView {
        path,
        path_base64,
        kind: match info.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
            FileKind::Other => "other",
        },
        size: info.size,
        mode: format!("{:04o}", info.mode & 0o7777),
        uid: info.uid,
        gid: info.gid,
        owner: info.owner.clone(),
        group: info.group.clone(),
        modified_at: format!("{modified:.3}"),
        symlink_target,
        symlink_target_base64,
    }
}

pub(crate) fn search(request: SearchRequest) -> Result<SearchQuery, Invalid> {
    let here = || Some(".".to_owned());
    let text = if request.path.is_none() && request.path_base64.is_none() { here() } else { request.path };
    let query = SearchQuery {
        user: user(request.user)?,
        root: path("path", text, request.path_base64)?,
        name: request.name,
        content: request.content.map(String::into_bytes),
        max_hits: bounded("max_hits", request.max_hits, 1000, 1, 100_000)?,
    };
    query.validate()?;
    Ok(query)
}

pub(crate) fn hit_line(hit: &SearchHit) -> FileLine {
    let (path, path_base64) = text_or_base64(hit.path.as_bytes());
    FileLine::Hit { path, path_base64, line: hit.line, text: String::from_utf8_lossy(&hit.text).into_owned() }
}

pub(crate) fn event_line(event: &FileEvent) -> FileLine {
    let kind = match event.kind {
        FileEventKind::Created => "created",
        FileEventKind::Written => "written",
        FileEventKind::Attributes => "attributes",
        FileEventKind::Removed => "removed",
        FileEventKind::Renamed => "renamed",
        FileEventKind::Overflowed => "overflowed",
    };
    let (name, name_base64) = text_or_base64(&event.name);
    FileLine::Event { kind, name, name_base64 }
}

/// What a `Range` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Everything: there is no header, or one that may be ignored (several ranges, another unit).
    All,
    /// From a byte on.
    From(ByteRange),
    /// So many at the end.
    Last(u64),
}

/// What a request asks for. A condition that cannot be checked makes the whole file the right answer.
pub(crate) fn wanted_by(headers: &HeaderMap) -> Wanted {
    let range = headers.get(header::RANGE).filter(|_| !headers.contains_key(header::IF_RANGE));
    wanted(range.and_then(|value| value.to_str().ok()))
}

fn wanted(header: Option<&str>) -> Wanted {
    let Some(range) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Wanted::All };
    let Some((first, last)) = range.trim().split_once('-') else { return Wanted::All };
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|_| text.trim().bytes().all(|b| b.is_ascii_digit()));
    match (number(first), number(last)) {
        (Some(offset), Some(last)) if last >= offset => Wanted::From(ByteRange { offset, length: Some((last - offset).saturating_add(1)) }),
        (Some(offset), None) if last.trim().is_empty() => Wanted::From(ByteRange { offset, length: None }),
        (None, Some(count)) if first.trim().is_empty() => Wanted::Last(count),
        _ => Wanted::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_range_of_bytes_or_everything() {
        let from = |offset, length| Wanted::From(ByteRange { offset, length });
        for (header, expected) in [
            ("bytes=0-0", from(0, Some(1))),
            ("bytes=5-", from(5, None)),
            ("bytes=-3", Wanted::Last(3)),
            ("bytes=5-4", Wanted::All),
            ("bytes=0-1,3-4", Wanted::All),
            ("lines=1-2", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=+1-2", Wanted::All),
            ("bytes=0-18446744073709551615", from(0, Some(u64::MAX))),
        ] {
            assert_eq!(wanted(Some(header)), expected, "{header}");
        }
        assert_eq!(wanted(None), Wanted::All);
    }

    #[test]
    fn permissions_are_octal() {
        assert_eq!(mode("0644"), Ok(0o644));
        assert_eq!(mode("755"), Ok(0o755));
        for bad in ["", "8", "-1", "10000", "0o644", "rwx"] {
            assert!(mode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_that_is_not_text_comes_in_base64() {
        assert_eq!(path("from", None, Some("/2E=".into())).unwrap().as_bytes(), b"\xffa");
        assert_eq!(path("from", None, Some("!".into())).unwrap_err().field, "from_base64");
        assert_eq!(path("from", None, None).unwrap_err().field, "from");
        assert_eq!(path("from", Some("a\0".into()), None).unwrap_err().field, "from");
    }
}
