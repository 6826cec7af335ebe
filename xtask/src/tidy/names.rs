//! File names say what is inside: `foo.rs` beside `foo/`, and no drawer for whatever has no name yet.

use crate::finding::Finding;
use crate::tree::Tree;

const DRAWERS: &[&str] = &["util", "utils", "common", "misc", "helper", "helpers"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if file.file_name() == "mod.rs" {
            let folder = file.path.trim_end_matches("/mod.rs");
            findings.push(Finding {
                path: file.path.clone(),
                line: 1,
                wrong: "a mod.rs".to_owned(),
                why: "ten open tabs named mod.rs tell nobody anything",
                fix: format!("rename it to {folder}.rs"),
            });
        }
        let drawer = file.path.split('/').map(|part| part.trim_end_matches(".rs")).find(|part| DRAWERS.contains(part));
        if let Some(drawer) = drawer {
            findings.push(Finding {
                path: file.path.clone(),
                line: 1,
                wrong: format!("`{drawer}` is not the name of a concept"),
                why: "a drawer without a label collects what nobody wanted to name, and everything comes to depend on it",
                fix: "name the concept, or put the code beside its one user".to_owned(),
            });
        }
    }
    findings
}
