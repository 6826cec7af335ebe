//! Where this machine's own package managers get packages: the hosts in their configuration. What sandboxes may use when the operator does not say
//! otherwise is what the operator uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use belljar_core::policy::{HostName, NamePattern};

/// Below `/etc` and below the home directory.
const SYSTEM: [&str; 5] = ["/etc/pip.conf", "/etc/npmrc", "/etc/apt/sources.list", "/etc/apt/sources.list.d", "/usr/etc/npmrc"];
const HOME: [&str; 5] = [".config/pip/pip.conf", ".pip/pip.conf", ".npmrc", ".cargo/config.toml", ".cargo/config"];
const VARIABLES: [&str; 5] =
    ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "NPM_CONFIG_REGISTRY", "npm_config_registry", "CARGO_REGISTRIES_CRATES_IO_INDEX"];
const LONGEST: u64 = 1 << 20;

/// The hosts, sorted; none if nothing is configured.
pub(crate) fn of_this_machine() -> Vec<NamePattern> {
    let home = std::env::var_os("HOME").map_or_else(|| "/root".into(), PathBuf::from);
    let files = SYSTEM.iter().map(PathBuf::from).chain(HOME.iter().map(|name| home.join(name)));
    let mut text: String = files.flat_map(|path| texts(&path)).collect::<Vec<_>>().join("\n");
    for value in VARIABLES.iter().filter_map(|name| std::env::var(name).ok()) {
        text.push('\n');
        text.push_str(&value);
    }
    hosts(&text)
}

/// A file, or the files of a directory.
fn texts(path: &Path) -> Vec<String> {
    let read = |path: &Path| -> Option<String> {
        let small = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= LONGEST);
        if small { std::fs::read_to_string(path).ok() } else { None }
    };
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter_map(|entry| read(&entry.path())).collect(),
        Err(_) => read(path).into_iter().collect(),
    }
}

/// Every host behind `http://` or `https://`, in lines that are no comments.
fn hosts(text: &str) -> Vec<NamePattern> {
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        for rest in line.split("http").skip(1).filter_map(|rest| rest.strip_prefix("s://").or_else(|| rest.strip_prefix("://"))) {
            let authority = rest.split(['/', ' ', '"', '\'', '?', '#', ']', ',']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or(authority);
            let host = host.split(':').next().unwrap_or(host);
            found.extend(HostName::from_text(host).map(NamePattern::Exact));
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_what_package_managers_read() {
        let text = "[global]\nindex-url = https://user:secret@Mirror.test:8443/simple\n# https://old.test/\nregistry=https://npm.test/\n\
            deb [signed-by=/x] http://deb.test/debian stable main\nURIs: https://a.test/x http://b.test\nreplace-with = \"sparse+https://cargo.test/index/\"\nhttps://127.0.0.1/";
        let found: Vec<String> = hosts(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["a.test", "b.test", "cargo.test", "deb.test", "mirror.test", "npm.test"]);
    }
}
