//! Every crate inherits the workspace's lints: cargo does not ask for it, so a new crate easily goes without.

use crate::cargo::Package;
use crate::finding::Finding;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    packages
        .iter()
        .map(|package| package.manifest_in(&tree.root))
        .filter(|path| !tree.file(path).is_some_and(|file| inherits(&file.text)))
        .map(|path| Finding {
            path,
            line: 1,
            wrong: "does not inherit the workspace's lints".to_owned(),
            why: "without them `unsafe`, `unwrap` and printing go unnoticed in this crate",
            fix: "add\n         [lints]\n         workspace = true".to_owned(),
        })
        .collect()
}

fn inherits(manifest: &str) -> bool {
    let mut in_lints = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_lints = line == "[lints]";
        } else if in_lints && line.replace(' ', "") == "workspace=true" {
            return true;
        }
    }
    false
}
