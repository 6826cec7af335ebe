//! Heavy foreign crates stay where they belong, so that a change of web framework or database touches one layer.

use crate::cargo::Package;
use crate::finding::Finding;
use crate::tree::Tree;

const WHY: &str = "a foreign framework that spreads through the layers can never be replaced, and core must build without one";

struct Fence {
    crates: &'static [&'static str],
    /// Names, or prefixes where they end in `-`.
    only_in: &'static [&'static str],
}

const FENCES: &[Fence] = &[
    Fence {
        crates: &["axum", "axum-core", "axum-extra", "hyper", "hyper-util", "tonic", "tower-http"],
        only_in: &["belljar-http", "belljar-api", "belljar-dialect-", "belljar-egress", "belljar", "belljar-testkit"],
    },
    Fence { crates: &["sqlx", "rusqlite", "tokio-postgres"], only_in: &["belljar-store"] },
    Fence { crates: &["wasmtime", "wasmtime-wasi"], only_in: &["belljar-runtime-wasm"] },
    Fence { crates: &["object_store"], only_in: &["belljar-blobs", "belljar-bucket"] },
    Fence {
        crates: &["ureq", "reqwest"],
        only_in: &["belljar-image", "belljar-client", "belljar-blobs", "belljar-webhook", "belljar-sinks", "belljar"],
    },
];

impl Fence {
    fn lets_in(&self, package: &str) -> bool {
        self.only_in.iter().any(|place| package == *place || (place.ends_with('-') && package.starts_with(place)))
    }
}

pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            let fence = FENCES.iter().find(|fence| fence.crates.contains(&dependency.name.as_str()));
            let Some(fence) = fence.filter(|fence| !fence.lets_in(&package.name)) else { continue };
            let path = package.manifest_in(&tree.root);
            let line = tree.file(&path).map_or(1, |file| super::line_of(&file.text, &dependency.name));
            findings.push(Finding {
                path,
                line,
                wrong: format!("{} must not use {}", package.name, dependency.name),
                why: WHY,
                fix: format!("use it only in {}", fence.only_in.join(", ")),
            });
        }
    }
    findings
}
