//! Which isolation class a sandbox gets, and why.
//!
//! Only what an engine's probe showed to work counts: a `/dev/kvm` that boots nothing is no microVM. A class that shares the host's kernel
//! is never taken, asked for or not, unless the operator allowed it; and a request for one class is never answered with another.

use belljar_types::{EngineReport, IsolationClass, IsolationRequest};

/// Whether the operator lets sandboxes share the host's kernel (`allow_shared_kernel`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedKernel {
    /// Never.
    #[default]
    Refused,
    /// The container class may be used.
    Allowed,
}

/// The class a sandbox gets.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ClassChoice {
    /// The class.
    pub class: IsolationClass,
    /// Why this one and no stronger one, for people.
    pub why: String,
}

/// No class fits: nothing is started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoClass {
    /// The one asked for does not work here.
    #[error("isolation {class} was asked for and does not work on this host: {reason}")]
    Broken {
        /// What was asked for.
        class: IsolationClass,
        /// What its probe found, and the fix.
        reason: String,
    },
    /// The one asked for is not part of this server.
    #[error("isolation {class} was asked for and this server has no engine for it")]
    Absent {
        /// What was asked for.
        class: IsolationClass,
    },
    /// The one asked for shares the kernel and the operator did not allow that.
    #[error("isolation {class} shares the host's kernel, which this server refuses: set allow_shared_kernel to permit it")]
    SharedKernelRefused {
        /// What was asked for.
        class: IsolationClass,
    },
    /// `auto` found nothing.
    #[error("no isolation class can be used on this host: {reasons}")]
    NothingWorks {
        /// Each class and what rules it out.
        reasons: String,
    },
}

/// Chooses a class from what the engines' probes found.
pub fn choose_class(request: IsolationRequest, reports: &[EngineReport], shared: SharedKernel) -> Result<ClassChoice, NoClass> {
    match request {
        IsolationRequest::Exactly(class) => choose_exactly(class, reports, shared),
        IsolationRequest::Auto => choose_strongest(reports, shared),
    }
}

fn choose_exactly(class: IsolationClass, reports: &[EngineReport], shared: SharedKernel) -> Result<ClassChoice, NoClass> {
    let report = reports.iter().find(|report| report.class == class).ok_or(NoClass::Absent { class })?;
    if class.shares_kernel() && shared == SharedKernel::Refused {
        return Err(NoClass::SharedKernelRefused { class });
    }
    match obstacle(report, SharedKernel::Allowed) {
        None => Ok(ClassChoice { class, why: format!("{class} was asked for and works ({})", report.version) }),
        Some(reason) => Err(NoClass::Broken { class, reason }),
    }
}

fn choose_strongest(reports: &[EngineReport], shared: SharedKernel) -> Result<ClassChoice, NoClass> {
    // `auto` means a whole computer: code for WebAssembly is another kind of thing and asks for it by name.
    let mut candidates: Vec<&EngineReport> = reports.iter().filter(|report| report.class != IsolationClass::Wasm).collect();
    candidates.sort_by_key(|report| std::cmp::Reverse(report.class));
    let mut passed_over = Vec::new();
    for report in candidates {
        match obstacle(report, shared) {
            Some(reason) => passed_over.push(format!("{}: {reason}", report.class)),
            None => {
                let class = report.class;
                let because = if passed_over.is_empty() { String::new() } else { format!("; passed over {}", passed_over.join("; ")) };
                return Ok(ClassChoice { class, why: format!("strongest class that works here ({}){because}", report.version) });
            }
        }
    }
    let reasons = if passed_over.is_empty() { "this server has no engine".to_owned() } else { passed_over.join("; ") };
    Err(NoClass::NothingWorks { reasons })
}

/// What keeps an engine from being used, if anything.
fn obstacle(report: &EngineReport, shared: SharedKernel) -> Option<String> {
    if report.class.shares_kernel() && shared == SharedKernel::Refused {
        return Some("shares the host's kernel and allow_shared_kernel is not set".to_owned());
    }
    report.first_failure().map(|check| match check.fix.as_str() {
        "" => format!("{}: {}", check.name, check.found),
        fix => format!("{}: {} (fix: {fix})", check.name, check.found),
    })
}

#[cfg(test)]
mod tests {
    use belljar_types::Check;

    use super::*;

    fn report(class: IsolationClass, failure: Option<&str>) -> EngineReport {
        let checks = vec![match failure {
            None => Check::pass("boots", "yes"),
            Some(found) => Check::fail("boots", found, "buy hardware"),
        }];
        EngineReport { class, version: format!("{class} 1"), age_days: None, checks }
    }

    use IsolationClass::{Container, Gvisor, Microvm, Wasm};

    #[test]
    fn auto_takes_the_strongest_that_works_and_says_what_it_passed_over() {
        let reports = [report(Container, None), report(Gvisor, None), report(Microvm, Some("/dev/kvm boots no guest"))];
        let choice = choose_class(IsolationRequest::Auto, &reports, SharedKernel::Allowed).unwrap();
        assert_eq!(choice.class, Gvisor);
        assert!(choice.why.contains("passed over microvm: boots: /dev/kvm boots no guest (fix: buy hardware)"), "{}", choice.why);
    }

    #[test]
    fn auto_never_shares_the_kernel_unless_the_operator_allowed_it() {
        let reports = [report(Container, None), report(Gvisor, Some("runsc is missing")), report(Wasm, None)];
        let error = choose_class(IsolationRequest::Auto, &reports, SharedKernel::Refused).unwrap_err();
        assert!(error.to_string().contains("allow_shared_kernel is not set"), "{error}");
        let choice = choose_class(IsolationRequest::Auto, &reports, SharedKernel::Allowed).unwrap();
        assert_eq!(choice.class, Container);
    }

    #[test]
    fn a_class_asked_for_is_never_replaced_by_another() {
        let reports = [report(Container, None), report(Gvisor, Some("runsc is missing"))];
        let exactly = |class| choose_class(IsolationRequest::Exactly(class), &reports, SharedKernel::Refused);
        assert!(matches!(exactly(Gvisor), Err(NoClass::Broken { class: Gvisor, .. })));
        assert!(matches!(exactly(Microvm), Err(NoClass::Absent { class: Microvm })));
        assert!(matches!(exactly(Container), Err(NoClass::SharedKernelRefused { class: Container })));
    }
}
