//! The workspace as cargo itself sees it, so that layering is judged by what is built and not by what a manifest looks like.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Failure;

/// When a dependency is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    /// Tests, examples and benchmarks only.
    Dev,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Absolute path of its `Cargo.toml`.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// From this workspace, not from elsewhere.
    pub(crate) ours: bool,
}

impl Package {
    /// Its manifest relative to `root`, as findings name it.
    pub(crate) fn manifest_in(&self, root: &Path) -> String {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Path::new(&self.manifest).strip_prefix(&root).map_or_else(|_| self.manifest.clone(), |path| path.display().to_string())
    }
}

/// The workspace's own packages.
pub(crate) fn members(root: &Path) -> Result<Vec<Package>, Failure> {
    metadata(root, &["--no-deps"])
}

/// The workspace's packages and everything that is linked in on Linux.
pub(crate) fn everything(root: &Path) -> Result<Vec<Package>, Failure> {
    metadata(root, &["--filter-platform", "x86_64-unknown-linux-gnu"])
}

fn metadata(root: &Path, flags: &[&str]) -> Result<Vec<Package>, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .args(flags)
        .output()
        .map_err(|error| format!("run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let document: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("read cargo metadata: {error}"))?;
    let packages = document["packages"].as_array().ok_or("cargo metadata has no packages")?;
    Ok(packages.iter().map(package).collect())
}

fn package(value: &Value) -> Package {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let dependencies = value["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    Package {
        name: text("name"),
        version: text("version"),
        licence: value["license"].as_str().map(str::to_owned),
        manifest: text("manifest_path"),
        dependencies: dependencies.iter().map(dependency).collect(),
        ours: value["source"].is_null(),
    }
}

fn dependency(value: &Value) -> Dependency {
    let kind = match value["kind"].as_str() {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal,
    };
    Dependency { name: value["name"].as_str().unwrap_or_default().to_owned(), kind }
}
