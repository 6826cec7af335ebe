//! Properties of policies: what holds for all documents and all requests, not for examples.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use belljar_policy::{
    Compiled, Destination, Format, HostName, HttpRequest, NamePattern, Network, Operator, PathPattern, Policy, PolicyError, PortRange,
    Request, Rule, Scheme, Stance, decide, narrow, parse,
};
use proptest::prelude::*;

const HOSTS: [&str; 8] = ["a.test", "b.a.test", "c.b.a.test", "*.a.test", "*.b.a.test", "ba.test", "x.test", "*.x.y.test"];
const ASKED: [&str; 9] =
    ["a.test", "b.a.test", "c.b.a.test", "d.c.b.a.test", "ba.test", "x.test", "y.test", "q.x.y.test", "a.test.evil.test"];
const METHODS: [&str; 3] = ["GET", "POST", "DELETE"];
const PATHS: [&str; 5] = ["/v1/**", "/v1/*", "/v1/x", "/**", "/v2/*"];
const TARGETS: [&str; 6] = ["/v1/x", "/v1/x/y", "/v2/z", "/", "/v1/../v2/z", "/v1%2fx"];
/// Where the port says what is spoken, and where it does not.
const PORTS: [u16; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 80, 443];
const CIDRS: [&str; 4] = ["203.0.113.0/24", "203.0.113.128/25", "0.0.0.0/0", "192.168.0.0/16"];

