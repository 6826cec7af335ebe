//! Credentials, added to requests on this side. The sandbox never has them: what it sends in their place is thrown away.
//!
//! Only inside TLS to a host whose certificate was verified, only to exact hosts, and only in the header that the policy names.

use std::ops::Range;

use belljar_policy::{Compiled, HeaderRule, NamePattern, PortRange, SecretRule, plain_path};
use belljar_types::{ProjectId, Secret};
use memchr::memmem;

use crate::EventKind;
use crate::dial::To;
use crate::http::Head;
use crate::way::Way;

/// Who keeps secrets.
pub trait SecretKeeper: Send + Sync {
    /// A secret of a project by its name.
    fn reveal(&self, project: &ProjectId, name: &str) -> Option<Secret<String>>;
}

/// A secret that went out with a request: whatever comes back must not show it.
pub(crate) type Used = Vec<Secret<String>>;

/// Puts the headers into a request that the policy wants there, in place of the program's own.
pub(crate) fn set_headers(way: &Way, head: &mut Head) {
    let policy = way.session.policy();
    for rule in policy.headers().iter().filter(|rule| is_at(rule, &way.to, way.port)) {
        let header = rule.header.to_ascii_lowercase();
        head.headers.retain(|(name, _)| *name != header);
        head.headers.push((header, rule.value.clone().into_bytes()));
    }
}

/// Puts the secrets of a request into it; says why the request cannot be sent if one is missing or two would fight.
pub(crate) fn add(way: &Way, head: &mut Head) -> Result<Used, String> {
    let policy = way.session.policy();
    let rules: Vec<&SecretRule> = policy.secrets().iter().filter(|rule| applies(rule, way, head)).collect();
    let mut used = Used::new();
    for (index, rule) in rules.iter().enumerate() {
        let header = rule.header.to_ascii_lowercase();
        if rules.iter().skip(index + 1).any(|other| other.header.eq_ignore_ascii_case(&header)) {
            return Err(format!("denied: two secrets are to go into the header {header} of this request"));
        }
        let keeper = way.outside.secrets.as_ref();
        let secret = keeper.and_then(|keeper| keeper.reveal(&way.session.project, &rule.secret));
        let secret = secret.ok_or_else(|| format!("denied: the project has no secret {}", rule.secret))?;
        head.headers.retain(|(name, _)| *name != header);
        head.headers.push((header, rule.value.replacen("{}", secret.reveal(), 1).into_bytes()));
        way.tell(
            EventKind::SecretUsed,
            &format!("secrets.{}", rule.secret),
            &format!("{} {}", head.method, plain_path(&head.target).unwrap_or_default()),
        );
        used.push(secret);
    }
    Ok(used)
}

/// Whether secrets or headers go to this host at all: then its requests have to be read.
pub(crate) fn concern(policy: &Compiled, to: &To, port: u16) -> bool {
    policy.secrets().iter().any(|rule| is_for(rule, to, port)) || policy.headers().iter().any(|rule| is_at(rule, to, port))
}

fn is_at(rule: &HeaderRule, to: &To, port: u16) -> bool {
    let at_port = if rule.ports.is_empty() { port == 80 || port == 443 } else { rule.ports.iter().any(|range| range.contains(port)) };
    at_port && is_one_of(&rule.hosts, to)
}

fn is_one_of(hosts: &[NamePattern], to: &To) -> bool {
    let To::Name(name) = to else { return false };
    hosts.iter().any(|host| matches!(host, NamePattern::Exact(known) if known == name))
}

fn is_for(rule: &SecretRule, to: &To, port: u16) -> bool {
    let at_port = if rule.ports.is_empty() { port == 443 } else { rule.ports.iter().any(|range: &PortRange| range.contains(port)) };
    at_port && is_one_of(&rule.hosts, to)
}

fn applies(rule: &SecretRule, way: &Way, head: &Head) -> bool {
    let method = rule.methods.is_empty() || rule.methods.contains(&head.method);
    let path =
        rule.paths.is_empty() || plain_path(&head.target).is_some_and(|path| rule.paths.iter().any(|pattern| pattern.matches(&path)));
    is_for(rule, &way.to, way.port) && method && path
}

/// What is shown in a secret's place.
const MASK: &[u8] = b"***";

/// The header's value without any secret in it. What was put in is not looked at again: a secret may be made of stars itself.
pub(crate) fn masked(value: &[u8], used: &Used) -> Vec<u8> {
    let secrets = used.iter().map(|secret| secret.reveal().as_bytes()).filter(|secret| !secret.is_empty());
    let mut found: Vec<Range<usize>> =
        secrets.flat_map(|secret| memmem::find_iter(value, secret).map(|at| at..at + secret.len())).collect();
    found.sort_by_key(|range| range.start);
    let (mut shown, mut done) = (Vec::with_capacity(value.len()), 0);
    for range in found {
        if range.start >= done {
            shown.extend_from_slice(value.get(done..range.start).unwrap_or_default());
            shown.extend_from_slice(MASK);
        }
        done = done.max(range.end);
    }
    shown.extend_from_slice(value.get(done..).unwrap_or_default());
    shown
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_comes_back_does_not_show_what_went_out() {
        let used = vec![Secret::new("s3cret".to_owned()), Secret::new(String::new())];
        assert_eq!(masked(b"Bearer s3cret, s3cret", &used), b"Bearer ***, ***");
        assert_eq!(masked(b"nothing", &used), b"nothing");
    }

    #[test]
    fn a_secret_of_the_signs_that_hide_it_is_hidden_once() {
        for (secrets, value, shown) in [
            (&["*"][..], "*", "***"),
            (&["**"], "a**b*", "a***b*"),
            (&["***"], "***x***", "***x***"),
            (&["*", "*", "a"], "a*b", "******b"),
            (&["key", "key-long"], "is key-long", "is ***"),
            (&["abc", "bcd"], "xabcdx", "x***x"),
        ] {
            let used: Used = secrets.iter().map(|secret| Secret::new((*secret).to_owned())).collect();
            assert_eq!(String::from_utf8(masked(value.as_bytes(), &used)).unwrap(), shown, "{secrets:?} in {value}");
        }
    }

    proptest! {
        /// Whatever the secrets are: the work ends, what comes of it is bounded, and no secret without stars is left in it.
        #[test]
        fn masking_ends_and_leaves_no_secret(secrets in vec("[*ab]{0,4}", 0..4), value in "[*abc]{0,40}") {
            let used: Used = secrets.iter().cloned().map(Secret::new).collect();
            let shown = String::from_utf8(masked(value.as_bytes(), &used)).unwrap();
            prop_assert!(shown.len() <= value.len() * MASK.len());
            for secret in secrets.iter().filter(|secret| !secret.is_empty() && !secret.contains('*')) {
                prop_assert!(!shown.contains(secret.as_str()), "{secret} in {shown}");
            }
        }
    }
}
