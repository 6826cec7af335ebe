//! What the operator of a server decides for all policies: named lists of hosts, and which closed addresses may be reached after all.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::document::{Network, Policy, Rule};
use crate::{Cidr, NamePattern, PolicyError, plain_address, reserved};

/// The operator's part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operator {
    /// Hosts by the name of their list, for `@name` in documents.
    pub sets: BTreeMap<String, Vec<NamePattern>>,
    /// Addresses that may be reached although they are private or reserved.
    pub reachable: Vec<Cidr>,
    /// Addresses that may not be reached although they are public.
    pub unreachable: Vec<Cidr>,
}

impl Operator {
    /// Why no rule can open this address, if so.
    pub fn closed(&self, address: IpAddr) -> Option<&'static str> {
        let address = plain_address(address);
        if self.unreachable.iter().any(|network| network.contains(address)) {
            return Some("closed by the operator");
        }
        reserved(address).filter(|_| !self.reachable.iter().any(|network| network.contains(address)))
    }

    /// The document with the operator's lists in place of their names.
    pub fn resolve(&self, policy: &Policy) -> Result<Policy, PolicyError> {
        let mut resolved = policy.clone();
        if let Some(Network { allow, deny, .. }) = &mut resolved.network {
            for (list, rules) in [("allow", allow), ("deny", deny)] {
                for (index, rule) in rules.iter_mut().enumerate() {
                    let name = crate::parse::rule_name(rule, list, index);
                    self.resolve_rule(&name, rule)?;
                }
            }
        }
        Ok(resolved)
    }

    fn resolve_rule(&self, name: &str, rule: &mut Rule) -> Result<(), PolicyError> {
        let mut hosts = Vec::with_capacity(rule.hosts.len());
        for host in rule.hosts.drain(..) {
            let NamePattern::Set(set) = &host else {
                hosts.push(host);
                continue;
            };
            let members = self.sets.get(set).filter(|members| !members.is_empty());
            let members = members.ok_or_else(|| {
                PolicyError::rule(
                    name,
                    format!("the list @{set} is empty on this server; its operator fills it with network.sets.{set} in the configuration"),
                )
            })?;
            hosts.extend(members.iter().cloned());
        }
        rule.hosts = hosts;
        Ok(())
    }
}
