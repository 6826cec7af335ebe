//! A file as Daytona's clients know it: its mode in letters, as `ls -l` writes it, and its times as text.

use belljar_http::base_name;
use belljar_types::{FileInfo, FileKind};

use crate::dto::FileInfoDto;

/// `path` is how the client calls it.
pub(crate) fn file_info(path: String, info: &FileInfo) -> FileInfoDto {
    let at = jiff::Timestamp::from_nanosecond(i128::from(info.modified_nanos)).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string();
    let or_number = |name: &Option<String>, number: u32| name.clone().unwrap_or_else(|| number.to_string());
    FileInfoDto {
        name: base_name(&path).to_owned(),
        path,
        is_dir: info.kind == FileKind::Directory,
        size: info.size,
        mode: letters(info.kind, info.mode),
        mod_time: at.clone(),
        modified_at: at,
        owner: or_number(&info.owner, info.uid),
        group: or_number(&info.group, info.gid),
        permissions: format!("{:04o}", info.mode & 0o777),
    }
}

fn letters(kind: FileKind, mode: u32) -> String {
    let first = match kind {
        FileKind::Directory => 'd',
        FileKind::Symlink => 'L',
        FileKind::File | FileKind::Other => '-',
    };
    let bits = (0..9).rev().zip("rwxrwxrwx".chars()).map(|(bit, letter)| if mode & (1 << bit) == 0 { '-' } else { letter });
    std::iter::once(first).chain(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_written_as_people_read_it() {
        for (kind, mode, expected) in
            [(FileKind::Directory, 0o755, "drwxr-xr-x"), (FileKind::File, 0o640, "-rw-r-----"), (FileKind::File, 0o4000, "----------")]
        {
            assert_eq!(letters(kind, mode), expected);
        }
    }
}
