//! What `doctor` tells: every check of the host and of each engine with its fix, and which class `auto` takes and why.

use std::fmt;

use belljar_types::{Check, CheckOutcome, EngineReport, IsolationRequest};

use crate::{ClassChoice, SharedKernel, choose_class};

/// The state of a host, as found by trying.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DoctorReport {
    /// Checks that concern every class.
    pub host: Vec<Check>,
    /// Each engine's report, strongest class first.
    pub engines: Vec<EngineReport>,
    /// What `auto` takes, or why it takes nothing.
    pub auto: Result<ClassChoice, String>,
    /// Whether the operator allowed classes that share the kernel.
    pub allow_shared_kernel: SharedKernel,
}

impl DoctorReport {
    /// Puts the report together.
    pub fn new(host: Vec<Check>, mut engines: Vec<EngineReport>, shared: SharedKernel) -> Self {
        engines.sort_by_key(|report| std::cmp::Reverse(report.class));
        let auto = choose_class(IsolationRequest::Auto, &engines, shared).map_err(|error| error.to_string());
        Self { host, engines, auto, allow_shared_kernel: shared }
    }

    /// Whether a sandbox can be made here at all.
    pub fn usable(&self) -> bool {
        self.auto.is_ok() && self.host.iter().all(|check| check.outcome != CheckOutcome::Fail)
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "host")?;
        write_checks(f, &self.host)?;
        for engine in &self.engines {
            let age = engine.age_days.map(|days| format!(", {days} days old")).unwrap_or_default();
            let verdict = if engine.works() { "works" } else { "cannot be used" };
            writeln!(f, "\n{} class: {verdict} ({}{age})", engine.class, engine.version)?;
            write_checks(f, &engine.checks)?;
        }
        match &self.auto {
            Ok(choice) => writeln!(f, "\nisolation = auto takes {}: {}", choice.class, choice.why),
            Err(reason) => writeln!(f, "\nisolation = auto takes nothing: {reason}"),
        }
    }
}

fn write_checks(f: &mut fmt::Formatter<'_>, checks: &[Check]) -> fmt::Result {
    for check in checks {
        let mark = match check.outcome {
            CheckOutcome::Pass => "ok  ",
            CheckOutcome::Warn => "warn",
            CheckOutcome::Fail => "FAIL",
        };
        writeln!(f, "  {mark} {}: {}", check.name, check.found)?;
        if !check.fix.is_empty() {
            writeln!(f, "       fix: {}", check.fix)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use belljar_types::IsolationClass;

    use super::*;

    #[test]
    fn every_check_shows_with_its_fix_and_every_engine_with_its_age() {
        let engine = EngineReport {
            class: IsolationClass::Gvisor,
            version: "runsc 20240729.0".to_owned(),
            age_days: Some(839),
            checks: vec![Check::pass("systrap", "a sandbox ran")],
        };
        let report = DoctorReport::new(vec![Check::warn("swap", "on", "turn it off")], vec![engine], SharedKernel::Refused);
        let text = report.to_string();
        assert!(report.usable());
        for expected in ["warn swap: on", "fix: turn it off", "839 days old", "auto takes gvisor"] {
            assert!(text.contains(expected), "{expected} not in:\n{text}");
        }
    }
}
