//! Half-done work is finished or written down in the tracker, not left in the tree.
//!
//! The words are put together at compile time, so that this file does not find itself.

use crate::finding::Finding;
use crate::rust_text::{code_only, has_word};
use crate::tree::Tree;

const MACROS: &[&str] = &[concat!("to", "do!"), concat!("unimple", "mented!"), concat!("d", "bg!")];
const IGNORED: &[&str] = &[concat!("#[ig", "nore]"), concat!("#[ig", "nore =")];
/// A program that a test starts and kills is written as a test that is run by name; the file that does so says this.
const STARTS_IGNORED: &str = concat!("\"--ig", "nored\"");
const MARKS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |path: &str, line: usize, wrong: String, why: &'static str, fix: &str| {
        findings.push(Finding { path: path.to_owned(), line, wrong, why, fix: fix.to_owned() });
    };
    for file in &tree.files {
        if file.is_rust() {
            for (index, line) in code_only(&file.text).lines().enumerate() {
                for found in MACROS.iter().filter(|name| has_word(line, name.trim_end_matches('!')) && line.contains(**name)) {
                    add(
                        &file.path,
                        index + 1,
                        format!("`{found}` left behind"),
                        "what is not built must not compile",
                        "build it, or take it out",
                    );
                }
                let started_here = file.text.contains(STARTS_IGNORED);
                if let Some(found) = IGNORED.iter().find(|name| line.contains(**name) && !started_here) {
                    let why = "a test that does not run keeps no promise";
                    add(&file.path, index + 1, format!("`{found}`: a test that never runs"), why, "make it run, or remove it");
                }
            }
        }
        if file.path.ends_with(".lock") {
            continue;
        }
        for (line, text) in file.lines() {
            for mark in MARKS.iter().filter(|mark| has_word(text, mark)) {
                let why = "a note in the code is read by nobody who could act on it";
                add(&file.path, line, format!("`{mark}` left behind"), why, "do it now, or open an issue and take the note out");
            }
        }
    }
    findings
}