fn rule() -> impl Strategy<Value = Rule> {
    let names = proptest::sample::subsequence(HOSTS.to_vec(), 0..4);
    let cidrs = proptest::sample::subsequence(CIDRS.to_vec(), 0..3);
    let port = prop_oneof![4 => (1u16..6, 0u16..4), 1 => Just((80, 0)), 1 => Just((443, 0)), 1 => Just((1, u16::MAX - 1))];
    let ports = proptest::collection::vec(port, 0..3);
    let scheme = proptest::option::weighted(0.4, prop::sample::select(vec![Scheme::Https, Scheme::Http, Scheme::Raw]));
    let read = (scheme, prop::bool::weighted(0.2));
    let http = (proptest::sample::subsequence(METHODS.to_vec(), 0..3), proptest::sample::subsequence(PATHS.to_vec(), 0..3));
    (names, cidrs, ports, http, read).prop_filter_map(
        "it is about somebody",
        |(names, cidrs, ports, (methods, paths), (scheme, inspect))| {
            let http = !methods.is_empty() || !paths.is_empty() || inspect;
            let hosts: Vec<NamePattern> = names.iter().map(|name| NamePattern::try_from((*name).to_owned()).unwrap()).collect();
            let cidrs: Vec<_> = if http { Vec::new() } else { cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect() };
            (!hosts.is_empty() || !cidrs.is_empty()).then(|| Rule {
                hosts,
                cidrs,
                ports: ports.iter().map(|(first, more)| PortRange { first: *first, last: first + more }).collect(),
                methods: methods.iter().map(|method| (*method).to_owned()).collect(),
                paths: paths.iter().map(|path| PathPattern::try_from((*path).to_owned()).unwrap()).collect(),
                scheme: scheme.filter(|scheme| !http || *scheme != Scheme::Raw),
                inspect,
                ..Rule::default()
            })
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let rules = || proptest::collection::vec(rule(), 0..4);
    (prop::bool::weighted(0.2), rules(), rules()).prop_map(|(open, allow, deny)| {
        let default = if open { Stance::Allow } else { Stance::Deny };
        Policy { network: Some(Network { default, allow, deny, limits: None }), ..Policy::blank() }
    })
}

fn allows(policy: &Compiled, request: &Request<'_>) -> bool {
    decide(policy, request).allow
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the lower document says: either it is refused, or nothing is allowed that was not allowed before.
    #[test]
    fn a_lower_document_never_allows_more(above in policy(), below in policy(), port in prop::sample::select(&PORTS), host in 0..ASKED.len(), method in 0..METHODS.len(), target in 0..TARGETS.len(), address in any::<[u8; 4]>()) {
        let operator = Arc::new(Operator::default());
        let merged = match narrow([&above, &below]) {
            Ok(merged) => Compiled::new(&merged, &operator).unwrap(),
            Err(PolicyError::Widening { rule, .. }) => { prop_assert!(!rule.is_empty()); return Ok(()) }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let above = Compiled::new(&above, &operator).unwrap();
        let name = HostName::from_wire(ASKED[host].as_bytes()).unwrap();
        for http in [None, Some(HttpRequest { method: METHODS[method], target: TARGETS[target] })] {
            let request = Request { http, ..Request::connection(Destination::Name(&name), port) };
            prop_assert!(!allows(&merged, &request) || allows(&above, &request), "{request:?}");
        }
        for address in [address.into(), "203.0.113.200".parse().unwrap()] {
            let request = Request::connection(Destination::Address(address), port);
            prop_assert!(!allows(&merged, &request) || allows(&above, &request), "{request:?}");
        }
    }

    /// The table finds exactly what the rules, read one by one, are about.
    #[test]
    fn the_compiled_form_decides_as_the_rules_read(policy in policy(), port in prop::sample::select(&PORTS), host in 0..ASKED.len()) {
        let compiled = Compiled::new(&policy, &Arc::new(Operator::default())).unwrap();
        let network = policy.network.unwrap();
        let name = NamePattern::try_from(ASKED[host].to_owned()).unwrap();
        let about = |rule: &Rule, ports: Vec<PortRange>| rule.hosts.iter().any(|known| known.covers(&name)) && ports.iter().any(|range| range.contains(port));
        let unconditional = |rule: &&Rule| rule.methods.is_empty() && rule.paths.is_empty();
        let denied = network.deny.iter().filter(unconditional).any(|rule| about(rule, if rule.ports.is_empty() { vec![PortRange::ALL] } else { rule.ports.clone() }));
        let open = network.default == Stance::Allow;
        let allowed = network.allow.iter().any(|rule| about(rule, rule.allowed_ports())) || open;
        // Where a denial is about some requests, somebody has to be able to read them.
        let reads = network.deny.iter().any(|rule| !unconditional(&rule) && about(rule, if rule.ports.is_empty() { vec![PortRange::ALL] } else { rule.ports.clone() }));
        let readable = network.allow.iter().any(|rule| rule.scheme != Some(Scheme::Raw) && about(rule, rule.allowed_ports())) || open;
        let wire = HostName::from_wire(ASKED[host].as_bytes()).unwrap();
        prop_assert_eq!(allows(&compiled, &Request::connection(Destination::Name(&wire), port)), allowed && !denied && (readable || !reads));
    }

    /// Where requests have to be asked about, something is spoken that they can be read in: by any document, and by any two above each other.
    #[test]
    fn what_has_to_be_read_is_never_raw(above in policy(), below in policy(), port in prop::sample::select(&PORTS), host in 0..ASKED.len(), address in any::<[u8; 4]>()) {
        let name = HostName::from_wire(ASKED[host].as_bytes()).unwrap();
        let merged = narrow([&above, &below]).ok();
        for policy in [Some(above), merged].into_iter().flatten() {
            let compiled = Compiled::new(&policy, &Arc::new(Operator::default())).unwrap();
            for to in [Destination::Name(&name), Destination::Address(address.into())] {
                let verdict = decide(&compiled, &Request::connection(to, port));
                prop_assert!(!(verdict.allow && verdict.inspect && verdict.scheme == Scheme::Raw), "{verdict}");
            }
        }
    }

    /// A connection is allowed whenever some request on it is; and if no request has to be asked about, every one is allowed.
    #[test]
    fn the_two_questions_agree(policy in policy(), port in prop::sample::select(&PORTS), host in 0..ASKED.len(), method in 0..METHODS.len(), target in 0..TARGETS.len()) {
        let compiled = Compiled::new(&policy, &Arc::new(Operator::default())).unwrap();
        let name = HostName::from_wire(ASKED[host].as_bytes()).unwrap();
        let connection = Request::connection(Destination::Name(&name), port);
        let request = Request { http: Some(HttpRequest { method: METHODS[method], target: TARGETS[target] }), ..connection };
        let (first, second) = (decide(&compiled, &connection), decide(&compiled, &request));
        prop_assert!(!second.allow || first.allow);
        prop_assert!(!first.allow || first.inspect || second.allow, "{first} {second}");
    }

    /// No rule opens what only the operator can, in whatever spelling of version 6 it hides.
    #[test]
    fn closed_addresses_stay_closed(policy in policy(), port in any::<u16>(), low in any::<[u8; 4]>(), network in prop::sample::select(vec![[10u8, 0, 0], [127, 0, 0], [169, 254, 169], [192, 168, 1], [100, 64, 0]])) {
        let compiled = Compiled::new(&policy, &Arc::new(Operator::default())).unwrap();
        let v4 = std::net::Ipv4Addr::new(network[0], network[1], network[2], low[3]);
        for address in [v4.into(), v4.to_ipv6_mapped().into(), v4.to_ipv6_compatible().into()] {
            prop_assert!(!allows(&compiled, &Request::connection(Destination::Address(address), port)));
        }
    }

    /// Reading never panics, and what was read comes back the same.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", policy in policy()) {
        for format in [Format::Toml, Format::Yaml, Format::Json] {
            drop(parse(&text, format));
        }
        let again = parse(&policy.to_json(), Format::Json);
        prop_assert_eq!(again.unwrap(), policy);
    }

    /// A name from the wire is in its one spelling, whatever bytes came.
    #[test]
    fn any_bytes_are_a_plain_name_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Some(name) = HostName::from_wire(&bytes) {
            prop_assert_eq!(HostName::from_wire(name.as_str().as_bytes()), Some(name.clone()));
            prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)));
            prop_assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
        }
    }
}
