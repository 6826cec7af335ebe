//! What was decided, and why, in words that name the rule.

use std::fmt;

use crate::compile::CompiledRule;
use crate::document::Scheme;

/// Why it was decided so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The rule says so.
    Rule,
    /// No rule is about it.
    NoRule,
    /// A rule is about the destination, and not about the port.
    Port,
    /// A rule is about the destination, and not about this kind of packets.
    Protocol,
    /// A rule is about the destination, and not about the method.
    Method,
    /// A rule is about the destination, and not about the path.
    Path,
    /// A rule wants requests to be read, and what may be spoken is raw.
    Unread,
    /// No rule can open this kind of address.
    Closed(&'static str),
}

/// What was decided.
#[derive(Debug, Clone, Copy)]
pub struct Verdict<'p> {
    /// Whether it may.
    pub allow: bool,
    /// Why.
    pub reason: Reason,
    /// For a connection that may be made: every request on it has to be asked about.
    pub inspect: bool,
    /// For a connection that may be made: what is to be spoken.
    pub scheme: Scheme,
    pub(crate) rule: Option<&'p CompiledRule>,
}

impl Verdict<'_> {
    /// The rule that decided, or came closest.
    pub fn rule(&self) -> String {
        match (self.rule, self.reason) {
            (Some(rule), _) => rule.to_string(),
            (None, Reason::Closed(_)) => "closed-addresses".to_owned(),
            (None, _) => "network.default".to_owned(),
        }
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule();
        match (self.allow, self.reason) {
            (true, _) => write!(f, "allowed by {rule}"),
            (false, Reason::Rule) => write!(f, "denied by {rule}"),
            (false, Reason::NoRule) => write!(f, "denied by {rule}: no rule is about this destination"),
            (false, Reason::Port) => write!(f, "denied: {rule} is about this destination, on other ports"),
            (false, Reason::Protocol) => write!(f, "denied: {rule} is about this destination, by another protocol"),
            (false, Reason::Method) => write!(f, "denied: {rule} is about this destination, with other methods"),
            (false, Reason::Path) => write!(f, "denied: {rule} is about this destination, on other paths"),
            (false, Reason::Unread) => {
                write!(f, "denied by {rule}: it is about requests, and nobody reads them where only raw connections are allowed")
            }
            (false, Reason::Closed(what)) => write!(f, "denied by {rule}: no rule opens an address that is {what}"),
        }
    }
}
