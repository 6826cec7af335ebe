//! Paths of requests. A path is compared in its plain form; one that has no single plain form (encoded slashes, dot segments, empty
//! segments, a `#`) matches no rule that allows, and every rule that forbids.

use std::fmt;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// Which paths a rule is about: `*` is any text within a segment, `**` any text at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPattern(String);

impl PathPattern {
    /// Whether a plain path is one of these.
    pub fn matches(&self, path: &str) -> bool {
        glob(self.0.as_bytes(), path.as_bytes())
    }

    /// Whether it is certain that every path of `other` is one of these.
    pub fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        match self.0.strip_suffix("**") {
            Some(start) if !start.contains('*') => other.0.starts_with(start),
            _ => !other.0.contains('*') && self.matches(&other.0),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PathPattern {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let stars = text.matches('*').count();
        // Each star may be tried against every place of a path: few of them keep a decision cheap.
        if plain_path(&text).as_deref() == Some(text.as_str()) && stars <= 8 && !text.contains("***") && !text.contains('?') {
            Ok(Self(text))
        } else {
            Err(format!(
                "expected a plain path such as /v1/** without . and .. segments, got {:?}",
                belljar_types::escape_untrusted(text.as_bytes())
            ))
        }
    }
}

impl From<PathPattern> for String {
    fn from(pattern: PathPattern) -> String {
        pattern.0
    }
}

/// The path of a request target, decoded; `None` if it has no single plain form. A query is not part of it.
pub fn plain_path(target: &str) -> Option<String> {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    // A fragment has no place in a request: some servers cut it off, others read it as part of the path.
    if !path.starts_with('/') || path.len() > 8192 || target.contains('#') {
        return None;
    }
    let lower = path.to_ascii_lowercase();
    if ["%2f", "%5c", "%00", "%25"].iter().any(|bad| lower.contains(bad)) {
        return None;
    }
    let whole_escapes = path.split('%').skip(1).all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit()));
    let plain = percent_decode_str(path).decode_utf8().ok()?.into_owned();
    let hostile = plain.chars().any(|c| c.is_control() || c == '\\');
    // Parameters behind a semicolon let some servers see another segment: `..;`.
    let dots = |segment: &str| matches!(segment.split(';').next().unwrap_or(segment), "." | "..");
    let empty_inside = plain.get(1..).is_some_and(|rest| rest.contains("//") || rest.starts_with('/'));
    (whole_escapes && !hostile && !empty_inside && !plain.split('/').any(dots)).then_some(plain)
}

/// Backtracks to the last star only, and to the last double star when that fails.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut single: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            if pattern.get(p + 1) == Some(&b'*') {
                p += 2;
                (double, single) = (Some((p, t)), None);
            } else {
                p += 1;
                single = Some((p, t));
            }
            continue;
        }
        if p == pattern.len() && t == text.len() {
            return true;
        }
        if p < pattern.len() && pattern.get(p) == text.get(t) {
            (p, t) = (p + 1, t + 1);
            continue;
        }
        match (single, double) {
            (Some((after, at)), _) if text.get(at).is_some_and(|byte| *byte != b'/') => {
                single = Some((after, at + 1));
                (p, t) = (after, at + 1);
            }
            (_, Some((after, at))) if at < text.len() => {
                (double, single) = (Some((after, at + 1)), None);
                (p, t) = (after, at + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PathPattern {
        PathPattern::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn stars_match_within_a_segment_and_double_stars_across() {
        for (glob, path, matches) in [
            ("/v1/*", "/v1/a", true),
            ("/v1/*", "/v1/a/b", false),
            ("/v1/**", "/v1/a/b", true),
            ("/v1/**", "/v1/", true),
            ("/v1/**", "/v1", false),
            ("/v1/**", "/v10", false),
            ("/a/*/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/d/c", false),
            ("/**/c", "/a/b/c", true),
            ("/a*", "/a", true),
            ("/x/**/y/*", "/x/y/y/y/z", true),
            ("/x/**/y/*", "/x/y/y/y/", true),
            ("/x", "/x/", false),
            ("/**", "/", true),
        ] {
            assert_eq!(pattern(glob).matches(path), matches, "{glob} {path}");
        }
    }

    #[test]
    fn a_path_without_one_plain_form_is_none() {
        for target in [
            "/v1/../admin",
            "/v1/%2e%2e/admin",
            "//v1",
            "/v1//x",
            "/v1%2fadmin",
            "/v1/%2e",
            "/a\\b",
            "/%00",
            "/%252e",
            "/..;/x",
            "/a%",
            "/a%g1",
            "*",
            "http://x/",
            "",
            "/\u{7}",
            "/a#/../b",
            "/a#",
            "/a?x#y",
        ] {
            assert_eq!(plain_path(target), None, "{target}");
        }
        for (target, plain) in
            [("/v1/a?x=/../", "/v1/a"), ("/%76%31/", "/v1/"), ("/", "/"), ("/a.b/..c", "/a.b/..c"), ("/%C3%BC", "/\u{fc}")]
        {
            assert_eq!(plain_path(target).as_deref(), Some(plain), "{target}");
        }
    }

    #[test]
    fn covering_is_claimed_only_when_certain() {
        for (wide, narrow, covers) in [
            ("/v1/**", "/v1/x/*", true),
            ("/v1/**", "/v2/x", false),
            ("/v1/*", "/v1/x", true),
            ("/v1/*", "/v1/**", false),
            ("/**", "/a/**", true),
            ("/v1/*", "/v1/*", true),
        ] {
            assert_eq!(pattern(wide).covers(&pattern(narrow)), covers, "{wide} {narrow}");
        }
    }
}
