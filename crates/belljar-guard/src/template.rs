//! A template's layers as the root, from the server's pool, under a writable layer in memory that is gone with the command.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use belljar_linux::mount::{FileIdentity, Overlay, Restrictions, copy_tree, map_owners, memory_filesystem};
use belljar_types::{Template, TemplateName};
use rustix::fs::{Mode, mkdirat};

use crate::errors::GuardError;
use crate::plan::{STRANGER, set};

const WRITABLE_BYTES: u64 = 4 << 30;
const WRITABLE_FILES: u64 = 1 << 20;
const HOME: &str = "/root";

/// A template, ready to be a root.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) root: OwnedFd,
    template: Template,
}

/// Opens it. `users` is there if the caller is root.
pub(crate) fn open(name: &str, data: &Path, users: Option<&OwnedFd>) -> Result<Opened, GuardError> {
    let Some(users) = users else { return Err(GuardError::TemplateNeedsRoot { data: data.to_owned() }) };
    let invalid = |_| GuardError::Invalid { option: "--template", value: name.to_owned(), expected: "that is not a template's name" };
    let known: TemplateName = name.parse().map_err(invalid)?;
    let pool = data.join("pool");
    if !pool.join("layers").is_dir() {
        return Err(GuardError::PoolNotMounted { pool });
    }
    let path = pool.join("templates").join(format!("{known}.json"));
    let read = fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice::<Template>(&bytes)?));
    let template = read.map_err(|source| GuardError::Template { name: name.to_owned(), path, source })?;
    let root = mount(&template, &pool, users).map_err(|source| GuardError::Layers { name: name.to_owned(), source })?;
    Ok(Opened { root, template })
}

fn mount(template: &Template, pool: &Path, users: &OwnedFd) -> io::Result<OwnedFd> {
    let mut layers = Vec::new();
    for (number, digest) in template.layers.iter().enumerate() {
        // An overlay refuses to have a directory twice; the upper one counts.
        if template.layers.iter().skip(number + 1).any(|later| later == digest) {
            continue;
        }
        let layer = copy_tree(&pool.join("layers").join(digest.to_string()).join("fs"))?;
        map_owners(layer.as_fd(), users.as_fd(), Restrictions::NONE)?;
        layers.push(layer);
    }
    let writable = {
        let _as_stranger = FileIdentity::assume(STRANGER)?;
        let writable = memory_filesystem(WRITABLE_BYTES, WRITABLE_FILES, 0o755, Restrictions::NONE)?;
        for name in ["upper", "work"] {
            mkdirat(&writable, name, Mode::from_raw_mode(0o755))?;
        }
        writable
    };
    let lower: Vec<_> = layers.iter().map(AsFd::as_fd).collect();
    Overlay { lower: &lower, writable: writable.as_fd(), root_id: STRANGER }.mount(Restrictions::NO_DEVICES.and(Restrictions::NO_SETUID))
}

/// The template's own variables in place of the machine's. Returns its user's home.
pub(crate) fn adjust(opened: &Opened, environment: &mut Vec<(OsString, OsString)>, asked: &[OsString]) -> Result<PathBuf, GuardError> {
    let machine = ["PATH", "SHELL", "USER", "LOGNAME"];
    environment.retain(|(name, _)| !machine.iter().any(|own| name == own));
    for name in ["USER", "LOGNAME"] {
        set(environment, name, "root".into());
    }
    for (name, value) in &opened.template.defaults.env {
        set(environment, name, value.into());
    }
    // What was asked for wins over both, and the usual path stands in where there is none.
    let caller: Vec<_> = std::env::vars_os().filter(|(name, _)| name != "PATH" || asked.iter().any(|asked| asked == "PATH")).collect();
    let named = |name: &OsString| asked.iter().any(|asked| asked == name || asked.to_string_lossy().split('=').next() == name.to_str());
    for (name, value) in crate::environment::reduce(caller.into_iter(), asked)? {
        let is_missing = !environment.iter().any(|(known, _)| *known == name);
        if named(&name) || name == "PATH" && is_missing {
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value));
        }
    }
    Ok(HOME.into())
}
