//! Paths, as the toolbox has them: text, relative to where its programs begin.

use belljar_http::clean_path;
use belljar_types::GuestPath;

use crate::errors::ApiError;

/// A path from a request. `base` is the directory that relative ones begin in, if that is not the user's home.
pub(crate) fn guest_path(text: &str, base: Option<&str>) -> Result<GuestPath, ApiError> {
    let wrong = |message: String| ApiError::bad_request(message).with_code("INVALID_FILE_PATH");
    if text.is_empty() {
        return Err(wrong("path is required".to_owned()));
    }
    let path = match text.strip_prefix('~') {
        Some("" | "/") => ".".to_owned(),
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
        _ if text.starts_with('/') => text.to_owned(),
        _ => base.map_or_else(|| text.to_owned(), |base| clean_path(&format!("{base}/{text}"))),
    };
    GuestPath::new(path).map_err(|invalid| wrong(invalid.to_string()))
}

/// The path a client is told of something below what it asked for: in its own words where that can be.
pub(crate) fn shown_path(asked: &str, root: &str, found: &[u8]) -> String {
    let found = String::from_utf8_lossy(found);
    match found.strip_prefix(root.trim_end_matches('/')).map(|rest| rest.trim_start_matches('/')) {
        Some("") => asked.to_owned(),
        Some(rest) if asked == "." => rest.to_owned(),
        Some(rest) => format!("{}/{rest}", asked.trim_end_matches('/')),
        None => found.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_begin_where_programs_do() {
        let path = |text: &str, base| guest_path(text, base).map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned()).ok();
        for (text, base, expected) in [
            ("a/b", None, Some("a/b")),
            ("a/../b", Some("/work"), Some("/work/b")),
            ("/a", Some("/work"), Some("/a")),
            ("~/a", Some("/work"), Some("a")),
            ("~", None, Some(".")),
            ("", None, None),
            ("a\0", None, None),
        ] {
            assert_eq!(path(text, base).as_deref(), expected, "{text:?} in {base:?}");
        }
    }

    #[test]
    fn what_is_found_is_told_in_the_words_that_were_asked_in() {
        for (asked, root, found, shown) in [
            ("src", "/home/user/src", "/home/user/src/a/b", "src/a/b"),
            ("/tmp/", "/tmp", "/tmp/x", "/tmp/x"),
            (".", "/home/user", "/home/user/x", "x"),
            ("/", "/", "/etc", "/etc"),
            ("src", "/home/user/src", "/elsewhere", "/elsewhere"),
        ] {
            assert_eq!(shown_path(asked, root, found.as_bytes()), shown, "{found}");
        }
    }
}
