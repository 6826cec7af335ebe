//! What kind of file bytes look like. A hint for people and browsers: whoever decides by it must look for themselves.

use belljar_types::Invalid;

const LONGEST_TYPE: usize = 127;

/// What these first bytes are, with the name as a hint for text.
pub(crate) fn media_type(name: &str, head: &[u8]) -> &'static str {
    const MAGIC: [(&[u8], &str); 14] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"\x28\xb5\x2f\xfd", "application/zstd"),
        (b"\xfd7zXZ\0", "application/x-xz"),
        (b"BZh", "application/x-bzip2"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"\0asm", "application/wasm"),
        (b"OggS", "audio/ogg"),
        (b"PAR1", "application/vnd.apache.parquet"),
    ];
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return kind;
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    if head.get(4..8) == Some(b"ftyp") {
        return "video/mp4";
    }
    if head.get(257..262) == Some(b"ustar") {
        return "application/x-tar";
    }
    if !is_text(head) {
        return "application/octet-stream";
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "json" => "application/json",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "svg" => "image/svg+xml",
        "md" => "text/markdown",
        _ => "text/plain",
    }
}

/// Whether these are text, as far as they go: the last character may be cut off.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    whole && !head.iter().any(|byte| *byte == 0 || (*byte < 0x20 && !b"\t\n\r\x0c\x1b".contains(byte)))
}

/// A type as somebody said it is: `type/subtype`, fit for a header.
pub(crate) fn said_type(text: &str) -> Result<String, Invalid> {
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte));
    match text.split_once('/') {
        Some((kind, of_it)) if text.len() <= LONGEST_TYPE && is_token(kind) && is_token(of_it) => Ok(text.to_ascii_lowercase()),
        _ => Err(Invalid::new("media_type", format!("type/subtype, as in text/csv, of at most {LONGEST_TYPE} bytes"), text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_somebody_says_is_one() {
        assert_eq!(said_type("Text/CSV").unwrap(), "text/csv");
        assert!(said_type("application/vnd.x+json").is_ok());
        for wrong in ["", "text", "text/", "/csv", "text/csv; charset=x", "text/c\nsv", "a/b/c", &format!("a/{}", "b".repeat(126))] {
            assert!(said_type(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_say_what_they_are_and_names_only_which_text() {
        for (name, head, expected) in [
            ("a.txt", b"\x89PNG\r\n\x1a\nxx".as_slice(), "image/png"),
            ("a.png", b"hello", "text/plain"),
            ("a.json", b"{}", "application/json"),
            ("a.json", b"{}\0", "application/octet-stream"),
            ("cut", "hä".as_bytes().get(..2).unwrap(), "text/plain"),
            ("a.HTML", b"<p>", "text/html"),
            ("empty", b"", "text/plain"),
            ("b", b"\xff\xfe", "application/octet-stream"),
        ] {
            assert_eq!(media_type(name, head), expected, "{name}");
        }
    }
}
