//! Pictures that code made: saved to files, or shown in a terminal that can.
//!
//! A picture comes from a sandbox as base64. It is decoded and, for a terminal, encoded again: nothing but a picture's bytes gets there.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::command_error::CommandError;
use crate::screen::{self, Silent};

/// What can be a file of its own, best first, and its ending.
const KINDS: [(&str, &str); 4] = [("image/png", "png"), ("image/jpeg", "jpeg"), ("application/pdf", "pdf"), ("image/svg+xml", "svg")];
/// How much of a picture kitty takes at once.
const KITTY_CHUNK: usize = 4096;
/// More would be a mistake of whoever made them.
const MOST_FILES: u32 = 10_000;

/// Where pictures go.
pub(crate) enum Pictures {
    /// Into this directory, numbered from here on.
    Saved { directory: PathBuf, next: u32 },
    /// To the terminal.
    Shown,
}

impl Pictures {
    /// Into this directory.
    pub(crate) fn saved(directory: PathBuf) -> Self {
        Self::Saved { directory, next: 1 }
    }

    /// Takes the picture of a result, if it has one that it can take.
    pub(crate) fn take(&mut self, formats: &BTreeMap<String, Value>) -> Result<bool, CommandError> {
        let found = KINDS.iter().find_map(|(mime, ending)| Some((*ending, decoded(ending, formats.get(*mime)?.as_str()?)?)));
        let Some((ending, bytes)) = found else { return Ok(false) };
        match self {
            Self::Saved { directory, next } => save(directory, next, ending, &bytes)?,
            Self::Shown if matches!(ending, "png" | "jpeg") => show(ending, &bytes)?,
            Self::Shown => return Ok(false),
        }
        Ok(true)
    }
}

fn decoded(ending: &str, text: &str) -> Option<Vec<u8>> {
    if ending == "svg" { Some(text.as_bytes().to_vec()) } else { STANDARD.decode(text.split_whitespace().collect::<String>()).ok() }
}

/// Under the first number that is free: nothing is overwritten.
fn save(directory: &PathBuf, next: &mut u32, ending: &str, bytes: &[u8]) -> Result<(), CommandError> {
    std::fs::create_dir_all(directory).map_err(CommandError::file("make", directory))?;
    while *next <= MOST_FILES {
        let path = directory.join(format!("figure-{next}.{ending}"));
        *next += 1;
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(CommandError::file("write", &path))?;
                screen::remark(&format!("belljar: saved {}", path.display()));
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(CommandError::file("write", &path)(error)),
        }
    }
    Err(CommandError::Refused(format!(
        "{} has {MOST_FILES} figures already; remove some, or give another directory with --save",
        directory.display()
    )))
}

fn show(ending: &str, bytes: &[u8]) -> Result<(), Silent> {
    let base64 = STANDARD.encode(bytes);
    let is_kitty = std::env::var_os("KITTY_WINDOW_ID").is_some() || std::env::var("TERM").is_ok_and(|term| term.contains("ghostty"));
    // Kitty takes nothing but PNG.
    let text = if is_kitty && ending == "png" { for_kitty(&base64) } else { for_iterm(&base64, bytes.len()) };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| Silent { source })
}

fn for_iterm(base64: &str, size: usize) -> String {
    format!("\u{1b}]1337;File=inline=1;size={size}:{base64}\u{7}\n")
}

fn for_kitty(base64: &str) -> String {
    let pieces: Vec<&[u8]> = base64.as_bytes().chunks(KITTY_CHUNK).collect();
    let mut text = String::new();
    for (number, piece) in pieces.iter().enumerate() {
        let head = if number == 0 { "a=T,f=100," } else { "" };
        let more = u8::from(number + 1 < pieces.len());
        text.push_str(&format!("\u{1b}_G{head}m={more};{}\u{1b}\\", String::from_utf8_lossy(piece)));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats(mime: &str, text: &str) -> BTreeMap<String, Value> {
        [(mime.to_owned(), text.into())].into()
    }

    #[test]
    fn pictures_get_free_names_and_nothing_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("figure-1.png"), "mine").unwrap();
        let mut pictures = Pictures::saved(directory.path().to_owned());
        assert!(pictures.take(&formats("image/png", "AAEC\n")).unwrap());
        assert!(pictures.take(&formats("image/svg+xml", "<svg/>")).unwrap());
        assert_eq!(std::fs::read(directory.path().join("figure-1.png")).unwrap(), b"mine");
        assert_eq!(std::fs::read(directory.path().join("figure-2.png")).unwrap(), [0, 1, 2]);
        assert_eq!(std::fs::read(directory.path().join("figure-3.svg")).unwrap(), b"<svg/>");
    }

    #[test]
    fn what_is_no_picture_is_left_to_others() {
        let directory = tempfile::tempdir().unwrap();
        let mut pictures = Pictures::saved(directory.path().to_owned());
        assert!(!pictures.take(&formats("text/plain", "1")).unwrap());
        assert!(!pictures.take(&formats("image/png", "\u{1b}]0;owned\u{7}")).unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_terminal_gets_nothing_but_letters_of_base64() {
        let base64 = STANDARD.encode(vec![7; 10_000]);
        let text = for_kitty(&base64);
        assert_eq!(text.matches("\u{1b}_G").count(), 4);
        assert!(text.starts_with("\u{1b}_Ga=T,f=100,m=1;") && text.ends_with("\u{1b}\\\n"));
    }
}
