//! The decision: one function for every entrance. Denials win over permissions; what nothing is about goes by the default.
//!
//! It is asked twice about HTTP: once about the connection, when nothing but its destination is known, and once about each request on it. A
//! connection that only some requests may use is allowed with `inspect`, which obliges whoever asked to ask again. What is to be read is never
//! raw: it is TLS or HTTP, or it is denied.

use std::net::IpAddr;

use crate::compile::{Compiled, CompiledRule, Shape};
use crate::document::{Protocol, Scheme, Stance};
use crate::table::Reference;
use crate::verdict::{Reason, Verdict};
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

/// Decides.
pub fn decide<'p>(policy: &'p Compiled, request: &Request<'_>) -> Verdict<'p> {
    let denied = |rule, reason| Verdict { allow: false, reason, inspect: false, scheme: Scheme::Raw, rule };
    if let Destination::Address(address) = request.to
        && let Some(what) = policy.closed(address)
    {
        return denied(None, Reason::Closed(what));
    }
    let mut search = Search {
        policy,
        request,
        path: PathState::Unknown,
        denied: None,
        allowed: None,
        near: None,
        reader: None,
        readable: None,
        free: false,
    };
    match request.to {
        Destination::Name(name) => policy.names.matching(name.as_str(), |found| search.consider(found)),
        Destination::Address(address) => policy.rules_for_address(address, |found| search.consider(found)),
    }
    if let Some(rule) = search.denied {
        return denied(Some(rule), Reason::Rule);
    }
    let public_tcp = policy.stance == Stance::Allow && request.protocol == Protocol::Tcp;
    if let Some((rule, scheme)) = search.allowed {
        let inspect = search.reader.is_some() || !search.free;
        let by = |(rule, scheme)| Verdict { allow: true, reason: Reason::Rule, inspect, scheme, rule: Some(rule) };
        match search.readable {
            _ if !inspect => return by((rule, scheme)),
            Some((_, scheme)) if request.http.is_some() => return by((rule, scheme)),
            Some(readable) => return by(readable),
            // What is spoken by default can be read.
            None if public_tcp => {}
            None => return denied(search.reader.or(Some(rule)), Reason::Unread),
        }
    }
    match search.near {
        _ if public_tcp => {
            let inspect = search.reader.is_some();
            let scheme = if inspect { read_scheme(request.port) } else { default_scheme(request.port) };
            Verdict { allow: true, reason: Reason::NoRule, inspect, scheme, rule: None }
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

/// What is spoken where requests have to be read and no rule says in what.
fn read_scheme(port: u16) -> Scheme {
    if port == 80 { Scheme::Http } else { Scheme::Https }
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
    /// The first rule that wants requests to be read.
    reader: Option<&'p CompiledRule>,
    /// The first that allows something here in which they can be.
    readable: Option<(&'p CompiledRule, Scheme)>,
    /// Some rule allows all requests.
    free: bool,
}

impl<'p> Search<'p, '_> {
    fn consider(&mut self, found: Reference) {
        let (Some(rule), Some(shape)) = (self.policy.rule(found), self.policy.shape(found)) else { return };
        let allows = self.policy.allows(found);
        let mismatch = if shape.protocol != self.request.protocol {
            Some(Reason::Protocol)
        } else if !shape.ports.contains(self.request.port) {
            Some(Reason::Port)
        } else {
            self.note_reading(allows, rule, shape);
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
            (None, false) if self.request.http.is_none() && shape.has_conditions() => {}
            (None, false) => self.denied = self.denied.or(Some(rule)),
            (None, true) => {
                self.free |= !shape.has_conditions();
                self.allowed = self.allowed.or(Some((rule, scheme_of(shape, self.request.port))));
            }
        }
    }

    /// The same for a connection and for each request on it, so that both questions are answered alike.
    fn note_reading(&mut self, allows: bool, rule: &'p CompiledRule, shape: &Shape) {
        if shape.inspect || (!allows && shape.has_conditions()) {
            self.reader = self.reader.or(Some(rule));
        }
        if allows && shape.scheme != Some(Scheme::Raw) {
            let scheme = shape.scheme.unwrap_or(read_scheme(self.request.port));
            self.readable = self.readable.or(Some((rule, scheme)));
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
        Reason::Rule | Reason::NoRule | Reason::Unread | Reason::Closed(_) => 0,
    }
}
