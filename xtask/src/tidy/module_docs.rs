//! Every Rust file opens with a `//!` that says why it exists. Presence is checked here; sense, by whoever reviews.

use crate::finding::Finding;
use crate::tree::Tree;

const FEWEST_WORDS: usize = 4;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter_map(|file| {
            let wrong = complaint(&file.text)?;
            Some(Finding {
                path: file.path.clone(),
                line: 1,
                wrong: wrong.to_owned(),
                why: "a reader decides by the first line whether to read the rest; the file name alone does not tell why it is there",
                fix: "begin the file with `//! ` and a sentence: what it is for, then why it is so and what it must never do".to_owned(),
            })
        })
        .collect()
}

fn complaint(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty() || is_shebang(line));
    let docs: Vec<&str> = lines.by_ref().map_while(|line| line.strip_prefix("//!")).collect();
    if docs.is_empty() {
        return Some("does not begin with `//!`");
    }
    let prose = docs.join(" ");
    let words = prose.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let ends = prose.contains(['.', ':', '!', '?']);
    (words < FEWEST_WORDS || !ends).then_some("its `//!` is not a sentence")
}

fn is_shebang(line: &str) -> bool {
    line.starts_with("#!") && !line.starts_with("#![")
}
