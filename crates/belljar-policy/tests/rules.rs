//! What documents mean, by example: verdicts, near misses, widenings, and who holds what.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use belljar_policy::{
    Compiled, Destination, Enforcers, Format, HostName, HttpRequest, Operator, Policy, Request, decide, diff, enforcement, explain, narrow,
    parse, parse_cases, profile,
};
use belljar_types::IsolationClass;

const POLICY: &str = r#"
version = 1
name = "example"
[[network.allow]]
id = "site"
hosts = ["allowed.test", "*.cdn.test"]
ports = [443]
[[network.allow]]
id = "api"
hosts = ["api.test"]
ports = [443, 8443]
methods = ["GET"]
paths = ["/v1/**"]
[[network.allow]]
id = "office"
cidrs = ["203.0.113.0/24"]
ports = ["1-1024"]
[[network.deny]]
id = "not-there"
hosts = ["bad.cdn.test"]
[[network.deny]]
id = "no-admin"
hosts = ["allowed.test"]
paths = ["/admin/**"]
[[network.deny]]
id = "read-only"
hosts = ["allowed.test"]
methods = ["POST"]
"#;

fn toml(text: &str) -> Policy {
    parse(text, Format::Toml).unwrap()
}

fn compiled(text: &str) -> Compiled {
    Compiled::new(&toml(text), &Arc::new(Operator::default())).unwrap()
}

#[test]
fn a_verdict_names_the_rule_and_the_reason() {
    let policy = compiled(POLICY);
    let ask = |to: &str, port, http: Option<(&str, &str)>| {
        let name = HostName::from_wire(to.as_bytes());
        let to = to.parse().map_or_else(|_| Destination::Name(name.as_ref().unwrap()), Destination::Address);
        let http = http.map(|(method, target)| HttpRequest { method, target });
        let verdict = decide(&policy, &Request { http, ..Request::connection(to, port) });
        format!("{}{verdict}", if verdict.inspect { "inspect: " } else { "" })
    };
    for (to, port, http, said) in [
        ("allowed.test", 443, None, "inspect: allowed by site"),
        ("ALLOWED.test.", 443, Some(("GET", "/")), "allowed by site"),
        ("allowed.test", 443, Some(("GET", "/admin/x")), "denied by no-admin"),
        ("allowed.test", 443, Some(("GET", "/a/../admin/x")), "denied by no-admin"),
        ("allowed.test", 443, Some(("post", "/")), "denied by read-only"),
        ("api.test", 443, Some(("get", "/v1/x")), "denied: api is about this destination, with other methods"),
        ("allowed.test", 22, None, "denied: site is about this destination, on other ports"),
        ("x.cdn.test", 443, None, "allowed by site"),
        ("bad.cdn.test", 443, None, "denied by not-there"),
        ("cdn.test", 443, None, "denied by network.default: no rule is about this destination"),
        ("api.test", 8443, None, "inspect: allowed by api"),
        ("api.test", 443, Some(("GET", "/v1/a?q=/v2")), "inspect: allowed by api"),
        ("api.test", 443, Some(("POST", "/v1/a")), "denied: api is about this destination, with other methods"),
        ("api.test", 443, Some(("GET", "/v2/a")), "denied: api is about this destination, on other paths"),
        ("api.test", 443, Some(("GET", "/v1/%2e%2e/a")), "denied: api is about this destination, on other paths"),
        ("203.0.113.7", 22, None, "allowed by office"),
        ("203.0.114.7", 22, None, "denied by network.default: no rule is about this destination"),
        ("169.254.169.254", 80, None, "denied by closed-addresses: no rule opens an address that is link-local, with cloud metadata"),
        (
            "::ffff:169.254.169.254",
            80,
            None,
            "denied by closed-addresses: no rule opens an address that is link-local, with cloud metadata",
        ),
        ("2001:db8::1", 22, None, "denied by network.default: no rule is about this destination"),
    ] {
        let verdict = ask(to, port, http);
        assert!(verdict == said || verdict == format!("inspect: {said}") && http.is_some(), "{to}:{port} {http:?}: {verdict}");
    }
}

