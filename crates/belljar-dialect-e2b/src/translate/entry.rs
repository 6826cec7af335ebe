//! Files as E2B's clients see them. A link has the kind and the mode of what it points to, and its own size and letters.

use std::collections::BTreeMap;

use belljar_types::{FileEventKind, FileInfo, FileKind};

use crate::dto::Entry;
use belljar_http::base_name;

/// An entry at `path`. `target` is what a link leads to in the end: where, and what is there.
pub(crate) fn entry(path: &str, info: &FileInfo, target: Option<(String, Option<&FileInfo>)>, metadata: BTreeMap<String, String>) -> Entry {
    let is_link = info.kind == FileKind::Symlink;
    let (symlink_target, seen) = match target {
        Some((at, there)) => (Some(at), there),
        None if is_link => (Some(path.to_owned()), None),
        None => (None, Some(info)),
    };
    Entry {
        name: base_name(path).to_owned(),
        kind: seen.map_or("FILE_TYPE_UNSPECIFIED", |info| kind(info.kind)),
        path: path.to_owned(),
        size: shown_size(info).to_string(),
        mode: seen.map_or(0, |info| info.mode & 0o777),
        permissions: letters(info),
        owner: info.owner.clone().unwrap_or_else(|| info.uid.to_string()),
        group: info.group.clone().unwrap_or_else(|| info.gid.to_string()),
        modified_time: jiff::Timestamp::from_nanosecond(i128::from(info.modified_nanos)).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string(),
        symlink_target,
        is_symlink: is_link,
        metadata,
    }
}

/// E2B's disks have directories of a block at least; where Belljar's say nothing, clients are told the same.
fn shown_size(info: &FileInfo) -> u64 {
    if info.kind == FileKind::Directory { info.size.max(4096) } else { info.size }
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "FILE_TYPE_FILE",
        FileKind::Directory => "FILE_TYPE_DIRECTORY",
        FileKind::Symlink => "FILE_TYPE_SYMLINK",
        FileKind::Other => "FILE_TYPE_UNSPECIFIED",
    }
}

/// Kind and permissions as the daemon writes them: not quite as `ls` does.
fn letters(info: &FileInfo) -> String {
    let mut text = String::with_capacity(10);
    let special = [(0o4000, 'u'), (0o2000, 'g'), (0o1000, 't')];
    match info.kind {
        FileKind::Directory => text.push('d'),
        FileKind::Symlink => text.push('L'),
        FileKind::Other => text.push('?'),
        FileKind::File => {}
    }
    text.extend(special.iter().filter(|(bit, _)| info.mode & bit != 0).map(|(_, letter)| letter));
    if text.is_empty() {
        text.push('-');
    }
    let bits = (0..9).rev().map(|bit| info.mode >> bit & 1 == 1);
    text.extend(bits.zip("rwxrwxrwx".chars()).map(|(set, letter)| if set { letter } else { '-' }));
    text
}

/// An event's kind; none for what clients have no word for.
pub(crate) fn event_kind(kind: FileEventKind) -> Option<&'static str> {
    match kind {
        FileEventKind::Created => Some("EVENT_TYPE_CREATE"),
        FileEventKind::Written => Some("EVENT_TYPE_WRITE"),
        FileEventKind::Attributes => Some("EVENT_TYPE_CHMOD"),
        FileEventKind::Removed => Some("EVENT_TYPE_REMOVE"),
        FileEventKind::Renamed => Some("EVENT_TYPE_RENAME"),
        FileEventKind::Overflowed => None,
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::GuestPath;

    use super::*;

    fn info(kind: FileKind, mode: u32) -> FileInfo {
        let path = GuestPath::new("/x").unwrap();
        let (owner, group) = (Some("user".to_owned()), None);
        FileInfo {
            path,
            kind,
            size: 3,
            mode,
            uid: 1000,
            gid: 7,
            owner,
            group,
            modified_nanos: 1_500_000_000,
            symlink_target: None,
            attributes: None,
        }
    }

    #[test]
    fn letters_are_those_of_the_daemon() {
        assert_eq!(letters(&info(FileKind::File, 0o644)), "-rw-r--r--");
        assert_eq!(letters(&info(FileKind::Directory, 0o1777)), "dtrwxrwxrwx");
        assert_eq!(letters(&info(FileKind::File, 0o4755)), "urwxr-xr-x");
        assert_eq!(letters(&info(FileKind::Symlink, 0o777)), "Lrwxrwxrwx");
    }

    #[test]
    fn a_link_looks_like_what_it_points_to() {
        let (link, file) = (info(FileKind::Symlink, 0o777), info(FileKind::File, 0o600));
        let seen = entry("/a/l", &link, Some(("/f".to_owned(), Some(&file))), BTreeMap::new());
        assert_eq!((seen.kind, seen.mode, seen.name.as_str(), seen.group.as_str()), ("FILE_TYPE_FILE", 0o600, "l", "7"));
        assert_eq!(seen.modified_time, "1970-01-01T00:00:01.5Z");
        let broken = entry("/a/l", &link, None, BTreeMap::new());
        assert_eq!((broken.kind, broken.symlink_target.as_deref()), ("FILE_TYPE_UNSPECIFIED", Some("/a/l")));
    }
}
