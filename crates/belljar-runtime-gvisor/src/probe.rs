//! Whether this engine works here: by running a sandbox, not by guessing from what is installed.
//!
//! The trial needs no template and no slot. Its root is the directory of `runsc` itself, read-only; what runs in it is `runsc --version`, a
//! static program that is there for sure; its network is a namespace that runsc makes, which shows the one thing that old versions get wrong.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belljar_linux::shim::in_private_mounts;
use belljar_types::{Check, EngineReport, IsolationClass};

use crate::bundle;
use crate::config::GvisorConfig;
use crate::errors::EngineError;
use crate::launch::{CONTAINER, Files, disguise_host};
use crate::runsc::{FIX, Runsc};

const TRIAL_LIMIT: Duration = Duration::from_secs(30);
const OLD_AFTER_DAYS: u64 = 365;

/// Looks at everything the engine needs and tries it. Blocks.
pub(crate) fn report(config: &GvisorConfig) -> EngineReport {
    let mut report = EngineReport { class: IsolationClass::Gvisor, version: "none".to_owned(), age_days: None, checks: Vec::new() };
    let runsc = match Runsc::find(config) {
        Ok(runsc) => runsc,
        Err(error) => {
            report.checks.push(Check::fail("runsc", with_cause(&error), FIX));
            return report;
        }
    };
    report.version = format!("runsc {}", runsc.version);
    report.age_days = runsc.age_days();
    report.checks.push(age(&runsc));
    report.checks.push(root_privilege());
    if report.works() {
        report.checks.push(trial(&runsc));
    }
    report
}

/// The report when it could not even be looked.
pub(crate) fn not_tried(error: &EngineError) -> EngineReport {
    let checks = vec![Check::fail("runsc", error.to_string(), "ask again")];
    EngineReport { class: IsolationClass::Gvisor, version: "unknown".to_owned(), age_days: None, checks }
}

fn age(runsc: &Runsc) -> Check {
    let found = format!("{} of {}", runsc.path.display(), runsc.date);
    match runsc.age_days() {
        Some(days) if days > OLD_AFTER_DAYS => Check::warn(
            "runsc",
            format!("{found}, {days} days old"),
            "put a current runsc from gVisor's releases on PATH; it is used if it is newer",
        ),
        _ => Check::pass("runsc", found),
    }
}

fn root_privilege() -> Check {
    if rustix::process::geteuid().is_root() {
        Check::pass("privilege", "root")
    } else {
        Check::fail("privilege", "not root", "run belljar as root: it makes namespaces, mounts and control groups")
    }
}

fn trial(runsc: &Runsc) -> Check {
    const NAME: &str = "a sandbox with systrap and its own network stack";
    let started = Instant::now();
    match try_out(runsc) {
        Ok(()) => Check::pass(NAME, format!("ran in {} ms", started.elapsed().as_millis())),
        Err(error) => Check::fail(NAME, belljar_types::escape_untrusted(error.to_string().as_bytes()), FIX),
    }
}

fn try_out(runsc: &Runsc) -> io::Result<()> {
    let scratch = tempfile::Builder::new().prefix("belljar-").tempdir()?;
    let files = Files::new(scratch.path(), scratch.path());
    let program = fs::canonicalize(&runsc.path)?;
    let (directory, name) = (program.parent(), program.file_name().and_then(|name| name.to_str()));
    let (directory, name) = directory.zip(name).ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir(&files.root)?;
    bundle::write_trial(&files.bundle.join("config.json"), &files.root, &[&format!("/{name}"), "--version"])?;

    let mut command = Command::new(&runsc.path);
    command.env_clear().args(runsc.flags(&files, false)).arg("run").arg("--bundle").arg(&files.bundle).arg(CONTAINER);
    command.stdin(Stdio::null()).stdout(File::create(scratch.path().join("out"))?).stderr(Stdio::null()).process_group(0);
    let child = in_private_mounts(|| {
        rustix::mount::mount_bind(directory, &files.root)?;
        disguise_host(runsc, None)?;
        spawn_and_wait(&mut command)
    })?;
    let said = fs::read_to_string(scratch.path().join("out")).unwrap_or_default();
    match child {
        Some(status) if status.success() && said.starts_with("runsc version") => Ok(()),
        Some(status) => Err(io::Error::other(format!("runsc ended with {status}: {}", files.last_words()))),
        None => Err(io::Error::other(format!("runsc did not end within {TRIAL_LIMIT:?}: {}", files.last_words()))),
    }
}

/// `None` if it had to be killed because it took too long; the sandbox dies with it.
fn spawn_and_wait(command: &mut Command) -> io::Result<Option<ExitStatus>> {
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    let mut child = command.spawn()?;
    let deadline = Instant::now() + TRIAL_LIMIT;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use belljar_types::CheckOutcome;

    use super::*;

    #[test]
    fn without_a_runsc_the_report_says_what_to_do() {
        let report = report(&GvisorConfig { runsc: Some("/nowhere/runsc".into()), ..GvisorConfig::default() });
        let failure = report.first_failure().unwrap();
        assert!(failure.found.contains("/nowhere/runsc") && failure.found.contains("No such file"), "{failure:?}");
        assert_eq!(failure.fix, FIX);
    }

    #[test]
    fn a_usable_runsc_runs_a_sandbox() {
        let Ok(_) = Runsc::find(&GvisorConfig::default()) else { panic!("these tests need a runsc; {FIX}") };
        let report = report(&GvisorConfig::default());
        assert!(report.works(), "{report:?}");
        assert!(report.version.starts_with("runsc ") && report.age_days.is_some(), "{report:?}");
        println!("{report:#?}");
    }

    #[test]
    fn a_runsc_that_only_knows_its_version_does_not_pass() {
        let directory = tempfile::tempdir().unwrap();
        let pretender = directory.path().join("runsc");
        fs::write(&pretender, "#!/bin/sh\n[ $# -gt 1 ] && exit 3\necho runsc version release-20990101.0\n").unwrap();
        fs::set_permissions(&pretender, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let report = report(&GvisorConfig { runsc: Some(pretender), ..GvisorConfig::default() });
        let failure = report.first_failure().unwrap();
        assert!(failure.found.contains("exit status: 3"), "{failure:?}");
        assert!(report.checks.iter().any(|check| check.name == "runsc" && check.outcome == CheckOutcome::Pass));
    }
}
