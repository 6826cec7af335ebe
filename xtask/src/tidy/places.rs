//! The tree names no package registry and no path of anybody's machine: both are configuration of the place it is built at.
//!
//! The names are put together at compile time, so that this file does not find itself.

use crate::finding::Finding;
use crate::tree::Tree;

/// Hosts that packages and images are fetched from.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("docker", ".io"),
    concat!("hub.docker", ".com"),
    concat!("ghcr", ".io"),
    concat!("quay", ".io"),
    concat!("gcr", ".io"),
    concat!("proxy.golang", ".org"),
    concat!("rubygems", ".org"),
    concat!("deb.debian", ".org"),
    concat!("security.debian", ".org"),
    concat!("archive.ubuntu", ".com"),
    concat!("static.rust-lang", ".org"),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/work/", "main"),
    concat!("/work/", "shared"),
    concat!("/work/", "targets"),
    concat!("/work/", "brief"),
    concat!("/work/", "."),
    concat!("../", "shared/"),
    concat!("/root/", ".cargo"),
    concat!("/tmp/", "bash_jobs"),
];

/// Written by cargo, which records where a package came from.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !WRITTEN_BY_TOOLS.contains(&file.file_name())) {
        for (line, text) in file.lines() {
            if let Some(host) = REGISTRIES.iter().find(|host| names_host(text, host)) {
                findings.push(Finding {
                    path: file.path.clone(),
                    line,
                    wrong: format!("names the package registry {host}"),
                    why: "where packages come from is set on the machine (mirrors, air-gapped sites), never in the tree",
                    fix: "take the host from configuration or from the request".to_owned(),
                });
            }
            if let Some(path) = MACHINE_PATHS.iter().find(|path| text.contains(**path)) {
                findings.push(Finding {
                    path: file.path.clone(),
                    line,
                    wrong: format!("names the machine path {path}"),
                    why: "the tree must build and read the same everywhere",
                    fix: "use a path relative to the repository, or configuration".to_owned(),
                });
            }
        }
    }
    findings
}

/// Whether `host` stands in `text` as a host name and not as the tail of a longer word.
fn names_host(text: &str, host: &str) -> bool {
    text.match_indices(host).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let after = text[at + host.len()..].chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        !before && !after
    })
}