#[test]
fn a_denial_of_some_requests_holds_on_every_port() {
    const DENY: &str = "[[network.deny]]\nid = \"no-delete\"\nhosts = [\"api.test\"]\nmethods = [\"DELETE\"]";
    let name = HostName::from_wire(b"api.test").unwrap();
    let ask = |rest: &str, port, method: Option<&str>| {
        let policy = compiled(&format!("version = 1\n{rest}\n{DENY}"));
        let http = method.map(|method| HttpRequest { method, target: "/" });
        let verdict = decide(&policy, &Request { http, ..Request::connection(Destination::Name(&name), port) });
        let spoken =
            if verdict.allow && http.is_none() { format!("{:?}, read: {}: ", verdict.scheme, verdict.inspect) } else { String::new() };
        format!("{spoken}{verdict}")
    };
    let open = "[network]\ndefault = \"allow\"";
    let any_port = "[[network.allow]]\nid = \"api\"\nhosts = [\"api.test\"]\nports = [\"*\"]";
    let raw = &format!("{any_port}\nscheme = \"raw\"");
    let both = &format!("{raw}\n[[network.allow]]\nid = \"web\"\nhosts = [\"api.test\"]");
    let unread = "denied by no-delete: it is about requests, and nobody reads them where only raw connections are allowed";
    for (rest, port, method, said) in [
        (open, 8443, None, "Https, read: true: allowed by network.default"),
        (open, 80, None, "Http, read: true: allowed by network.default"),
        (open, 8443, Some("DELETE"), "denied by no-delete"),
        (open, 8443, Some("GET"), "allowed by network.default"),
        (any_port, 8443, None, "Https, read: true: allowed by api"),
        (any_port, 80, None, "Http, read: true: allowed by api"),
        (raw, 443, None, unread),
        (raw, 8443, None, unread),
        (raw, 8443, Some("GET"), unread),
        (both, 443, None, "Https, read: true: allowed by web"),
        (both, 443, Some("GET"), "allowed by api"),
        (both, 8443, None, unread),
        (&format!("{open}\n{raw}"), 443, None, "Https, read: true: allowed by network.default"),
    ] {
        assert_eq!(ask(rest, port, method), said, "{rest} {port} {method:?}");
    }
}

#[test]
fn a_lower_document_does_not_make_raw_what_is_read_above() {
    let rule =
        |id: &str, ports: &str, more: &str| format!("[[network.allow]]\nid = \"{id}\"\nhosts = [\"api.test\"]\nports = [{ports}]\n{more}");
    let narrowed = |above: &str, below: &str| {
        let merged = narrow([&toml(&format!("version = 1\n{above}")), &toml(&format!("version = 1\n{below}"))]);
        merged.map_err(|error| error.to_string())
    };
    let deny = "[[network.deny]]\nhosts = [\"api.test\"]\nmethods = [\"DELETE\"]";
    for (above, below, fits) in [
        (format!("{}\n{deny}", rule("a", "443", "")), rule("b", "443", "scheme = \"raw\""), false),
        (rule("a", "443", ""), rule("b", "443", ""), true),
        (rule("a", "443", ""), rule("b", "443", "scheme = \"https\""), true),
        (rule("a", "443", "scheme = \"https\""), rule("b", "443", ""), true),
        (rule("a", "\"*\"", ""), rule("b", "\"*\"", "scheme = \"raw\""), false),
        (rule("a", "\"*\"", ""), rule("b", "5432", "scheme = \"raw\""), true),
        (rule("a", "\"*\"", ""), rule("b", "8443", "methods = [\"GET\"]"), true),
        (rule("a", "\"*\"", ""), rule("b", "\"80-90\"", "scheme = \"https\""), false),
        (rule("a", "8443", "scheme = \"raw\""), rule("b", "8443", "scheme = \"raw\""), true),
        (rule("a", "8443", "scheme = \"raw\""), rule("b", "8443", ""), false),
        (
            format!("{}\n{}", rule("a", "443", "inspect = true"), rule("c", "443", "scheme = \"raw\"")),
            rule("b", "443", "scheme = \"raw\""),
            false,
        ),
        (
            format!("{}\n{}", rule("a", "443", "inspect = true"), rule("c", "5432", "scheme = \"raw\"")),
            rule("b", "5432", "scheme = \"raw\""),
            true,
        ),
    ] {
        let told = narrowed(&above, &below);
        assert_eq!(told.is_ok(), fits, "{above}\n{below}\n{told:?}");
        match told {
            Ok(merged) => assert_eq!(parse(&merged.to_json(), Format::Json).as_ref(), Ok(&merged), "it can be used"),
            Err(told) => assert!(told.starts_with("policy rule b allows more"), "{told}"),
        }
    }
}

