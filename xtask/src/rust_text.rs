//! Rust source with its comments and literals blanked out, so that a rule about code is not set off by prose about it.

/// The same text with every comment, string and character literal turned into spaces; line breaks stay where they are.
pub(crate) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped_until(bytes, at);
        if end == at {
            code.push(bytes[at]);
            at += 1;
        } else {
            code.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
            at = end;
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins there.
fn skipped_until(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + block_comment(rest);
    }
    let inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if !inside_word && let Some(length) = raw_string(rest) {
        return at + length;
    }
    match rest[0] {
        b'"' => at + string(rest),
        b'\'' => at + character(rest).unwrap_or(0),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, `br"…"` and `cr"…"`.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = if rest.starts_with(b"br") || rest.starts_with(b"cr") { 2 } else { usize::from(rest.starts_with(b"r")) };
    if prefix == 0 {
        return None;
    }
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let body = &rest[open + 1..];
    let length = body.windows(close.len()).position(|window| window == close).map_or(body.len(), |found| found + close.len());
    Some(open + 1 + length)
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal; `None` for a lifetime, which looks alike until its third byte.
fn character(rest: &[u8]) -> Option<usize> {
    const LONGEST: usize = 12;
    if rest.get(1) == Some(&b'\\') {
        return rest.iter().take(LONGEST).skip(3).position(|byte| *byte == b'\'').map(|found| found + 4);
    }
    let width = match *rest.get(1)? {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

/// Whether `word` stands at `at` in `line` by itself and not inside a longer name.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(part_of_name);
        let after = line[at + word.len()..].chars().next().is_some_and(part_of_name);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_and_literals_are_blank_and_lines_stay() {
        let source = "let a = \"unsafe \\\" x\"; // unsafe\nlet b = r#\"un\"safe\"#;\n/* a /* b */ unsafe */ let c: &'static str = 'x';\n";
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        assert!(!code.contains("safe"), "{code}");
        assert!(code.contains("let c: &'static str ="), "{code}");
    }

    #[test]
    fn escaped_quotes_in_characters_do_not_open_a_string() {
        let code = code_only("match c { '\"' => 1, '\\'' => 2, '\\u{1F600}' => 3, 'ä' => unsafe_here() }");
        assert!(code.contains("unsafe_here()"), "{code}");
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("an unsafe block", "unsafe"));
        assert!(!has_word("unsafe_code = deny", "unsafe"));
    }
}
