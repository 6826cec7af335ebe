//! E2B's rules for what goes out, as a policy.
//!
//! There, what is allowed beats what is denied; in a policy denials win. So what is allowed is cut out of what is denied, and names are taken only where
//! everything else is denied, as E2B does.

use belljar_core::Outgoing;
use belljar_core::policy::{Cidr, HeaderRule, NamePattern, Network as Rules, Policy, PortRange, Rule, SecretRule, Stance};
use serde_json::{Map, Value, json};

use crate::dto::{NetworkDto, NetworkRule};
use crate::errors::ApiError;

const EVERYTHING: [&str; 2] = ["0.0.0.0/0", "::/0"];
const SECRET: &str = "${e2b.secrets.";
const IDENTITY: &str = "${e2b.identity.";
/// E2B's own words: its clients' users look for them.
const NAMES_NEED_DENIAL: &str =
    "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.";

/// What a request says about it. `internet` is said beside the rules when a sandbox is made, and among them when they are changed.
pub(crate) fn outgoing(internet: Option<bool>, network: &NetworkDto) -> Result<Outgoing, ApiError> {
    if network.egress_proxy.as_ref().is_some_and(|proxy| !proxy.is_null()) {
        return Err(ApiError::unsupported("a proxy of the client's own for outgoing traffic (network.egressProxy)"));
    }
    let is_everything = |entry: &&String| EVERYTHING.contains(&entry.as_str());
    let (allowed, denied) = (network.allow_out.as_deref().unwrap_or_default(), network.deny_out.as_deref().unwrap_or_default());
    let closed = internet.or(network.allow_internet_access) == Some(false) || denied.iter().any(|entry| is_everything(&entry));
    let open = !closed || allowed.iter().any(|entry| is_everything(&entry));
    let (mut hosts, mut cidrs) = (Vec::new(), Vec::new());
    for entry in allowed.iter().filter(|entry| !is_everything(entry)) {
        match (entry.parse::<Cidr>(), NamePattern::try_from(entry.clone())) {
            (Ok(cidr), _) => cidrs.push(cidr),
            (Err(_), Ok(NamePattern::Set(_)) | Err(_)) => return Err(wrong("allowOut", entry)),
            (Err(_), Ok(_)) if !closed => return Err(ApiError::bad_request(NAMES_NEED_DENIAL)),
            (Err(_), Ok(host)) => hosts.push(host),
        }
    }
    let mut closed_to = Vec::new();
    for entry in denied.iter().filter(|entry| !is_everything(entry)) {
        let cidr: Cidr = entry.parse().map_err(|_| wrong("denyOut", entry))?;
        // Nothing goes out over version 6 in any case.
        if cidr.address().is_ipv4() {
            closed_to.extend(without(cidr, &cidrs));
        }
    }
    let any_port = |id: &str| Rule { id: Some(id.to_owned()), ports: vec![PortRange::ALL], ..Rule::default() };
    let rules = Rules {
        default: if open { Stance::Allow } else { Stance::Deny },
        allow: if hosts.is_empty() && cidrs.is_empty() { Vec::new() } else { vec![Rule { hosts, cidrs, ..any_port("allowOut") }] },
        deny: if closed_to.is_empty() || !open { Vec::new() } else { vec![Rule { cidrs: closed_to, ..any_port("denyOut") }] },
        limits: None,
    };
    let mut policy = Outgoing::policy_of(rules);
    for (domain, rules) in network.rules.iter().flatten() {
        transform(domain, rules, &mut policy)?;
    }
    Ok(Outgoing::by(policy))
}

fn wrong(field: &str, entry: &str) -> ApiError {
    let expected = if field == "allowOut" { "an address, a network or a domain name" } else { "an address or a network" };
    belljar_types::Invalid::new(format!("network.{field}"), expected, entry).into()
}

/// A network without those that are allowed.
fn without(denied: Cidr, allowed: &[Cidr]) -> Vec<Cidr> {
    if allowed.iter().any(|known| known.covers(&denied)) {
        return Vec::new();
    }
    match halves(denied) {
        Some(halves) if allowed.iter().any(|known| denied.covers(known)) => {
            halves.into_iter().flat_map(|half| without(half, allowed)).collect()
        }
        _ => vec![denied],
    }
}

