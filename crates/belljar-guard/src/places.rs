//! Which directories of the host may be shown at all.
//!
//! The guard is worth nothing when it is started in the home directory and shows all of it. So the directories that hold keys, and those
//! that hold such directories, are refused, with no option to overrule it: a narrower directory always does.

use std::path::{Path, PathBuf};

use crate::errors::GuardError;

/// Made by the sandbox itself; the host's must not take their place. Nothing below them is shown either.
const OWN: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// Configuration and state of the whole machine.
const SYSTEM: [&str; 8] = ["/etc", "/boot", "/var", "/var/lib", "/var/log", "/home", "/tmp", "/var/run"];
/// Of the home directory: what is in them opens other doors.
const KEYS: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".vault-token",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".cargo/credentials.toml",
];

/// Refuses a path, resolved, that is not to be shown.
pub(crate) fn check(path: &Path, home: Option<&Path>) -> Result<(), GuardError> {
    let refuse = |why| Err(GuardError::NotShown { path: path.to_owned(), why });
    if path == Path::new("/") {
        return refuse("it is the whole machine; choose a directory in it");
    }
    if OWN.iter().any(|own| path.starts_with(own)) {
        return refuse("the sandbox has its own; choose another directory");
    }
    if SYSTEM.iter().any(|system| path == Path::new(system)) || path.starts_with("/etc") {
        return refuse("it belongs to the whole machine; choose a directory of your own");
    }
    let Some(home) = home else { return Ok(()) };
    if home.starts_with(path) {
        return refuse("it holds your home directory with its keys and tokens; change to a project directory");
    }
    if KEYS.iter().map(|keys| home.join(keys)).any(|keys| path.starts_with(keys)) {
        return refuse("keys and tokens are kept there; copy the one file that is needed to the project, or pass it with --env");
    }
    Ok(())
}

/// The caller's home, resolved, if it has one that exists.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?.canonicalize().ok().filter(|home| home != Path::new("/"))
}

/// Where the sandbox's own, empty home goes: the same path, unless something else has to be there.
pub(crate) fn home_inside() -> PathBuf {
    let taken = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/tmp", "/run"];
    let named = std::env::var_os("HOME").map(PathBuf::from);
    let plain = |home: &PathBuf| {
        home.is_absolute()
            && home.parent().is_some()
            && !home.components().any(|part| matches!(part, std::path::Component::ParentDir | std::path::Component::CurDir))
            && !taken.iter().any(|taken| home.starts_with(taken))
    };
    named.filter(plain).unwrap_or_else(|| "/home/guarded".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_directories_are_shown() {
        let home = Path::new("/home/ann");
        for refused in [
            "/",
            "/etc",
            "/etc/ssl",
            "/home",
            "/home/ann",
            "/home/ann/.ssh",
            "/home/ann/.ssh/x",
            "/home/ann/.config/gh",
            "/proc/1",
            "/run/user/1",
            "/dev/shm",
            "/var",
            "/tmp",
        ] {
            assert!(check(Path::new(refused), Some(home)).is_err(), "{refused}");
        }
        for shown in ["/home/ann/project", "/opt", "/srv/x", "/tmp/x", "/var/www", "/home/ann/.cargo/bin", "/home/bob", "/usr/src/app"] {
            assert!(check(Path::new(shown), Some(home)).is_ok(), "{shown}");
        }
    }
}
