//! Which `runsc` is used: found once, asked for its version, and refused if it is too old to be safe.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::GvisorConfig;
use crate::errors::EngineError;

/// Where `scripts/install-runsc` puts one.
pub(crate) const INSTALLED: &str = "/usr/local/lib/belljar/runsc";
/// What to do about a missing or old one.
pub(crate) const FIX: &str = "run scripts/install-runsc as root, or put gVisor's current runsc on PATH";
/// The first year whose versions have a systrap that can be relied on.
pub(crate) const OLDEST: u32 = 20240101;
/// From this version on a network namespace is told from the host's by a file that is there in the host's only.
const KNOWS_NAMESPACES: u32 = 20240807;
/// From this version on a sandbox in which nothing happens wakes nobody.
const RESTS: u32 = 20260622;

/// A `runsc` that runs and is new enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runsc {
    pub(crate) path: PathBuf,
    /// As it says itself, e.g. `release-20240729.0`.
    pub(crate) version: String,
    /// The version's date as yyyymmdd.
    pub(crate) date: u32,
}

impl Runsc {
    /// The configured one or none; otherwise the first usable one of those in the known places.
    pub(crate) fn find(config: &GvisorConfig) -> Result<Self, EngineError> {
        if let Some(path) = &config.runsc {
            return Self::at(path);
        }
        let mut refused = None;
        for place in known_places() {
            match Self::at(&place) {
                Ok(found) => return Ok(found),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(EngineError::NoRunsc))
    }

    fn at(path: &Path) -> Result<Self, EngineError> {
        let asked = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = asked.map_err(|source| EngineError::AskVersion { runsc: path.to_owned(), source })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((version, date)) = parse_version(&text) else {
            return Err(EngineError::UnknownVersion {
                runsc: path.to_owned(),
                said: belljar_types::escape_untrusted(&output.stdout[..output.stdout.len().min(80)]),
            });
        };
        if date < OLDEST {
            return Err(EngineError::TooOld { runsc: path.to_owned(), date });
        }
        Ok(Self { path: path.to_owned(), version, date })
    }

    /// Whether it has to be kept from seeing the host's `/proc/sys` (peculiarity (a)).
    pub(crate) fn mistakes_namespaces(&self) -> bool {
        self.date < KNOWS_NAMESPACES
    }

    /// Whether it asks itself every 0.4 ms how it is doing, in a sandbox in which nothing happens too (peculiarity (g)).
    pub(crate) fn never_rests(&self) -> bool {
        self.date < RESTS
    }

    /// Days since the version was made.
    pub(crate) fn age_days(&self) -> Option<u64> {
        let today = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs() / 86_400;
        today.checked_sub(days_since_1970(self.date)?)
    }
}

fn known_places() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("runsc")).filter(|candidate| candidate.is_file());
    on_path.chain(Some(PathBuf::from(INSTALLED)).filter(|installed| installed.is_file())).collect()
}

/// `runsc version release-20240729.0` or Debian's `runsc version 0.0~20240729.0`: the version and its date.
fn parse_version(text: &str) -> Option<(String, u32)> {
    let version = text.lines().next()?.strip_prefix("runsc version ")?.trim();
    let date = version.split(|c: char| !c.is_ascii_digit()).find(|digits| digits.len() == 8)?;
    Some((version.to_owned(), date.parse().ok()?))
}

/// Counts days by the civil calendar; `None` for what is no date.
fn days_since_1970(date: u32) -> Option<u64> {
    let (year, month, day) = (i64::from(date / 10_000), i64::from(date / 100 % 100), i64::from(date % 100));
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years are counted from March, so that the leap day is the last of its year.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
    u64::try_from(days - 719_468).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_version_are_read() {
        assert_eq!(parse_version("runsc version release-20240729.0\nspec: 1.1.0\n"), Some(("release-20240729.0".into(), 20240729)));
        assert_eq!(parse_version("runsc version 0.0~20240729.0\nspec: 1.2.0\n"), Some(("0.0~20240729.0".into(), 20240729)));
        assert_eq!(parse_version("runsc version VERSION_MISSING\n"), None);
        assert_eq!(parse_version("ls (GNU coreutils) 9.1\n"), None);
    }

    #[test]
    fn dates_are_counted_in_days() {
        assert_eq!(days_since_1970(19700101), Some(0));
        assert_eq!(days_since_1970(20000301), Some(11_017));
        assert_eq!(days_since_1970(20240229), Some(19_782));
        assert_eq!(days_since_1970(20241301), None);
    }

    #[test]
    fn the_package_of_2022_is_refused_with_its_fix() {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("runsc");
        std::fs::write(&old, "#!/bin/sh\necho runsc version 0.0~20221219.0\n").unwrap();
        std::fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let error = Runsc::find(&GvisorConfig { runsc: Some(old), ..GvisorConfig::default() }).unwrap_err();
        assert!(matches!(error, EngineError::TooOld { date: 20221219, .. }), "{error:?}");
        assert!(error.to_string().contains("scripts/install-runsc"), "{error}");
    }
}
