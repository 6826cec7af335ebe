//! Files stay small enough to be read in one sitting. The tail is what makes a tree untidy, so the cap is on the tail.
//!
//! Counted are production lines: those before an inline `#[cfg(test)] mod`. A file over the soft cap needs a line in
//! `xtask/oversized.txt` (`path: reason`); over the hard cap nothing helps.

use crate::finding::Finding;
use crate::tree::{SourceFile, Tree};

const SOFT_CAP: usize = 400;
const HARD_CAP: usize = 600;
const LIB_CAP: usize = 100;
const EXCUSES: &str = "xtask/oversized.txt";
const WHY: &str = "a file that cannot be read in one sitting is not reviewed, only skimmed";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let excuses = excuses(tree);
    for file in tree.rust() {
        let lines = production_lines(&file.text);
        let excused = excuses.iter().any(|excuse| excuse.path == file.path);
        if lines > HARD_CAP {
            findings.push(too_long(file, lines, format!("split it by concept; over {HARD_CAP} there is no exception")));
        } else if lines > SOFT_CAP && !excused {
            findings.push(too_long(file, lines, format!("split it by concept, or give the reason in {EXCUSES}")));
        }
        if file.file_name() == "lib.rs" && lines > LIB_CAP {
            findings.push(Finding {
                path: file.path.clone(),
                line: LIB_CAP + 1,
                wrong: format!("{lines} lines in lib.rs, more than {LIB_CAP}"),
                why: "lib.rs is the crate's table of contents: docs, mod and pub use",
                fix: "move the code into a module with a name".to_owned(),
            });
        }
    }
    findings.extend(excuses.iter().filter_map(|excuse| stale(tree, excuse)));
    findings
}

fn too_long(file: &SourceFile, lines: usize, fix: String) -> Finding {
    Finding { path: file.path.clone(), line: SOFT_CAP + 1, wrong: format!("{lines} production lines, more than {SOFT_CAP}"), why: WHY, fix }
}

/// Lines before an inline test module.
fn production_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .windows(2)
        .position(|pair| pair[0].trim() == "#[cfg(test)]" && pair[1].trim_start().starts_with("mod ") && pair[1].contains('{'))
        .unwrap_or(lines.len())
}

struct Excuse {
    path: String,
    reason: String,
    line: usize,
}

fn excuses(tree: &Tree) -> Vec<Excuse> {
    let Some(file) = tree.file(EXCUSES) else { return Vec::new() };
    file.lines()
        .filter(|(_, text)| !text.trim().is_empty() && !text.starts_with('#'))
        .map(|(line, text)| {
            let (path, reason) = text.split_once(':').unwrap_or((text, ""));
            Excuse { path: path.trim().to_owned(), reason: reason.trim().to_owned(), line }
        })
        .collect()
}

/// An excuse without a reason, or for a file that no longer needs one.
fn stale(tree: &Tree, excuse: &Excuse) -> Option<Finding> {
    let needed = tree.file(&excuse.path).is_some_and(|file| production_lines(&file.text) > SOFT_CAP);
    let (wrong, fix) = if excuse.reason.is_empty() {
        (format!("no reason for {}", excuse.path), "write `path: reason`")
    } else if !needed {
        (format!("{} is not over {SOFT_CAP} lines", excuse.path), "remove the line")
    } else {
        return None;
    };
    Some(Finding {
        path: EXCUSES.to_owned(),
        line: excuse.line,
        wrong,
        why: "an excuse that outlives its reason invites the next one",
        fix: fix.to_owned(),
    })
}
