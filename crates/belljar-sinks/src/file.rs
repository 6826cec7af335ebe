//! A file that lines are appended to. It is opened for every batch, so that whoever rotates files may move it at any time, and synced before the
//! mark moves on. Half a line, left by a server that was killed, is ended before anything else: what it was to say comes again.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::sink::SinkError;

pub(crate) fn append(path: &Path, lines: &[String]) -> Result<(), SinkError> {
    write(path, lines).map_err(|source| SinkError::File { path: path.to_owned(), source })
}

fn write(path: &Path, lines: &[String]) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum::<usize>() + 1);
    if ends_within_a_line(&file)? {
        text.push('\n');
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

fn ends_within_a_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok(last != [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_whole_after_whatever_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let lines = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        append(&path, &lines(&["one", "two"])).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"thr").unwrap();
        append(&path, &lines(&["three"])).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthr\nthree\n");
        std::fs::rename(&path, directory.path().join("audit.jsonl.1")).unwrap();
        append(&path, &lines(&["four"])).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "four\n", "whoever rotates files may move it");
    }
}