fn halves(whole: Cidr) -> Option<[Cidr; 2]> {
    let std::net::IpAddr::V4(first) = whole.address() else { return None };
    let prefix = whole.prefix().checked_add(1).filter(|prefix| *prefix <= 32)?;
    let second = std::net::Ipv4Addr::from_bits(first.to_bits() | 1 << (32 - prefix));
    let half = |address| format!("{address}/{prefix}").parse().ok();
    Some([half(first)?, half(second)?])
}

/// Headers that are put into requests to one host.
fn transform(domain: &str, rules: &[NetworkRule], policy: &mut Policy) -> Result<(), ApiError> {
    let field = || format!("network.rules.{}", belljar_types::escape_untrusted(domain.as_bytes()));
    let host = NamePattern::try_from(domain.to_owned()).map_err(|problem| ApiError::bad_request(format!("{}: {problem}", field())))?;
    if !matches!(host, NamePattern::Exact(_)) {
        return Err(ApiError::unsupported("changing requests to all names below a wildcard (network.rules)"));
    }
    if rules.iter().filter(|rule| rule.transform.is_some()).count() > 1 {
        return Err(ApiError::bad_request(format!("{}: expected at most one transform", field())));
    }
    for (header, value) in rules.iter().filter_map(|rule| rule.transform.as_ref()).flat_map(|transform| &transform.headers) {
        if value.contains(IDENTITY) {
            return Err(ApiError::unsupported("identity tokens (iam)"));
        }
        let Some((before, rest)) = value.split_once(SECRET) else {
            let rule = HeaderRule { hosts: vec![host.clone()], ports: Vec::new(), header: header.clone(), value: value.clone() };
            policy.headers.get_or_insert_default().push(rule);
            continue;
        };
        let parts = rest.split_once('}').filter(|(_, after)| !after.contains(SECRET) && !before.contains("{}") && !after.contains("{}"));
        let Some((name, after)) = parts else {
            return Err(ApiError::bad_request(format!("{}: expected one placeholder ${{e2b.secrets.<name>}} in a value", field())));
        };
        policy.secrets.get_or_insert_default().push(SecretRule {
            secret: name.to_ascii_lowercase(),
            hosts: vec![host.clone()],
            ports: Vec::new(),
            methods: Vec::new(),
            paths: Vec::new(),
            header: header.clone(),
            value: format!("{before}{{}}{after}"),
            variable: None,
        });
    }
    Ok(())
}

