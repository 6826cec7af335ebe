//! `{port}-{sandbox}.{domain}`: the host names under which programs in sandboxes are reached.

use belljar_types::SandboxId;

/// A program's port in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHost {
    /// Which sandbox.
    pub sandbox: SandboxId,
    /// Which port in it.
    pub port: u16,
}

/// What a `Host` header names, if it is a port of a sandbox below `domain`.
pub fn port_host(host: &str, domain: &str) -> Option<PortHost> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let label = name.strip_suffix(&domain.to_ascii_lowercase())?.strip_suffix('.')?;
    let (port, sandbox) = label.split_once('-')?;
    // `+1` and `01` parse as numbers but are not how the name is written.
    if port.starts_with(['0', '+']) {
        return None;
    }
    Some(PortHost { sandbox: sandbox.parse().ok()?, port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_names_below_the_domain_are_ports() {
        let id = "sabcdefghijkmnpqrstu";
        let port = |host: &str| port_host(host, "boxes.example").map(|found| found.port);
        assert_eq!(port(&format!("8000-{id}.boxes.example")), Some(8000));
        assert_eq!(port(&format!("8000-{id}.Boxes.EXAMPLE:7070")), Some(8000));
        assert_eq!(port(&format!("8000-{id}.boxes.example.")), Some(8000));
        for host in [
            "boxes.example",
            "127.0.0.1:7070",
            "[::1]:7070",
            &format!("8000-{id}.other.example"),
            &format!("8000-{id}.evilboxes.example"),
            &format!("x.8000-{id}.boxes.example"),
            &format!("70000-{id}.boxes.example"),
            &format!("+80-{id}.boxes.example"),
            &format!("080-{id}.boxes.example"),
            "8000-short.boxes.example",
            &format!("-{id}.boxes.example"),
        ] {
            assert_eq!(port(host), None, "{host}");
        }
    }
}
