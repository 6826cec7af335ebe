//! The decision: one function for every entrance. Denials win over permissions; what nothing is about goes by the default.
//!
//! It is asked twice about HTTP: once about the connection, when nothing but its destination is known, and once about each request on it. A
//! connection that only some requests may use is allowed with `inspect`, which obliges whoever asked to ask again.

use std::fmt;
use std::net::IpAddr;

use crate::compile::{Compiled, CompiledRule, Shape};
use crate::document::{Protocol, Scheme, Stance};
use crate::table::Reference;
use crate::{HostName, PortRange, plain_path};

/// Where something is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination<'a> {
    /// A host by its name.
    Name(&'a HostName),
    /// An address, with no name known.
    Address(IpAddr),
}

/// A request of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpRequest<'a> {
    /// Its method, as sent.
    pub method: &'a str,
    /// Its target in origin form, as sent.
    pub target: &'a str,
}

/// What is to be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Where to.
    pub to: Destination<'a>,
    /// Which port there.
    pub port: u16,
    /// By what kind of packets.
    pub protocol: Protocol,
    /// Which request; `None` asks about the connection.
    pub http: Option<HttpRequest<'a>>,
}

impl<'a> Request<'a> {
    /// A connection to a name.
    pub fn connection(to: Destination<'a>, port: u16) -> Self {
        Self { to, port, protocol: Protocol::Tcp, http: None }
    }
}

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
    rule: Option<&'p CompiledRule>,
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
            (false, Reason::Closed(what)) => write!(f, "denied by {rule}: no rule opens an address that is {what}"),
        }
    }
}

/// Decides.
pub fn decide<'p>(policy: &'p Compiled, request: &Request<'_>) -> Verdict<'p> {
    let denied = |rule, reason| Verdict { allow: false, reason, inspect: false, scheme: Scheme::Raw, rule };
    if let Destination::Address(address) = request.to
        && let Some(what) = policy.closed(address)
    {
        return denied(None, Reason::Closed(what));
    }
    let mut search =
        Search { policy, request, path: PathState::Unknown, denied: None, allowed: None, near: None, inspect: false, free: false };
    match request.to {
        Destination::Name(name) => policy.names.matching(name.as_str(), |found| search.consider(found)),
        Destination::Address(address) => policy.rules_for_address(address, |found| search.consider(found)),
    }
    if let Some(rule) = search.denied {
        return denied(Some(rule), Reason::Rule);
    }
    if let Some((rule, scheme)) = search.allowed {
        return Verdict { allow: true, reason: Reason::Rule, inspect: search.inspect || !search.free, scheme, rule: Some(rule) };
    }
    let public_tcp = policy.stance == Stance::Allow && request.protocol == Protocol::Tcp;
    match search.near {
        _ if public_tcp => {
            Verdict { allow: true, reason: Reason::NoRule, inspect: search.inspect, scheme: default_scheme(request.port), rule: None }
        }
        Some((rule, reason)) => denied(Some(rule), reason),
        None => denied(None, Reason::NoRule),
    }
}

/// Whether a name may be looked up at all: some rule allows something of it.
pub fn resolvable(policy: &Compiled, name: &HostName) -> bool {
    let (mut allowed, mut denied) = (policy.stance == Stance::Allow, false);
    policy.names.matching(name.as_str(), |found| {
        let Some(shape) = policy.shape(found) else { return };
        let everything = !shape.has_conditions() && shape.ports.covers(&PortRange::ALL);
        allowed |= policy.allows(found);
        denied |= !policy.allows(found) && everything;
    });
    allowed && !denied
}

fn default_scheme(port: u16) -> Scheme {
    match port {
        80 => Scheme::Http,
        443 => Scheme::Https,
        _ => Scheme::Raw,
    }
}

enum PathState {
    Unknown,
    Known(Option<String>),
}

struct Search<'p, 'r> {
    policy: &'p Compiled,
    request: &'r Request<'r>,
    path: PathState,
    denied: Option<&'p CompiledRule>,
    allowed: Option<(&'p CompiledRule, Scheme)>,
    near: Option<(&'p CompiledRule, Reason)>,
    /// Some rule wants requests to be read.
    inspect: bool,
    /// Some rule allows all requests.
    free: bool,
}

impl Search<'_, '_> {
    fn consider(&mut self, found: Reference) {
        let (Some(rule), Some(shape)) = (self.policy.rule(found), self.policy.shape(found)) else { return };
        let allows = self.policy.allows(found);
        let mismatch = if shape.protocol != self.request.protocol {
            Some(Reason::Protocol)
        } else if !shape.ports.contains(self.request.port) {
            Some(Reason::Port)
        } else {
            self.http_mismatch(allows, shape)
        };
        match (mismatch, allows) {
            (Some(_), false) => {}
            (Some(reason), true) => {
                let closer = self.near.is_none_or(|(_, before)| rank(reason) > rank(before));
                if closer {
                    self.near = Some((rule, reason));
                }
            }
            // Whether it is one of these requests is seen when they come.
            (None, false) if self.request.http.is_none() && shape.has_conditions() => self.inspect = true,
            (None, false) => self.denied = self.denied.or(Some(rule)),
            (None, true) => {
                self.inspect |= shape.inspect;
                self.free |= !shape.has_conditions();
                self.allowed = self.allowed.or(Some((rule, scheme_of(shape, self.request.port))));
            }
        }
    }

    fn http_mismatch(&mut self, allows: bool, shape: &Shape) -> Option<Reason> {
        let http = self.request.http?;
        // Methods are told apart by case, and some servers do not: what may be meant by a denial is denied.
        let same = |method: &String| method == http.method || (!allows && method.eq_ignore_ascii_case(http.method));
        if !shape.methods.is_empty() && !shape.methods.iter().any(same) {
            return Some(Reason::Method);
        }
        if shape.paths.is_empty() {
            return None;
        }
        if let PathState::Unknown = self.path {
            self.path = PathState::Known(plain_path(http.target));
        }
        let matches = match &self.path {
            PathState::Known(Some(path)) => shape.paths.iter().any(|pattern| pattern.matches(path)),
            // What cannot be told apart is taken for the worse.
            PathState::Known(None) | PathState::Unknown => !allows,
        };
        (!matches).then_some(Reason::Path)
    }
}

fn scheme_of(shape: &Shape, port: u16) -> Scheme {
    match shape.scheme {
        Some(scheme) => scheme,
        None if port != 80 && (shape.inspect || shape.has_conditions()) => Scheme::Https,
        None => default_scheme(port),
    }
}

/// How close a rule came.
fn rank(reason: Reason) -> u8 {
    match reason {
        Reason::Path => 4,
        Reason::Method => 3,
        Reason::Port => 2,
        Reason::Protocol => 1,
        Reason::Rule | Reason::NoRule | Reason::Closed(_) => 0,
    }
}