/// The rules of a policy as E2B's clients know them, and whether anything goes out.
pub(crate) fn shown(policy: &Policy) -> (bool, Map<String, Value>) {
    let nothing = Rules::default();
    let rules = policy.network.as_ref().unwrap_or(&nothing);
    let mut shown = Map::new();
    let mut put = |name: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            shown.insert(name.to_owned(), json!(entries));
        }
    };
    let listed = |rules: &[Rule]| -> Vec<String> {
        let hosts = rules.iter().flat_map(|rule| rule.hosts.iter().map(ToString::to_string));
        hosts.chain(rules.iter().flat_map(|rule| rule.cidrs.iter().map(ToString::to_string))).collect()
    };
    let denied = listed(&rules.deny);
    put("allowOut", listed(&rules.allow));
    put("denyOut", if rules.default == Stance::Deny { vec![EVERYTHING[0].to_owned()] } else { denied });
    let constants = policy.headers.iter().flatten().map(|rule| (&rule.hosts, &rule.header, rule.value.clone()));
    let secrets = policy.secrets.iter().flatten().map(|rule| {
        let placeholder = format!("{SECRET}{}}}", rule.secret);
        (&rule.hosts, &rule.header, rule.value.replacen("{}", &placeholder, 1))
    });
    let mut transforms: Map<String, Value> = Map::new();
    for (hosts, header, value) in constants.chain(secrets) {
        for host in hosts {
            let rule = transforms.entry(host.to_string()).or_insert_with(|| json!([{ "transform": { "headers": {} } }]));
            rule[0]["transform"]["headers"][header] = json!(value);
        }
    }
    if !transforms.is_empty() {
        shown.insert("rules".to_owned(), Value::Object(transforms));
    }
    (policy.has_network(), shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Outgoing, ApiError> {
        outgoing(None, &serde_json::from_str(json).unwrap())
    }

    fn policy(json: &str) -> Policy {
        match of(json).unwrap() {
            Outgoing::Ruled(policy) => *policy,
            Outgoing::Everything => panic!("everything may go out: {json}"),
        }
    }

    #[test]
    fn all_and_nothing_are_known_for_what_they_are() {
        for all in
            ["{}", r#"{"allowOut":[]}"#, r#"{"denyOut":["0.0.0.0/0"],"allowOut":["0.0.0.0/0"]}"#, r#"{"allow_internet_access":true}"#]
        {
            assert_eq!(of(all).unwrap().plain(), Some(true), "{all}");
        }
        for nothing in [r#"{"denyOut":["0.0.0.0/0"]}"#, r#"{"allow_internet_access":false}"#, r#"{"denyOut":["8.8.8.8","0.0.0.0/0"]}"#] {
            assert_eq!(of(nothing).unwrap().plain(), Some(false), "{nothing}");
        }
        assert_eq!(outgoing(Some(false), &NetworkDto::default()).unwrap().plain(), Some(false));
    }

    #[test]
    fn what_is_allowed_beats_what_is_denied() {
        let some = policy(r#"{"denyOut":["0.0.0.0/0"],"allowOut":["1.1.1.1","api.example.com","*.example.org"]}"#).network.unwrap();
        assert_eq!(some.default, Stance::Deny);
        assert_eq!((some.allow[0].hosts.len(), some.allow[0].cidrs.len(), some.deny.len()), (2, 1, 0));
        let but = policy(r#"{"denyOut":["8.8.8.0/24"],"allowOut":["8.8.8.8"]}"#).network.unwrap();
        assert_eq!(but.default, Stance::Allow);
        let denied = |address: &str| but.deny[0].cidrs.iter().any(|cidr| cidr.contains(address.parse().unwrap()));
        assert!(denied("8.8.8.7") && denied("8.8.8.9") && denied("8.8.8.255") && !denied("8.8.8.8") && !denied("8.8.9.1"));
    }

    #[test]
    fn headers_and_secrets_are_put_in_for_one_host() {
        let rules = r#"{"rules":{"api.example.com":[{"transform":{"headers":{"X-Plain":"v","Authorization":"Bearer ${e2b.secrets.Model-Key}"}}}]}}"#;
        let policy = policy(rules);
        assert_eq!(policy.network.as_ref().unwrap().default, Stance::Allow, "a rule allows and denies nothing");
        let (secret, header) = (&policy.secrets.as_ref().unwrap()[0], &policy.headers.as_ref().unwrap()[0]);
        assert_eq!((secret.secret.as_str(), secret.value.as_str(), secret.header.as_str()), ("model-key", "Bearer {}", "Authorization"));
        assert_eq!((header.header.as_str(), header.value.as_str()), ("X-Plain", "v"));
        let (_, shown) = shown(&policy);
        let headers = &shown["rules"]["api.example.com"][0]["transform"]["headers"];
        assert_eq!(headers["Authorization"], "Bearer ${e2b.secrets.model-key}");
        assert_eq!(headers["X-Plain"], "v");
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        for refused in [
            r#"{"allowOut":["example.com"]}"#,
            r#"{"denyOut":["example.com"]}"#,
            r#"{"denyOut":["0.0.0.0/0"],"allowOut":["@registries"]}"#,
            r#"{"denyOut":["0.0.0.0/0"],"allowOut":["exa mple.com"]}"#,
            r#"{"egressProxy":{"address":"x:1"}}"#,
            r#"{"rules":{"*.example.com":[{"transform":{"headers":{"a":"b"}}}]}}"#,
            r#"{"rules":{"a.example.com":[{"transform":{"headers":{"a":"${e2b.secrets.x}${e2b.secrets.y}"}}}]}}"#,
            r#"{"rules":{"a.example.com":[{"transform":{"headers":{"a":"${e2b.identity.tokens.x}"}}}]}}"#,
            r#"{"rules":{"a.example.com":[{"transform":{"headers":{}}},{"transform":{"headers":{}}}]}}"#,
        ] {
            assert!(of(refused).is_err(), "{refused}");
        }
    }
}
