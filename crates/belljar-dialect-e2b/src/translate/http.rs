//! What a download's headers ask for and are answered with.

use axum::http::{HeaderMap, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// How a body travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
}

/// The best encoding the client takes; none if it takes none that there is. Pieces of a file are never packed (`whole` is false).
///
/// The SDKs' `gzip` option names gzip and nothing else. A list of several is what HTTP libraries send of themselves, and packing then costs ten
/// times what the file's way over a local network does: it goes as it is.
pub(crate) fn encoding(headers: &HeaderMap, whole: bool) -> Option<Encoding> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let weights: Vec<(String, f64)> = accepted.split(',').filter(|word| !word.trim().is_empty()).map(weight).collect();
    let weight_of = |name: &str| weights.iter().find(|(given, _)| given == name).map(|(_, weight)| *weight);
    let any = weight_of("*");
    let identity_refused = weight_of("identity").or(any) == Some(0.0);
    let gzip = weight_of("gzip").or(any.filter(|_| identity_refused)).unwrap_or(0.0);
    let is_asked_for = identity_refused || weights.iter().all(|(name, _)| matches!(name.as_str(), "gzip" | "identity"));
    let identity = weight_of("identity").unwrap_or(0.0);
    match (whole && is_asked_for && gzip > 0.0 && gzip >= identity, identity_refused) {
        (true, _) => Some(Encoding::Gzip),
        (false, false) => Some(Encoding::Identity),
        (false, true) => None,
    }
}

fn weight(word: &str) -> (String, f64) {
    let mut parts = word.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="))?.parse().ok());
    (name, weight.unwrap_or(1.0))
}

/// Which part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    /// From here, to there or to the end.
    From(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

/// What `Range` asks for. Several ranges, and what is no range, mean all of it.
pub(crate) fn wanted(headers: &HeaderMap) -> Wanted {
    let parse = || {
        let text = headers.get(header::RANGE)?.to_str().ok()?.strip_prefix("bytes=")?.trim();
        let (first, last) = text.split_once('-')?;
        match (first, last) {
            ("", last) => Some(Wanted::Last(last.parse().ok()?)),
            (first, "") => Some(Wanted::From(first.parse().ok()?, None)),
            (first, last) => {
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(Wanted::From(first, Some(last)))
            }
        }
    };
    parse().unwrap_or(Wanted::All)
}

/// What a file is, by its name.
pub(crate) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
        Some("txt" | "log" | "md") => "text/plain; charset=utf-8",
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("csv") => "text/csv; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("pdf") => "application/pdf",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("webp") => "image/webp",
        Some("gz") => "application/gzip",
        Some("zip") => "application/zip",
        _ => "application/octet-stream",
    }
}

const IN_EXTENDED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The file's name for whoever saves it. Names are hostile: what is not plain is escaped.
pub(crate) fn disposition(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    if name.bytes().all(plain) {
        format!("inline; filename={name}")
    } else {
        format!("inline; filename*=utf-8''{}", utf8_percent_encode(name, IN_EXTENDED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn gzip_is_sent_to_those_who_ask_for_it() {
        let best = |accepted: &str| encoding(&with(header::ACCEPT_ENCODING, accepted), true);
        for accepted in ["gzip", "identity;q=0.1, GZIP", "gzip, br, identity;q=0", "*, identity;q=0", "identity;q=0, *;q=0.5"] {
            assert_eq!(best(accepted), Some(Encoding::Gzip), "{accepted}");
        }
        for accepted in ["", "br", "*", "gzip, deflate, br, zstd", "gzip;q=0", "gzip;q=0.1, identity;q=1"] {
            assert_eq!(best(accepted), Some(Encoding::Identity), "{accepted}");
        }
        for accepted in ["identity;q=0", "br, *;q=0"] {
            assert_eq!(best(accepted), None, "{accepted}");
        }
        assert_eq!(encoding(&with(header::ACCEPT_ENCODING, "gzip"), false), Some(Encoding::Identity));
    }

    #[test]
    fn ranges_are_read_as_they_are_meant() {
        let wanted = |range: &str| wanted(&with(header::RANGE, range));
        assert_eq!(wanted("bytes=0-4"), Wanted::From(0, Some(4)));
        assert_eq!(wanted("bytes=7-"), Wanted::From(7, None));
        assert_eq!(wanted("bytes=-3"), Wanted::Last(3));
        for odd in ["bytes=4-1", "bytes=a-b", "bytes=0-1,4-5", "lines=1-2", "bytes="] {
            assert_eq!(wanted(odd), Wanted::All, "{odd}");
        }
    }

    #[test]
    fn a_name_cannot_break_out_of_its_header() {
        assert_eq!(disposition("a.txt"), "inline; filename=a.txt");
        assert_eq!(disposition("a\"\r\nX: y"), "inline; filename*=utf-8''a%22%0D%0AX%3A%20y");
    }
}
