//! Every numbered promise of `SPEC.md` has a number of its own and names a test, and that test exists.
//!
//! A promise is a table row whose first cell is a number like `P3.2`. A test is written in backquotes: `path/of/file.rs::function` or, for
//! a suite as a whole, `path/of/file`.

use std::collections::HashSet;

use crate::finding::Finding;
use crate::tree::Tree;

const SPEC: &str = "SPEC.md";
const WHY: &str = "a promise that nothing checks is advertising";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(spec) = tree.file(SPEC) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut add = |line: usize, wrong: String, fix: &str| {
        findings.push(Finding { path: SPEC.to_owned(), line, wrong, why: WHY, fix: fix.to_owned() });
    };
    let mut known = HashSet::new();
    for (line, row) in spec.lines() {
        let Some(number) = promise_number(row) else { continue };
        if !known.insert(number) {
            add(line, format!("there is a promise {number} already"), "give it a number of its own, or drop the one that is told twice");
        }
        let tests = tests_named_in(row);
        if tests.is_empty() {
            add(line, format!("promise {number} names no test"), "write `path/of/file.rs::function` in its last cell, or drop the promise");
        }
        for test in tests.iter().filter(|test| !exists(tree, test)) {
            add(
                line,
                format!("promise {number} names the test {test}, which does not exist"),
                "name the test as it is called now, or write it",
            );
        }
    }
    findings
}

/// `P3.2` of a row `| P3.2 | … |`.
fn promise_number(row: &str) -> Option<&str> {
    let number = row.strip_prefix('|')?.split('|').next()?.trim();
    let digits = number.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let numbered = digits.len() < number.len() && digits.starts_with(|c: char| c.is_ascii_digit());
    (numbered && digits.chars().all(|c| c.is_ascii_digit() || c == '.')).then_some(number)
}

/// Everything in backquotes that is a path with a file ending.
fn tests_named_in(row: &str) -> Vec<&str> {
    let last_cell = row.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default();
    last_cell.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains('/')).collect()
}

fn exists(tree: &Tree, test: &str) -> bool {
    let (path, function) = match test.split_once("::") {
        Some((path, function)) => (path, Some(function)),
        None => (test, None),
    };
    match (tree.file(path), function) {
        (Some(file), Some(function)) => defines(&file.text, function),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => tree.has(path),
    }
}

/// A function of that name in Rust, Python or C, or an entry of that name in a catalogue of cases.
fn defines(text: &str, function: &str) -> bool {
    let function = function.rsplit("::").next().unwrap_or(function);
    ["fn ", "def "].iter().any(|keyword| {
        text.match_indices(&format!("{keyword}{function}"))
            .any(|(at, found)| !text[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    }) || text.contains(&format!("\"{function}\""))
}
