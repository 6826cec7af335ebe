//! Trying a policy out: a list of things somebody might do and what is to come of them, kept beside the policy and run before it is used.

use serde::Deserialize;

use crate::decide::{Destination, HttpRequest, Request, decide};
use crate::document::Protocol;
use crate::parse::read;
use crate::{Compiled, Format, HostName, PolicyError};

/// What is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// A host or an address.
    pub to: String,
    /// The port; 443 when left out.
    #[serde(default = "https")]
    pub port: u16,
    /// A method, with `path`, asks about a request.
    #[serde(default)]
    pub method: Option<String>,
    /// The request's path; `/` when only a method is given.
    #[serde(default)]
    pub path: Option<String>,
    /// Kind of packets.
    #[serde(default)]
    pub protocol: Protocol,
    /// What is to come of it.
    pub expect: Outcome,
    /// Which rule is to decide, if that matters.
    #[serde(default)]
    pub rule: Option<String>,
}

fn https() -> u16 {
    443
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Whether it was as expected.
    pub passed: bool,
    /// What was decided, in words.
    pub said: String,
}

/// Reads a list of cases: `[[case]]` in TOML, `case:` in YAML and JSON.
pub fn parse_cases(text: &str, format: Format) -> Result<Vec<Case>, PolicyError> {
    read::<Cases>(text, format).map(|cases| cases.case)
}

impl Case {
    /// Asks the policy.
    pub fn run(&self, policy: &Compiled) -> Trial {
        let name = HostName::from_text(&self.to);
        let to = match (self.to.parse(), &name) {
            (Ok(address), _) => Destination::Address(address),
            (_, Some(name)) => Destination::Name(name),
            _ => return Trial { passed: self.expect == Outcome::Deny, said: "denied: this is neither a name nor an address".to_owned() },
        };
        let http = (self.method.is_some() || self.path.is_some())
            .then(|| HttpRequest { method: self.method.as_deref().unwrap_or("GET"), target: self.path.as_deref().unwrap_or("/") });
        let verdict = decide(policy, &Request { to, port: self.port, protocol: self.protocol, http });
        let as_expected = verdict.allow == (self.expect == Outcome::Allow);
        let by_rule = self.rule.as_ref().is_none_or(|rule| *rule == verdict.rule());
        Trial { passed: as_expected && by_rule, said: verdict.to_string() }
    }
}
