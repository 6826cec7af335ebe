//! The server itself: engines, what `auto` takes, settings that callers feel.

use belljar_core::{Service, choose_class};
use belljar_types::{CheckOutcome, EngineReport, IsolationRequest};

use super::limits_view;
use crate::dto::{AutoView, CheckView, EngineView, ServerView};

fn engine_view(report: &EngineReport) -> EngineView {
    let outcome = |outcome| match outcome {
        CheckOutcome::Pass => "pass",
        CheckOutcome::Warn => "warn",
        CheckOutcome::Fail => "fail",
    };
    let checks = report.checks.iter().map(|check| CheckView {
        name: check.name.clone(),
        outcome: outcome(check.outcome),
        found: check.found.clone(),
        fix: check.fix.clone(),
    });
    EngineView { isolation: report.class.as_str(), version: report.version.clone(), works: report.works(), checks: checks.collect() }
}

pub(crate) fn server_view(service: &Service, domain: Option<&str>) -> ServerView {
    let reports = service.reports();
    let config = service.config();
    let auto = match choose_class(IsolationRequest::Auto, &reports, config.shared_kernel) {
        Ok(choice) => AutoView { isolation: Some(choice.class.as_str()), reason: choice.why },
        Err(none) => AutoView { isolation: None, reason: none.to_string() },
    };
    ServerView {
        version: env!("CARGO_PKG_VERSION"),
        engines: reports.iter().map(engine_view).collect(),
        auto,
        default_template: config.default_template.to_string(),
        default_limits: limits_view(&config.default_limits),
        max_limits: config.max_limits.as_ref().map(limits_view),
        default_lease_seconds: config.default_lease.as_secs(),
        max_lease_seconds: config.max_lease.as_secs(),
        max_sandboxes: config.max_sandboxes,
        domain: domain.map(str::to_owned),
    }
}
