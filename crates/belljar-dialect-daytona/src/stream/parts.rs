//! The parts of an answer that is a form: a head each, with the path that was asked for.

use bytes::Bytes;

/// What stands behind the content of a part.
pub(crate) const PART_END: &[u8] = b"\r\n";

/// The head of a part. Clients find the file by the path in it, which may be anything: what cannot stand in a header is escaped.
pub(crate) fn part_head(boundary: &str, name: &str, path: &str, kind: &str, length: Option<u64>) -> Bytes {
    let is_plain = |letter: char| (' '..='~').contains(&letter) && !matches!(letter, '"' | '\\');
    let plain: String = path.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{plain}\"");
    if plain != path {
        head.push_str("; filename*=utf-8''");
        for byte in path.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => head.push(char::from(byte)),
                other => head.push_str(&format!("%{other:02X}")),
            }
        }
    }
    head.push_str(&format!("\r\nContent-Type: {kind}\r\n"));
    if let Some(length) = length {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    Bytes::from(head)
}

/// A whole part that says why there is no file.
pub(crate) fn part_of_error(boundary: &str, path: &str, why: &serde_json::Value) -> Bytes {
    let head = part_head(boundary, "error", path, "application/json; charset=utf-8", None);
    Bytes::from([head.as_ref(), why.to_string().as_bytes(), PART_END].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str) -> String {
        String::from_utf8(part_head("B", "file", path, "text/plain", Some(3)).to_vec()).unwrap()
    }

    #[test]
    fn no_path_can_break_out_of_its_header() {
        assert!(head("/a b.txt").contains("filename=\"/a b.txt\"\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n"));
        let odd = head("/a\"\r\nX: y/ü");
        assert!(odd.contains("filename=\"/a___X: y/_\"; filename*=utf-8''%2Fa%22%0D%0AX%3A%20y%2F%C3%BC\r\n"), "{odd}");
    }
}
