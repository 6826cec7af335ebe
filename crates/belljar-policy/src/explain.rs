//! A document in sentences, for people who did not write it.

use crate::document::{Policy, Protocol, Rule, Stance};
use crate::parse::rule_name;

/// One line a rule.
pub fn explain(policy: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    match &policy.network {
        None => lines.push("network: not ruled here; without a policy above, nothing goes out".to_owned()),
        Some(network) => {
            lines.push(match network.default {
                Stance::Deny => "network: what no rule allows is refused".to_owned(),
                Stance::Allow => "network: any public address may be reached over TCP".to_owned(),
            });
            for (list, rules) in [("allow", &network.allow), ("deny", &network.deny)] {
                lines.extend(
                    rules
                        .iter()
                        .enumerate()
                        .map(|(index, rule)| format!("  {list} {}: {}", rule_name(rule, list, index), sentence(rule, list == "allow"))),
                );
            }
            if let Some(limits) = &network.limits {
                let parts = [
                    limits.connections.map(|most| format!("{most} connections at one time")),
                    limits.bytes_per_second.map(|most| format!("{most} a second each way")),
                    limits.sent.map(|most| format!("{most} sent in all")),
                    limits.received.map(|most| format!("{most} received in all")),
                    limits.names_per_minute.map(|most| format!("{most} names below wildcards a minute")),
                ];
                lines.push(format!("  at most {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
            }
        }
    }
    if let Some(ingress) = &policy.ingress {
        lines.push(if ingress.ports.is_empty() {
            "ingress: no port can be reached from outside".to_owned()
        } else {
            format!("ingress: ports {}", list(&ingress.ports))
        });
    }
    if let Some(limits) = &policy.limits {
        let parts = [
            limits.cpu_millis.map(|most| format!("{most} thousandths of a core")),
            limits.memory.map(|most| format!("{most} of memory")),
            limits.disk.map(|most| format!("{most} of disk")),
            limits.pids.map(|most| format!("{most} processes")),
        ];
        lines.push(format!("limits: at most {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    }
    if let Some(lifetime) = &policy.lifetime {
        let parts = [
            lifetime.lease.map(|most| format!("a lease of {most}")),
            lifetime.idle.map(|most| format!("{most} without use")),
            lifetime.wall_time.map(|most| format!("{most} in all")),
        ];
        lines.push(format!("lifetime: at most {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
    }
    if let Some(root) = policy.users.and_then(|users| users.root) {
        lines.push(format!("users: {}", if root { "processes may become root inside" } else { "nothing inside may become root" }));
    }
    for secret in policy.secrets.iter().flatten() {
        lines.push(format!(
            "secret {}: sent to {} in the header {}, outside the sandbox",
            secret.secret,
            list(&secret.hosts),
            secret.header
        ));
    }
    for header in policy.headers.iter().flatten() {
        lines.push(format!("header {}: put into requests to {}, outside the sandbox", header.header, list(&header.hosts)));
    }
    lines
}

fn sentence(rule: &Rule, allows: bool) -> String {
    let to: Vec<String> = rule.hosts.iter().map(ToString::to_string).chain(rule.cidrs.iter().map(ToString::to_string)).collect();
    let ports = if allows {
        list(&rule.allowed_ports())
    } else if rule.ports.is_empty() {
        "all ports".to_owned()
    } else {
        list(&rule.ports)
    };
    let protocol = match rule.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Icmp => "ICMP",
    };
    let mut text = format!("{} on {protocol} {ports}", to.join(", "));
    if !rule.methods.is_empty() {
        text.push_str(&format!(", methods {}", rule.methods.join(" ")));
    }
    if !rule.paths.is_empty() {
        text.push_str(&format!(", paths {}", list(&rule.paths)));
    }
    if rule.reads_requests() {
        text.push_str("; requests are read, in TLS too");
    }
    text
}

fn list(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
