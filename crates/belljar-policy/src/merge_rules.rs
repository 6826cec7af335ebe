//! Whether the network of one document stays within that of the one above it. Only what is certain counts: a rule that is covered by two
//! rules together, and by neither alone, is refused.

use crate::document::{HeaderRule, Ingress, Network, Rule, SecretRule, Stance};
use crate::merge::{Context, narrow_network_limits};
use crate::parse::rule_name;
use crate::{Cidr, NamePattern, PathPattern, PolicyError, PortRange, Protocol, Scheme};

pub(crate) fn narrow_network(context: &Context<'_>, above: &Network, below: &Network) -> Result<Network, PolicyError> {
    if above.default == Stance::Deny && below.default == Stance::Allow {
        return Err(context.widening("network.default", "deny there, allow here"));
    }
    let mut allow = below.allow.clone();
    for (index, rule) in allow.iter_mut().enumerate() {
        let widening = |rule: &Rule, problem| context.widening(rule_name(rule, "allow", index), problem);
        // What has to be read above has to be read here.
        if above.allow.iter().any(|wide| wide.inspect && meet(wide, rule)) {
            if rule.scheme == Some(Scheme::Raw) {
                return Err(widening(rule, "requests to its hosts are read there, and raw connections cannot be".to_owned()));
            }
            rule.inspect = true;
        }
        check_covered(above, rule).map_err(|problem| widening(rule, problem))?;
    }
    let mut deny = above.deny.clone();
    let named: Vec<Rule> = below.deny.iter().filter(|rule| !above.deny.contains(rule)).cloned().collect();
    deny.extend(named);
    forget_ids_used_twice(&allow, &mut deny);
    let limits = match (&above.limits, &below.limits) {
        (Some(above), Some(below)) => Some(narrow_network_limits(context, above, below)?),
        (above, below) => below.or(*above),
    };
    Ok(Network { default: below.default, allow, deny, limits })
}

/// Whether there is a name and a port that both may be about.
fn meet(wide: &Rule, rule: &Rule) -> bool {
    let ports = rule.allowed_ports();
    let on_port = wide.allowed_ports().iter().any(|range| ports.iter().any(|mine| range.first <= mine.last && mine.first <= range.last));
    on_port && wide.hosts.iter().any(|host| rule.hosts.iter().any(|mine| host.covers(mine) || mine.covers(host)))
}

/// An id that a lower document used again is the lower one's; the rule itself stays.
fn forget_ids_used_twice(allow: &[Rule], deny: &mut [Rule]) {
    let mut known: std::collections::BTreeSet<String> = allow.iter().filter_map(|rule| rule.id.clone()).collect();
    for rule in deny.iter_mut() {
        if rule.id.as_ref().is_some_and(|id| !known.insert(id.clone())) {
            rule.id = None;
        }
    }
}

fn check_covered(above: &Network, rule: &Rule) -> Result<(), String> {
    for port in rule.allowed_ports() {
        for host in &rule.hosts {
            let covered = |wide: &Rule| wide.hosts.iter().any(|known| known.covers(host));
            check_one(above, rule, port, &host.to_string(), covered)?;
        }
        for cidr in &rule.cidrs {
            let covered = |wide: &Rule| wide.cidrs.iter().any(|known: &Cidr| known.covers(cidr));
            check_one(above, rule, port, &cidr.to_string(), covered)?;
        }
    }
    Ok(())
}

fn check_one(above: &Network, rule: &Rule, port: PortRange, to: &str, about: impl Fn(&Rule) -> bool) -> Result<(), String> {
    if above.default == Stance::Allow && rule.protocol == Protocol::Tcp {
        return Ok(());
    }
    let about: Vec<&Rule> = above.allow.iter().filter(|wide| wide.protocol == rule.protocol && about(wide)).collect();
    if about.is_empty() {
        return Err(format!("no rule there allows {to}"));
    }
    let on_port: Vec<&&Rule> = about.iter().filter(|wide| wide.allowed_ports().iter().any(|range| range.covers(&port))).collect();
    if on_port.is_empty() {
        return Err(format!("no rule there allows port {port} of {to}"));
    }
    let requests = |wide: &&&Rule| methods_cover(&wide.methods, &rule.methods) && paths_cover(&wide.paths, &rule.paths);
    let spoken = |wide: &&&Rule| places(port).all(|port| scheme_covers(wide, rule, port));
    match on_port.iter().copied().find(|wide| requests(wide) && spoken(wide)) {
        Some(_) => Ok(()),
        None => Err(format!("the rules there for port {port} of {to} allow other methods, paths or schemes")),
    }
}

