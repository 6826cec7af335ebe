//! Daytona's settings for what goes out, as a policy: everything, nothing, or lists of what alone may be reached.

use belljar_core::Outgoing;
use belljar_core::policy::{Cidr, NamePattern, Network as Rules, PortRange, Rule, Stance};
use belljar_types::Invalid;

use crate::errors::ApiError;

/// `block_all` beats the lists; with any list, nothing else may go out.
pub(crate) fn outgoing(block_all: bool, networks: Option<&str>, domains: Option<&str>) -> Result<Outgoing, ApiError> {
    let (networks, domains) = (entries(networks), entries(domains));
    if block_all {
        return Ok(Outgoing::by(Outgoing::policy_of(Rules::default())));
    }
    if networks.is_empty() && domains.is_empty() {
        return Ok(Outgoing::Everything);
    }
    let wrong = |field: &str, expected: &str, entry: &str| ApiError::from(Invalid::new(field, expected, entry));
    let cidr = |entry: &&str| {
        entry.parse::<Cidr>().map_err(|_| wrong("networkAllowList", "addresses and networks (CIDR), with commas between them", entry))
    };
    let host = |entry: &&str| match NamePattern::try_from((*entry).to_owned()) {
        Ok(NamePattern::Set(_)) | Err(_) => Err(wrong("domainAllowList", "domain names, with commas between them", entry)),
        Ok(host) => Ok(host),
    };
    let rule = Rule {
        id: Some("allowList".to_owned()),
        ports: vec![PortRange::ALL],
        cidrs: networks.iter().map(cidr).collect::<Result<_, _>>()?,
        hosts: domains.iter().map(host).collect::<Result<_, _>>()?,
        ..Rule::default()
    };
    Ok(Outgoing::by(Outgoing::policy_of(Rules { default: Stance::Deny, allow: vec![rule], ..Rules::default() })))
}

fn entries(list: Option<&str>) -> Vec<&str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_nothing_or_what_is_listed() {
        assert_eq!(outgoing(false, None, Some(" , ")).unwrap().plain(), Some(true));
        assert_eq!(outgoing(true, Some("1.1.1.1/32"), None).unwrap().plain(), Some(false));
        let Outgoing::Ruled(policy) = outgoing(false, Some("1.1.1.1/32, 10.0.0.0/8"), Some("example.com,*.example.org")).unwrap() else {
            panic!("everything may go out")
        };
        let rules = policy.network.unwrap();
        assert_eq!((rules.default, rules.allow[0].cidrs.len(), rules.allow[0].hosts.len()), (Stance::Deny, 2, 2));
    }

    #[test]
    fn what_is_no_network_and_no_name_is_refused() {
        for (networks, domains) in [(Some("example.com"), None), (None, Some("exa mple.com")), (None, Some("@registries"))] {
            assert!(outgoing(false, networks, domains).is_err(), "{networks:?} {domains:?}");
        }
    }
}
