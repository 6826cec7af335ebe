//! What happened at the boundary, for whoever keeps a record of it: every verdict with the rule that decided, never a byte of content.

use belljar_types::SandboxId;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// To whom.
    pub sandbox: SandboxId,
    /// What.
    pub kind: EventKind,
    /// Where to: a name or an address, safe to print.
    pub destination: String,
    /// Which port.
    pub port: u16,
    /// The rule that decided.
    pub rule: String,
    /// Why, for people; safe to print.
    pub reason: String,
}

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A connection was allowed.
    Allowed,
    /// A connection was refused.
    Denied,
    /// A request on a connection was allowed.
    RequestAllowed,
    /// A request on a connection was refused.
    RequestDenied,
    /// A question for a name was refused.
    NameDenied,
    /// Too many different names were asked for.
    TooManyNames,
    /// A connection was allowed, and could not be made.
    Unreachable,
    /// A connection was cut: its policy changed, or its limit was reached.
    Cut,
    /// A secret was added to a request.
    SecretUsed,
}
