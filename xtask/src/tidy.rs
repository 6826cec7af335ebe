//! The house rules, one file each. A rule takes the tree (and the workspace, if it is about crates) and returns what it found.

mod external;
mod layering;
mod leftovers;
mod licences;
mod lints;
mod module_docs;
mod names;
mod papers;
mod places;
mod promises;
mod size;
mod unsafe_fence;

use std::path::Path;

use crate::Failure;
use crate::cargo;
use crate::finding::Finding;
use crate::tree::Tree;

/// Every rule.
pub(crate) fn all(root: &Path) -> Result<Vec<Finding>, Failure> {
    let tree = Tree::read(root)?;
    let packages = cargo::members(root)?;
    let mut findings = Vec::new();
    findings.extend(layering::check(&tree, &packages));
    findings.extend(external::check(&tree, &packages));
    findings.extend(lints::check(&tree, &packages));
    findings.extend(unsafe_fence::check(&tree));
    findings.extend(size::check(&tree));
    findings.extend(module_docs::check(&tree));
    findings.extend(names::check(&tree));
    findings.extend(leftovers::check(&tree));
    findings.extend(places::check(&tree));
    findings.extend(promises::check(&tree));
    findings.extend(papers::check(&tree));
    findings.extend(licences::check(&tree, &cargo::everything(root)?));
    findings.sort();
    Ok(findings)
}

/// Only the licences.
pub(crate) fn licences(root: &Path) -> Result<Vec<Finding>, Failure> {
    Ok(licences::check(&Tree::read(root)?, &cargo::everything(root)?))
}

/// The line of `text` on which `needle` first stands, from 1; 1 if it does not.
fn line_of(text: &str, needle: &str) -> usize {
    text.lines().position(|line| line.contains(needle)).map_or(1, |index| index + 1)
}
