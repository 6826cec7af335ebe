//! What a sandbox may do, written once; pure decisions, no I/O.
//!
//! ```text
//!   text (TOML, YAML, JSON) ─ parse ─▶ Policy ─┐
//!   profile by name ───────────────────────────┤ resolve (the operator's sets) ─ narrow ─▶ Policy ─ compile ─▶ Compiled
//!   project, template, sandbox ────────────────┘                                  │                            │
//!                                                    enforcement: every rule is held by somebody, or refused   decide(request) ─▶ Verdict
//! ```
//! A document may only narrow the one before it: a rule that would allow more is an error that names it. One function decides about every
//! connection and every request, whichever way it came.

mod address;
mod compile;
mod decide;
mod diff;
mod document;
mod enforcement;
mod error;
mod explain;
mod merge;
mod merge_rules;
mod name;
mod operator;
mod parse;
mod path;
mod port_set;
mod ports;
mod profiles;
mod quantity;
mod table;
mod trial;
mod verdict;

pub use address::{Cidr, plain_address, reserved};
pub use compile::Compiled;
pub use decide::{Destination, HttpRequest, Request, decide, resolvable};
pub use diff::{Change, diff};
pub use document::{
    Budget, HeaderRule, Ingress, Lifetime, Mount, Network, NetworkLimits, Output, Policy, PolicyLimits, Protocol, Rule, Scheme, SecretRule,
    Stance, Users, VERSION,
};
pub use enforcement::{Enforced, Enforcers, Holder, enforcement};
pub use error::PolicyError;
pub use explain::explain;
pub use merge::narrow;
pub use name::{HostName, NamePattern};
pub use operator::Operator;
pub use parse::{Format, parse};
pub use path::{PathPattern, plain_path};
pub use ports::{PortRange, Ports};
pub use profiles::{PROFILES, profile};
pub use quantity::{Size, Span};
pub use trial::{Case, Outcome, Trial, parse_cases};
pub use verdict::{Reason, Verdict};
