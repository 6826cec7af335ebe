//! `unsafe` lives in two crates. The workspace lint can be lifted with one attribute; this rule sees that, too.

use crate::finding::Finding;
use crate::rust_text::{code_only, has_word};
use crate::tree::Tree;

const ALLOWED: &[&str] = &["crates/belljar-linux/", "crates/belljar-vmm/"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !ALLOWED.iter().any(|place| file.path.starts_with(place))) {
        for (index, line) in code_only(&file.text).lines().enumerate() {
            let wrong = if has_word(line, "unsafe") {
                "`unsafe` outside belljar-linux and belljar-vmm"
            } else if has_word(line, "unsafe_code") {
                "lifts the ban on `unsafe` outside belljar-linux and belljar-vmm"
            } else {
                continue;
            };
            findings.push(Finding {
                path: file.path.clone(),
                line: index + 1,
                wrong: wrong.to_owned(),
                why: "whoever audits memory safety reads those crates and no other",
                fix: "put a safe function into belljar-linux and call that".to_owned(),
            });
        }
    }
    findings
}
