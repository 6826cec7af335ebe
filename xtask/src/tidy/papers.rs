//! Every page under `docs/` is linked from `docs/README.md`, and no link between papers is broken.

use crate::finding::Finding;
use crate::tree::{SourceFile, Tree};

const INDEX: &str = "docs/README.md";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let papers: Vec<&SourceFile> = tree.files.iter().filter(|file| file.path.ends_with(".md")).collect();
    for paper in &papers {
        for (line, target) in links(paper) {
            if !tree.has(&target) {
                findings.push(Finding {
                    path: paper.path.clone(),
                    line,
                    wrong: format!("links to {target}, which does not exist"),
                    why: "a broken link ends the reading",
                    fix: "link to what is there, or write it".to_owned(),
                });
            }
        }
    }
    let indexed: Vec<String> = tree.file(INDEX).map(|index| links(index).map(|(_, target)| target).collect()).unwrap_or_default();
    for paper in papers.iter().filter(|paper| paper.path.starts_with("docs/") && paper.path != INDEX) {
        if !indexed.contains(&paper.path) {
            findings.push(Finding {
                path: paper.path.clone(),
                line: 1,
                wrong: format!("is not linked from {INDEX}"),
                why: "a page that no index leads to is never read and soon untrue",
                fix: format!("add a line for it to {INDEX}"),
            });
        }
    }
    findings
}

/// Links to files of the repository, as paths from its root, with their lines.
fn links(paper: &SourceFile) -> impl Iterator<Item = (usize, String)> {
    let folder = paper.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut fenced = false;
    paper
        .lines()
        .filter(move |(_, text)| {
            let fence = text.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        })
        .flat_map(|(line, text)| text.split("](").skip(1).map(move |rest| (line, rest.split(')').next().unwrap_or_default())))
        .map(|(line, target)| (line, target.split('#').next().unwrap_or_default()))
        .filter(|(_, target)| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
        .map(move |(line, target)| (line, resolve(folder, target)))
}

fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}