#[test]
fn only_the_operator_opens_closed_addresses() {
    let text = "version = 1\n[[network.allow]]\nid = \"lan\"\ncidrs = [\"10.0.0.0/8\", \"203.0.113.0/24\"]";
    let ask = |operator: Operator, to: &str| {
        let policy = Compiled::new(&toml(text), &Arc::new(operator)).unwrap();
        decide(&policy, &Request::connection(Destination::Address(to.parse().unwrap()), 443)).allow
    };
    assert!(!ask(Operator::default(), "10.1.2.3"));
    assert!(ask(Operator { reachable: vec!["10.1.0.0/16".parse().unwrap()], ..Operator::default() }, "10.1.2.3"));
    assert!(!ask(Operator { reachable: vec!["10.2.0.0/16".parse().unwrap()], ..Operator::default() }, "10.1.2.3"));
    assert!(ask(Operator::default(), "203.0.113.1"));
    assert!(!ask(Operator { unreachable: vec!["203.0.113.1".parse().unwrap()], ..Operator::default() }, "203.0.113.1"));
}

#[test]
fn a_widening_is_refused_by_name() {
    let above = toml(
        "version = 1\nname = \"project\"\n[[network.allow]]\nhosts = [\"*.a.test\"]\nports = [443]\nmethods = [\"GET\", \"PUT\"]\n[[network.allow]]\nhosts = [\"*.a.test\"]\nports = [22]\nscheme = \"raw\"\n[network.limits]\nconnections = 5\n[limits]\nmemory = \"1GiB\"\n[users]\nroot = false\n[ingress]\nports = [80]",
    );
    for (below, rule) in [
        ("[[network.allow]]\nid = \"x\"\nhosts = [\"b.test\"]", "x allows more than project does: no rule there allows b.test"),
        (
            "[[network.allow]]\nid = \"x\"\nhosts = [\"b.a.test\"]\nports = [80]\nmethods = [\"GET\"]",
            "x allows more than project does: no rule there allows port 80 of b.a.test",
        ),
        (
            "[[network.allow]]\nid = \"x\"\nhosts = [\"b.a.test\"]\nports = [443]",
            "x allows more than project does: the rules there for port 443 of b.a.test allow other methods",
        ),
        (
            "[[network.allow]]\nid = \"x\"\nhosts = [\"b.a.test\"]\nports = [22]\nscheme = \"https\"",
            "x allows more than project does: the rules there for port 22 of b.a.test allow other methods, paths or schemes",
        ),
        ("[network]\ndefault = \"allow\"", "network.default allows more"),
        ("[network.limits]\nconnections = 6", "network.limits.connections allows more than project does: at most 5 there, 6 here"),
        ("[limits]\nmemory = \"2GiB\"", "limits.memory allows more"),
        ("[users]\nroot = true", "users.root allows more"),
        ("[ingress]\nports = [81]", "ingress.ports allows more"),
    ] {
        let told = narrow([&above, &toml(&format!("version = 1\n{below}"))]).unwrap_err().to_string();
        assert!(told.starts_with(&format!("policy rule {rule}")), "{told}");
    }
    let narrower =
        toml("version = 1\n[[network.allow]]\nhosts = [\"b.a.test\"]\nports = [443]\nmethods = [\"GET\"]\n[limits]\ndisk = \"1GiB\"");
    let merged = narrow([&above, &narrower]).unwrap();
    assert_eq!(merged.limits.unwrap().memory.unwrap().0, 1 << 30, "what is left out is taken over");
    assert_eq!(merged.network.unwrap().limits.unwrap().connections, Some(5));
    assert!(narrow([&profile("open").unwrap(), &toml(POLICY)]).is_ok());
    assert!(narrow([&profile("offline").unwrap(), &toml(POLICY)]).is_err());
}

