//! Who holds each rule. A rule that nobody can hold stops the start: nothing is downgraded in silence.

use belljar_types::IsolationClass;

use crate::PolicyError;
use crate::document::{Policy, Protocol, Rule};
use crate::parse::rule_name;

/// Who holds a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The gateway's firewall, the name service and the proxy, all outside the sandbox.
    Egress,
    /// The proxy, which reads requests inside TLS as well.
    Inspection,
    /// The port routes of the server.
    Ports,
    /// The engine: control groups, quotas.
    Engine,
    /// The owner of the sandbox in the server: timers.
    Server,
    /// The agent and the engine together.
    Agent,
    /// The server's meters.
    Meters,
    /// Whoever answers with a command's result.
    Answers,
    /// Whoever mounts volumes.
    Volumes,
}

impl Holder {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Egress => "outside the sandbox: firewall, name service and proxy at its cable",
            Self::Inspection => "outside the sandbox: the proxy reads every request, in TLS too",
            Self::Ports => "by the server's port routes",
            Self::Engine => "by the engine: control groups and disk quota",
            Self::Server => "by the server's timers",
            Self::Agent => "by the engine and the agent: no_new_privs, no sudo",
            Self::Meters => "by the server's meters: it is paused when one is used up",
            Self::Answers => "by the server, in every result of a command; streams are handed on as they come",
            Self::Volumes => "by the server: no other volume is mounted",
        }
    }
}

/// One rule and who holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforced {
    /// The rule.
    pub rule: String,
    /// Who.
    pub by: Holder,
}

/// What this server can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enforcers {
    /// It has a way out with rules.
    pub egress: bool,
    /// Its proxy reads requests inside TLS.
    pub inspection: bool,
    /// It has secrets to send.
    pub secrets: bool,
}

/// For every rule, who holds it on this class; or the first that nobody does.
pub fn enforcement(policy: &Policy, class: IsolationClass, server: &Enforcers) -> Result<Vec<Enforced>, PolicyError> {
    let mut held = Vec::new();
    let refuse = |rule: &str, problem: &str| PolicyError::Unenforceable {
        rule: rule.to_owned(),
        class: class.to_string(),
        problem: problem.to_owned(),
    };
    let mut hold = |rule: &str, by| held.push(Enforced { rule: rule.to_owned(), by });
    if let Some(network) = &policy.network {
        if policy.has_network() && !server.egress {
            return Err(refuse("network", "it has no egress; only policies without a network can be used"));
        }
        if policy.has_network() && class == IsolationClass::Wasm {
            return Err(refuse("network", "it has no network at all"));
        }
        hold("network.default", Holder::Egress);
        for (list, rules) in [("allow", &network.allow), ("deny", &network.deny)] {
            for (index, rule) in rules.iter().enumerate() {
                let name = rule_name(rule, list, index);
                hold(&name, rule_holder(rule, server).map_err(|problem| refuse(&name, problem))?);
            }
        }
        if network.limits.is_some() {
            hold("network.limits", Holder::Egress);
        }
    }
    if policy.ingress.is_some() {
        hold("ingress", Holder::Ports);
    }
    if policy.limits.is_some() {
        hold("limits", Holder::Engine);
    }
    if policy.lifetime.is_some() {
        hold("lifetime", Holder::Server);
    }
    if policy.users.is_some() {
        hold("users", Holder::Agent);
    }
    for (index, _) in policy.secrets.iter().flatten().enumerate() {
        let name = format!("secrets[{index}]");
        if !server.secrets {
            return Err(refuse(&name, "it has no secret broker"));
        }
        hold(&name, Holder::Inspection);
    }
    for (index, _) in policy.headers.iter().flatten().enumerate() {
        let name = format!("headers[{index}]");
        if !server.inspection {
            return Err(refuse(&name, "requests inside TLS are not read here"));
        }
        hold(&name, Holder::Inspection);
    }
    if policy.budget.is_some() {
        hold("budget", Holder::Meters);
    }
    if policy.output.is_some() {
        hold("output", Holder::Answers);
    }
    if policy.mounts.is_some() {
        hold("mounts", Holder::Volumes);
    }
    Ok(held)
}

fn rule_holder(rule: &Rule, server: &Enforcers) -> Result<Holder, &'static str> {
    if rule.protocol != Protocol::Tcp {
        return Err("only TCP goes through the proxy; UDP and ICMP stay closed");
    }
    if rule.cidrs.iter().any(|cidr| cidr.address().is_ipv6()) {
        return Err("sandboxes have no IPv6; it stays closed");
    }
    if rule.reads_requests() {
        return if server.inspection { Ok(Holder::Inspection) } else { Err("requests inside TLS are not read here") };
    }
    Ok(Holder::Egress)
}
