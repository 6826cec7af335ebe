//! The hourglass, executed: a dialect never knows an engine, an engine never knows a dialect, the core knows neither.
//!
//! The table is the crate map of `ARCHITECTURE.md`. A crate that is not in it has no place yet and is a finding too.

use crate::cargo::{Kind, Package};
use crate::finding::Finding;
use crate::tree::Tree;

const WHY: &str = "the hourglass holds only while no crate reaches past its neighbours (ARCHITECTURE.md, code map)";

/// Only tests, and the binary that is made of everything, may see all crates.
const ALL: &[&str] = &["*"];
const ENGINE: &[&str] = &["ports", "types", "guest-client", "guest-protocol", "linux", "host"];

/// What each crate may use, names without their `belljar-`.
fn may_use(short_name: &str) -> Option<&'static [&'static str]> {
    Some(match short_name {
        "types" | "linux" | "vmm" | "xtask" => &[],
        "ports" | "policy" | "guest-protocol" | "output" => &["types"],
        "core" => &["types", "ports", "policy"],
        "http" | "interpreter" => &["types", "core"],
        "api" => &["types", "core", "http", "interpreter", "output"],
        dialect if dialect.starts_with("dialect-") => &["types", "core", "http", "interpreter"],
        "guest-line" => &["types", "guest-protocol"],
        "guest" => &["types", "guest-protocol", "guest-line", "linux"],
        "guest-client" => &["types", "ports", "guest-protocol", "guest-line"],
        "host" => &["types", "ports", "linux", "guest-protocol", "guest-client"],
        "runtime-microvm" => &["ports", "types", "guest-client", "guest-protocol", "linux", "host", "vmm"],
        engine if engine.starts_with("runtime-") => ENGINE,
        "image" | "audit" => &["types", "ports", "linux"],
        "store" | "blobs" => &["types", "ports"],
        "parcel" => &["types", "ports", "host", "image"],
        "webhook" => &["types", "ports", "policy"],
        "sinks" => &["types", "ports", "linux", "audit", "webhook"],
        "bucket" => &[],
        "client" => &["types"],
        "mcp" => &["types", "client", "output"],
        "guard" => &["types", "linux"],
        "egress" => &["types", "ports", "policy", "linux"],
        "belljar" | "testkit" => ALL,
        _ => return None,
    })
}

/// Crates whose tests, too, must not see past the waist.
fn is_strict_in_tests(short_name: &str) -> bool {
    short_name == "core" || short_name == "types" || short_name == "ports" || short_name.starts_with("dialect-")
}

fn short(name: &str) -> &str {
    name.strip_prefix("belljar-").unwrap_or(name)
}

fn is_ours(name: &str) -> bool {
    name == "belljar" || name.starts_with("belljar-")
}

pub(crate) fn check(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let path = package.manifest_in(&tree.root);
        let text = tree.file(&path).map(|file| file.text.as_str()).unwrap_or_default();
        let Some(allowed) = may_use(short(&package.name)) else {
            findings.push(Finding {
                path,
                line: super::line_of(text, "name ="),
                wrong: format!("crate {} has no place in the layers", package.name),
                why: WHY,
                fix: "give it a row in xtask/src/tidy/layering.rs and in the code map of ARCHITECTURE.md".to_owned(),
            });
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| is_ours(&dependency.name)) {
            if let Some(fix) = objection(short(&package.name), short(&dependency.name), dependency.kind, allowed) {
                findings.push(Finding {
                    path: path.clone(),
                    line: super::line_of(text, &dependency.name),
                    wrong: format!("{} must not use {}", package.name, dependency.name),
                    why: WHY,
                    fix,
                });
            }
        }
    }
    findings
}

/// What to do instead, if this dependency is not allowed.
fn objection(user: &str, used: &str, kind: Kind, allowed: &[&str]) -> Option<String> {
    if used == "testkit" && kind != Kind::Dev {
        return Some("testkit is for tests: move it to [dev-dependencies]".to_owned());
    }
    if allowed == ALL || allowed.contains(&used) {
        return None;
    }
    if kind == Kind::Dev && !is_strict_in_tests(user) {
        return None;
    }
    let list = if allowed.is_empty() { "no other crate of ours".to_owned() } else { allowed.join(", ") };
    Some(format!("it may use {list}; put what both need into a port (belljar-ports) or wire it up in the belljar binary"))
}
