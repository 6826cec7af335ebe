//! A document in the form in which it is asked: names in one table, networks by prefix, what many rules share kept once.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::address::masked;
use crate::document::{HeaderRule, NetworkLimits, Policy, Protocol, Rule, Scheme, SecretRule, Stance};
use crate::port_set::PortSet;
use crate::table::{Reference, Table};
use crate::{NamePattern, Operator, PathPattern, PolicyError, PortRange, plain_address};

/// A rule, as far as it is not about whom.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) id: Option<Box<str>>,
    /// Its place in its list, for rules without an id.
    pub(crate) place: u32,
    pub(crate) allows: bool,
}

/// What rules share: most of a long list differ in their hosts only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) ports: PortSet,
    pub(crate) protocol: Protocol,
    pub(crate) scheme: Option<Scheme>,
    pub(crate) methods: Vec<String>,
    pub(crate) paths: Vec<PathPattern>,
    pub(crate) inspect: bool,
}

impl Shape {
    pub(crate) fn has_conditions(&self) -> bool {
        !self.methods.is_empty() || !self.paths.is_empty()
    }
}

/// A policy that is ready to be asked.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) stance: Stance,
    pub(crate) names: Table,
    networks: HashMap<(u8, IpAddr), Vec<Reference>>,
    prefixes: [BTreeSet<u8>; 2],
    /// Those that allow come before those that deny.
    rules: Vec<CompiledRule>,
    allowing: u32,
    shapes: Vec<Shape>,
    pub(crate) operator: Arc<Operator>,
    limits: NetworkLimits,
    secrets: Vec<SecretRule>,
    headers: Vec<HeaderRule>,
    exact_names: Vec<Box<str>>,
    inspected: Vec<String>,
}

impl Compiled {
    /// Compiles a document; the operator's lists are put in place of their names.
    pub fn new(policy: &Policy, operator: &Arc<Operator>) -> Result<Self, PolicyError> {
        let policy = operator.resolve(policy)?;
        let network = policy.network.unwrap_or_default();
        let mut known: HashMap<Shape, u32> = HashMap::new();
        let (mut rules, mut shapes) = (Vec::new(), Vec::new());
        let mut networks: HashMap<(u8, IpAddr), Vec<Reference>> = HashMap::new();
        let mut rows = Vec::new();
        for (allows, list) in [(true, &network.allow), (false, &network.deny)] {
            for (place, rule) in list.iter().enumerate() {
                let shape = shape_of(rule, allows);
                let shape = *known.entry(shape).or_insert_with_key(|shape| {
                    shapes.push(shape.clone());
                    number(shapes.len() - 1)
                });
                let reference = Reference { rule: number(rules.len()), shape };
                rules.push(CompiledRule { id: rule.id.as_deref().map(Into::into), place: number(place), allows });
                for host in &rule.hosts {
                    match host {
                        NamePattern::Exact(name) => rows.push((name.as_str(), false, reference)),
                        NamePattern::Below(name) => rows.push((name.as_str(), true, reference)),
                        NamePattern::Set(_) => {}
                    }
                }
                for cidr in &rule.cidrs {
                    networks.entry((cidr.prefix(), cidr.address())).or_default().push(reference);
                }
            }
        }
        let of_family = |v4: bool| networks.keys().filter(|(_, address)| address.is_ipv4() == v4).map(|(prefix, _)| *prefix).collect();
        let allowing = number(network.allow.len());
        let exact: BTreeSet<&str> = rows.iter().filter(|(_, below, found)| !below && found.rule < allowing).map(|row| row.0).collect();
        let exact_names = exact.into_iter().map(Into::into).collect();
        let prefixes = [of_family(true), of_family(false)];
        let names = Table::build(rows);
        let reading = network.allow.iter().chain(&network.deny).filter(|rule| rule.reads_requests()).flat_map(|rule| &rule.hosts);
        let secret = policy.secrets.iter().flatten().flat_map(|secret| &secret.hosts);
        let header = policy.headers.iter().flatten().flat_map(|header| &header.hosts);
        let inspected: BTreeSet<String> = reading.chain(secret).chain(header).filter_map(NamePattern::base).collect();
        let inspected = inspected.into_iter().collect();
        Ok(Self {
            stance: network.default,
            names,
            networks,
            prefixes,
            rules,
            allowing,
            shapes,
            operator: Arc::clone(operator),
            limits: network.limits.unwrap_or_default(),
            secrets: policy.secrets.unwrap_or_default(),
            headers: policy.headers.unwrap_or_default(),
            exact_names,
            inspected,
        })
    }

    /// How much may go through.
    pub fn limits(&self) -> &NetworkLimits {
        &self.limits
    }

    /// Whether what no rule is about may go out.
    pub fn allows_the_rest(&self) -> bool {
        self.stance == Stance::Allow
    }

    /// Which secrets go where.
    pub fn secrets(&self) -> &[SecretRule] {
        &self.secrets
    }

    /// Which headers are put into which requests.
    pub fn headers(&self) -> &[HeaderRule] {
        &self.headers
    }

    /// The names that rules allow by their full name, sorted.
    pub fn exact_names(&self) -> &[Box<str>] {
        &self.exact_names
    }

    /// The names for which TLS has to be read, because a rule has conditions or a secret goes there; of wildcards the name they are below.
    pub fn inspected_names(&self) -> &[String] {
        &self.inspected
    }

    /// Why no rule can open this address, if so. To be asked about the address that is dialled.
    pub fn closed(&self, address: IpAddr) -> Option<&'static str> {
        self.operator.closed(address)
    }

    /// Whether the operator opened this address by name, whatever it is.
    pub fn reaches(&self, address: IpAddr) -> bool {
        self.operator.reachable.iter().any(|network| network.contains(address))
    }

    /// Whether a rule allows or denies; told without reading it.
    pub(crate) fn allows(&self, found: Reference) -> bool {
        found.rule < self.allowing
    }

    pub(crate) fn rule(&self, found: Reference) -> Option<&CompiledRule> {
        self.rules.get(found.rule as usize)
    }

    pub(crate) fn shape(&self, found: Reference) -> Option<&Shape> {
        self.shapes.get(found.shape as usize)
    }

    pub(crate) fn rules_for_address(&self, address: IpAddr, mut each: impl FnMut(Reference)) {
        let address = plain_address(address);
        let [v4, v6] = &self.prefixes;
        for prefix in if address.is_ipv4() { v4 } else { v6 } {
            self.networks.get(&(*prefix, masked(address, *prefix))).into_iter().flatten().for_each(|rule| each(*rule));
        }
    }
}

fn shape_of(rule: &Rule, allows: bool) -> Shape {
    let ports = match (allows, rule.ports.is_empty()) {
        (true, _) if rule.protocol == Protocol::Icmp => vec![PortRange { first: 0, last: u16::MAX }],
        (true, _) => rule.allowed_ports(),
        (false, true) => vec![PortRange { first: 0, last: u16::MAX }],
        (false, false) => rule.ports.clone(),
    };
    let Rule { protocol, scheme, inspect, .. } = *rule;
    Shape { ports: PortSet::new(&ports), protocol, scheme, methods: rule.methods.clone(), paths: rule.paths.clone(), inspect }
}

/// The document is bounded far below this.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl fmt::Display for CompiledRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => f.write_str(id),
            None => write!(f, "network.{}[{}]", if self.allows { "allow" } else { "deny" }, self.place),
        }
    }
}
