//! Shell patterns for names: `*`, `?`, `[a-z]`, `[!a-z]` and `\` before a character that stands for itself.
//!
//! Matching goes back only to the last star, so that no pattern takes longer than its length times the name's.

/// Whether the whole name matches.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = name.get(n) {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(_) => one(pattern.get(p..).unwrap_or_default(), byte),
            None => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((after, from))) => {
                star = Some((after, from + 1));
                p = after;
                n = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// Matches one byte with the front of a pattern; says how long that front was.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', literal, ..] => (*literal == byte).then_some(2),
        [b'[', rest @ ..] => match class(rest, byte) {
            Some((matched, length)) => matched.then_some(length + 1),
            None => (byte == b'[').then_some(1),
        },
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

/// What follows a `[`: whether the byte is in the class, and how long the class is; `None` if it never closes.
fn class(rest: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(rest.first(), Some(b'!' | b'^'));
    let begin = usize::from(negated);
    let mut at = begin;
    let mut found = false;
    loop {
        let low = *rest.get(at)?;
        if low == b']' && at > begin {
            return Some((found != negated, at + 1));
        }
        match (rest.get(at + 1), rest.get(at + 2)) {
            (Some(b'-'), Some(&high)) if high != b']' => {
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            _ => {
                found |= low == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        let check =
            |pattern: &str, name: &str, expected| assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        check("*.rs", "main.rs", true);
        check("*.rs", "main.rc", false);
        check("m?in*", "main.rs", true);
        check("[a-m]*", "main", true);
        check("[!a-m]*", "main", false);
        check("a*b*c", "aXbXbYc", true);
        check("\\*", "*", true);
        check("\\*", "x", false);
        check("[", "[", true);
        check("[]]", "]", true);
        check("", "", true);
        check("*", "", true);
        check("?", "", false);
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = "*a".repeat(500);
        assert!(!matches(pattern.as_bytes(), "a".repeat(499).as_bytes()));
    }
}
