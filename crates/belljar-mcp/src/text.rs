//! What came out of a sandbox, as text for a model: bounded, UTF-8, and nothing in it that a reader does not see.

use belljar_client::Omitted;
use belljar_output::{Cleaned, Cleaner, Escapes, Hygiene, Mask};

/// The most of one text in one answer.
pub(crate) const ROOM: usize = 64 << 10;

/// Gathers a stream; `escapes` says whether what is hidden is taken out or written so that it can be seen.
pub(crate) fn gatherer(escapes: Escapes) -> Cleaner {
    Cleaner::new(&Hygiene { escapes, mask: Mask::default(), room: ROOM })
}

/// A text with a mark where some of it is missing.
pub(crate) fn marked(text: &str, omitted: Option<Omitted>) -> String {
    let Some(Omitted { from, to }) = omitted else { return text.to_owned() };
    let at = usize::try_from(from).unwrap_or(usize::MAX);
    match (text.get(..at), text.get(at..)) {
        (Some(head), Some(tail)) => format!("{head}\n[… {} bytes left out …]\n{tail}", to.saturating_sub(from)),
        _ => format!("{text}\n[{} bytes left out]", to.saturating_sub(from)),
    }
}

/// What was gathered.
pub(crate) fn gathered(cleaner: Cleaner) -> String {
    let Cleaned { text, omitted, .. } = cleaner.finish();
    marked(&text, omitted.map(|(from, to)| Omitted { from, to }))
}

/// A text of any origin, made fit to be read.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaner = gatherer(Escapes::Strip);
    cleaner.push(text.as_bytes());
    gathered(cleaner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_marked_where_it_is_missing() {
        assert_eq!(marked("abcd", None), "abcd");
        assert_eq!(marked("abcd", Some(Omitted { from: 2, to: 12 })), "ab\n[… 10 bytes left out …]\ncd");
        assert_eq!(marked("é", Some(Omitted { from: 1, to: 3 })), "é\n[2 bytes left out]");
    }

    #[test]
    fn a_long_text_keeps_its_head_and_tail_and_loses_its_escapes() {
        let long = format!("head\u{1b}[31m{}tail", "x".repeat(3 * ROOM));
        let text = clean(&long);
        assert!(text.starts_with("headxxx") && text.ends_with("xxxtail"), "{}", &text[..20]);
        assert!(text.contains("bytes left out") && text.len() < ROOM + 100);
    }
}