#[test]
fn a_rule_that_nobody_can_hold_is_refused_by_name() {
    let all = Enforcers { egress: true, inspection: true, secrets: true };
    let ask = |text: &str, server: &Enforcers| {
        enforcement(&toml(&format!("version = 1\n{text}")), IsolationClass::Gvisor, server)
            .map(|held| held.len())
            .map_err(|error| error.to_string())
    };
    for (text, said) in [
        ("[[network.allow]]\nid = \"x\"\nhosts = [\"a.test\"]\nprotocol = \"udp\"", "policy rule x cannot be enforced by the gvisor class"),
        ("[[network.allow]]\nid = \"x\"\ncidrs = [\"2001:db8::/32\"]", "policy rule x cannot be enforced"),
    ] {
        assert!(ask(text, &all).unwrap_err().starts_with(said), "{text}");
    }
    assert!(
        ask("[[network.allow]]\nid = \"x\"\nhosts = [\"a.test\"]\npaths = [\"/\"]", &Enforcers { egress: true, ..Enforcers::default() })
            .unwrap_err()
            .contains("rule x")
    );
    assert!(ask("[[network.allow]]\nhosts = [\"a.test\"]", &Enforcers::default()).unwrap_err().contains("rule network "));
    assert_eq!(enforcement(&toml(POLICY), IsolationClass::Container, &all).unwrap().len(), 7);
}

#[test]
fn lists_of_the_operator_are_filled_in_and_an_empty_one_is_named() {
    let packages = profile("packages").unwrap();
    let told = Compiled::new(&packages, &Arc::new(Operator::default())).unwrap_err().to_string();
    assert!(told.contains("rule packages") && told.contains("@registries") && told.contains("network.sets.registries"), "{told}");
    let operator =
        Operator { sets: [("registries".to_owned(), vec!["*.mirror.test".to_owned().try_into().unwrap()])].into(), ..Operator::default() };
    let policy = Compiled::new(&packages, &Arc::new(operator)).unwrap();
    let name = HostName::from_wire(b"a.mirror.test").unwrap();
    assert!(decide(&policy, &Request::connection(Destination::Name(&name), 443)).allow);
}

#[test]
fn a_policy_is_explained_compared_and_tried() {
    let policy = toml(POLICY);
    let lines = explain(&policy);
    assert!(lines.iter().any(|line| line.contains("allow api: api.test on TCP 443, 8443, methods GET, paths /v1/**")), "{lines:?}");
    let other = toml(&POLICY.replace("\"1-1024\"", "22"));
    let changes: Vec<String> = diff(&policy, &other).iter().map(ToString::to_string).collect();
    assert_eq!(changes, ["~ network.allow[office].ports: [\"1-1024\"] -> [22]"]);
    assert!(diff(&policy, &policy).is_empty());
    let cases = parse_cases("[[case]]\nto = \"allowed.test\"\nexpect = \"allow\"\nrule = \"site\"\n[[case]]\nto = \"api.test\"\nmethod = \"PUT\"\nexpect = \"deny\"\n[[case]]\nto = \"127.1\"\nexpect = \"allow\"", Format::Toml).unwrap();
    let passed: Vec<bool> = cases.iter().map(|case| case.run(&compiled(POLICY)).passed).collect();
    assert_eq!(passed, [true, true, false]);
}
