//! What is linked in may be given away with us: every package's SPDX expression must be met by the list in `deny.toml`.
//!
//! The list stands in the form that cargo-deny reads, so that whoever has that tool gets the same answer from it.

use crate::cargo::Package;
use crate::finding::Finding;
use crate::tree::Tree;

const LIST: &str = "deny.toml";
const WHY: &str = "Belljar is Apache-2.0; a licence that binds more than that would bind everyone who ships it";

pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let allowed = tree.file(LIST).map(|file| allow_list(&file.text)).unwrap_or_default();
    let mut findings = Vec::new();
    for package in packages {
        let (name, version) = (&package.name, &package.version);
        let wrong = match &package.licence {
            None => format!("{name} {version} states no licence"),
            Some(licence) if !is_met(licence, &allowed) => format!("{name} {version} is under {licence}"),
            Some(_) => continue,
        };
        let path = if package.ours { package.manifest_in(&tree.root) } else { "Cargo.lock".to_owned() };
        let line = tree.file(&path).map_or(1, |file| super::line_of(&file.text, &format!("name = \"{name}\"")));
        let fix = format!("use another crate, or, if the licence is permissive, add it to [licenses] of {LIST}");
        findings.push(Finding { path, line, wrong, why: WHY, fix });
    }
    findings
}

/// The strings of `allow = […]` in the section `[licenses]`.
fn allow_list(text: &str) -> Vec<String> {
    let section = text.split("\n[licenses]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let list = section.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
    let without_comments: Vec<&str> = list.lines().map(|line| line.split('#').next().unwrap_or_default()).collect();
    without_comments.join(" ").split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met from the list: any side of an `OR`, every side of an `AND`.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { tokens: &tokens, at: 0, allowed, broken: false };
    let met = reader.any_of();
    met && !reader.broken && reader.at == tokens.len()
}

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
    allowed: &'a [String],
    /// The expression ended where a licence was expected.
    broken: bool,
}

impl Reader<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn any_of(&mut self) -> bool {
        let mut met = self.all_of();
        while self.next_is("OR") {
            met |= self.all_of();
        }
        met
    }

    fn all_of(&mut self) -> bool {
        let mut met = self.one();
        while self.next_is("AND") {
            met &= self.one();
        }
        met
    }

    fn one(&mut self) -> bool {
        if self.next_is("(") {
            let met = self.any_of();
            return self.next_is(")") && met;
        }
        let Some(licence) = self.tokens.get(self.at) else {
            self.broken = true;
            return false;
        };
        self.at += 1;
        let mut licence = (*licence).to_owned();
        if self.next_is("WITH") {
            licence = format!("{licence} WITH {}", self.tokens.get(self.at).copied().unwrap_or_default());
            self.at += 1;
        }
        self.allowed.contains(&licence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(expression: &str) -> bool {
        is_met(
            expression,
            &allow_list(
                "\n[licenses]\n# MPL is \"not\" here\nallow = [\n  \"MIT\", # short\n  \"Apache-2.0\",\n  \"Apache-2.0 WITH LLVM-exception\",\n]\n",
            ),
        )
    }

    #[test]
    fn one_side_of_or_is_enough() {
        assert!(met("GPL-3.0-only OR MIT"));
        assert!(met("MIT/Apache-2.0"));
        assert!(met("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"));
        assert!(!met("GPL-3.0-only OR AGPL-3.0-only"));
    }

    #[test]
    fn both_sides_of_and_are_needed() {
        assert!(met("(MIT OR GPL-3.0-only) AND Apache-2.0"));
        assert!(!met("MIT AND GPL-3.0-only"));
        assert!(!met("MIT AND (GPL-3.0-only OR AGPL-3.0-only)"));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for bad in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "Apache-2.0 WITH", "Apache-2.0 WITH Other-exception"] {
            assert!(!met(bad), "{bad}");
        }
    }
}