/// The ports of a range at which the scheme may be another one: 80, 443, and one that stands for the rest.
fn places(range: PortRange) -> impl Iterator<Item = u16> {
    let known = [80, 443].into_iter().filter(move |port| range.contains(*port));
    let rest = (range.first..=range.last).find(|port| ![80, 443].contains(port));
    known.chain(rest)
}

/// Where the port alone makes it raw, anything may be spoken. A rule that says raw itself covers its like only: where a denial is about requests, it
/// is refused, and a rule without a scheme is read.
fn scheme_covers(wide: &Rule, rule: &Rule, port: u16) -> bool {
    match (wide.scheme, wide.scheme_at(port)) {
        (None, Scheme::Raw) => true,
        (Some(Scheme::Raw), _) => rule.scheme == Some(Scheme::Raw),
        (_, spoken) => spoken == rule.scheme_at(port),
    }
}

fn methods_cover(above: &[String], below: &[String]) -> bool {
    above.is_empty() || (!below.is_empty() && below.iter().all(|method| above.contains(method)))
}

fn paths_cover(above: &[PathPattern], below: &[PathPattern]) -> bool {
    above.is_empty() || (!below.is_empty() && below.iter().all(|path| above.iter().any(|wide| wide.covers(path))))
}

fn ports_cover(above: &[PortRange], below: &[PortRange]) -> bool {
    below.iter().all(|range| above.iter().any(|wide| wide.covers(range)))
}

pub(crate) fn narrow_ingress(context: &Context<'_>, above: &Ingress, below: &Ingress) -> Result<Ingress, PolicyError> {
    match below.ports.iter().find(|range| !above.ports.iter().any(|wide| wide.covers(range))) {
        Some(range) => Err(context.widening("ingress.ports", format!("port {range} is not open there"))),
        None => Ok(below.clone()),
    }
}

/// Headers of the document above stay; one that is put into a request there cannot be another here.
pub(crate) fn narrow_headers(context: &Context<'_>, above: &[HeaderRule], below: &[HeaderRule]) -> Result<Vec<HeaderRule>, PolicyError> {
    let same = |one: &HeaderRule, other: &HeaderRule| {
        one.header.eq_ignore_ascii_case(&other.header) && one.hosts.iter().any(|host| other.hosts.contains(host))
    };
    let added = below.iter().filter(|rule| !above.contains(rule));
    match added.clone().position(|rule| above.iter().any(|known| same(known, rule))) {
        Some(index) => Err(context.widening(format!("headers[{index}]"), "the header is another there")),
        None => Ok(above.iter().chain(added).cloned().collect()),
    }
}

/// A secret may go where the document above sends it, or to fewer places; never to others.
pub(crate) fn narrow_secrets(context: &Context<'_>, above: &[SecretRule], below: &[SecretRule]) -> Result<Vec<SecretRule>, PolicyError> {
    let or_443 = |ports: &[PortRange]| if ports.is_empty() { vec![PortRange { first: 443, last: 443 }] } else { ports.to_vec() };
    let hosts_cover = |wide: &[NamePattern], narrow: &[NamePattern]| narrow.iter().all(|host| wide.iter().any(|known| known.covers(host)));
    for (index, secret) in below.iter().enumerate() {
        let same = |wide: &&SecretRule| {
            wide.secret == secret.secret && wide.header.eq_ignore_ascii_case(&secret.header) && wide.value == secret.value
        };
        let covers = |wide: &SecretRule| {
            hosts_cover(&wide.hosts, &secret.hosts)
                && ports_cover(&or_443(&wide.ports), &or_443(&secret.ports))
                && methods_cover(&wide.methods, &secret.methods)
                && paths_cover(&wide.paths, &secret.paths)
        };
        if !above.iter().filter(same).any(covers) {
            return Err(
                context.widening(format!("secrets[{index}]"), format!("{} is not sent to all of these places there", secret.secret))
            );
        }
    }
    Ok(below.to_vec())
}
