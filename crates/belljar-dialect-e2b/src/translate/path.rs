//! Paths, as the daemon's calls have them: text, relative to the user's home, `~` for it.

use std::cmp::Ordering;

use belljar_types::GuestPath;

use crate::errors::RpcError;

/// A path from a request.
pub(crate) fn guest_path(text: &str) -> Result<GuestPath, RpcError> {
    let path = match text.strip_prefix('~') {
        None => text,
        Some("") => ".",
        Some(rest) => rest.strip_prefix('/').ok_or_else(|| {
            RpcError::invalid(format!(
                "failed to expand path '{}': cannot expand user-specific home dir",
                belljar_types::escape_untrusted(text.as_bytes())
            ))
        })?,
    };
    let path = if path.is_empty() { "." } else { path };
    GuestPath::new(path).map_err(|invalid| RpcError::invalid(invalid.to_string()))
}

/// The order of a walk that takes each directory's names in turn and goes down at once.
pub(crate) fn sort_depth_first<T>(entries: &mut [T], path: impl Fn(&T) -> &[u8]) {
    entries.sort_by(|a, b| compare(path(a), path(b)));
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    a.split(|byte| *byte == b'/').cmp(b.split(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_wherever_the_user_lives() {
        let path = |text: &str| guest_path(text).map(|path| path.as_bytes().to_vec()).ok();
        assert_eq!(path("~"), Some(b".".to_vec()));
        assert_eq!(path("~/a"), Some(b"a".to_vec()));
        assert_eq!(path("~/"), Some(b".".to_vec()));
        assert_eq!(path(""), Some(b".".to_vec()));
        assert_eq!(path("/a/~"), Some(b"/a/~".to_vec()));
        assert_eq!(path("~root/a"), None);
        assert_eq!(path("a\0"), None);
    }

    #[test]
    fn a_directory_comes_before_what_is_in_it_and_that_before_its_neighbour() {
        let mut paths = ["/a.b", "/a/c", "/a", "/b", "/a/b/d", "/a/b"];
        sort_depth_first(&mut paths, |path| path.as_bytes());
        assert_eq!(paths, ["/a", "/a/b", "/a/b/d", "/a/c", "/a.b", "/b"]);
    }
}
