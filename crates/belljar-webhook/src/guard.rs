//! Which addresses messages are carried to. The check is made on the address that is connected to, so that no name can change its mind after it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use belljar_policy::{Cidr, reserved};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// An address that belongs to the inside.
#[derive(Debug, thiserror::Error)]
#[error("{address} is {what}; the operator can allow it with [webhooks] reachable")]
pub(crate) struct Inside {
    address: IpAddr,
    what: &'static str,
}

#[derive(Debug, thiserror::Error)]
#[error("the name has no address")]
struct NoAddress;

#[derive(Debug, Clone)]
pub(crate) struct Guard {
    reachable: Arc<[Cidr]>,
}

impl Guard {
    pub(crate) fn new(reachable: Vec<Cidr>) -> Self {
        Self { reachable: reachable.into() }
    }

    pub(crate) fn check(&self, address: IpAddr) -> Result<(), Inside> {
        match reserved(address) {
            Some(what) if !self.reachable.iter().any(|network| network.contains(address)) => Err(Inside { address, what }),
            _ => Ok(()),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found.iter().copied().filter(|address| guard.check(address.ip()).is_ok()).collect();
            match (allowed.is_empty(), found.first()) {
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
                (true, Some(first)) => Err(guard.check(first.ip()).err().map_or_else(|| NoAddress.into(), Into::into)),
                (true, None) => Err(NoAddress.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_outside_is_reached_unless_the_operator_says_so() {
        let guard = Guard::new(vec!["10.20.0.0/16".parse().unwrap()]);
        for inside in
            ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "0.0.0.0"]
        {
            assert!(guard.check(inside.parse().unwrap()).is_err(), "{inside}");
        }
        for outside in ["1.1.1.1", "2606:4700::1111", "10.20.3.4"] {
            assert!(guard.check(outside.parse().unwrap()).is_ok(), "{outside}");
        }
    }
}
