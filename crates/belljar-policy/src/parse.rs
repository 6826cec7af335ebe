//! Reading a document, and the checks that need nothing but itself.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::document::{HeaderRule, Network, Policy, Protocol, Rule, Scheme, SecretRule, VERSION};
use crate::{NamePattern, PolicyError};

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.toml`
    Toml,
    /// `.yaml`, `.yml`
    Yaml,
    /// `.json`
    Json,
}

impl Format {
    /// By the end of a file's name; TOML when that says nothing.
    pub fn of_file_name(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("yaml" | "yml") => Self::Yaml,
            Some("json") => Self::Json,
            _ => Self::Toml,
        }
    }
}

const LARGEST: usize = 8 << 20;
const MOST_RULES: usize = 100_000;

/// Reads a document and checks it. An unknown field is an error that names it.
pub fn parse(text: &str, format: Format) -> Result<Policy, PolicyError> {
    let policy: Policy = read(text, format)?;
    check(&policy)?;
    Ok(policy)
}

/// Reads anything written in one of the formats, with the place of a mistake.
pub(crate) fn read<T: DeserializeOwned>(text: &str, format: Format) -> Result<T, PolicyError> {
    let whole = |problem: String| PolicyError::Parse { field: "document".to_owned(), problem };
    if text.len() > LARGEST {
        return Err(whole(format!("expected at most {LARGEST} bytes, got {}", text.len())));
    }
    match format {
        Format::Toml => {
            let document = toml::Deserializer::parse(text).map_err(|error| whole(error.message().to_owned()))?;
            serde_path_to_error::deserialize(document).map_err(|error| at(error.path(), error.inner().message()))
        }
        Format::Json => {
            let mut document = serde_json::Deserializer::from_str(text);
            let value = serde_path_to_error::deserialize(&mut document).map_err(|error| at(error.path(), &error.inner().to_string()))?;
            document.end().map_err(|error| whole(error.to_string()))?;
            Ok(value)
        }
        Format::Yaml => {
            let document: serde_json::Value = serde_saphyr::from_str(text).map_err(|error| whole(first_line(&error.to_string())))?;
            serde_path_to_error::deserialize(document).map_err(|error| at(error.path(), &error.inner().to_string()))
        }
    }
}

fn at(path: &serde_path_to_error::Path, problem: &str) -> PolicyError {
    let field = match path.to_string() {
        root if root == "." => "document".to_owned(),
        field => field,
    };
    PolicyError::Parse { field: belljar_types::escape_untrusted(field.as_bytes()), problem: first_line(problem) }
}

fn first_line(text: &str) -> String {
    belljar_types::escape_untrusted(text.lines().next().unwrap_or_default().as_bytes())
}

fn check(policy: &Policy) -> Result<(), PolicyError> {
    if policy.version != VERSION {
        return Err(PolicyError::Parse { field: "version".to_owned(), problem: format!("expected {VERSION}, got {}", policy.version) });
    }
    if let Some(network) = &policy.network {
        check_network(network)?;
    }
    for (index, secret) in policy.secrets.iter().flatten().enumerate() {
        check_secret(&format!("secrets[{index}]"), secret)?;
    }
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    for (index, header) in policy.headers.iter().flatten().enumerate() {
        let name = format!("headers[{index}]");
        check_header(&name, header)?;
        let is_new = |host: &NamePattern| known.insert((host.to_string(), header.header.to_ascii_lowercase()));
        if !header.hosts.iter().all(is_new) {
            return Err(PolicyError::rule(name, "another entry has the same header for the same host"));
        }
    }
    Ok(())
}

fn check_network(network: &Network) -> Result<(), PolicyError> {
    if network.allow.len() + network.deny.len() > MOST_RULES {
        return Err(PolicyError::rule("network", format!("expected at most {MOST_RULES} rules")));
    }
    let mut known = BTreeSet::new();
    for (list, rules) in [("allow", &network.allow), ("deny", &network.deny)] {
        for (index, rule) in rules.iter().enumerate() {
            let name = rule_name(rule, list, index);
            check_rule(&name, rule)?;
            if !known.insert(name.clone()) {
                return Err(PolicyError::rule(name, "its id is used by another rule"));
            }
        }
    }
    Ok(())
}

/// What a rule is called.
pub(crate) fn rule_name(rule: &Rule, list: &str, index: usize) -> String {
    rule.id.clone().unwrap_or_else(|| format!("network.{list}[{index}]"))
}

fn check_rule(name: &str, rule: &Rule) -> Result<(), PolicyError> {
    let wrong = |problem: &str| Err(PolicyError::rule(name, problem));
    let plain_id = |id: &String| (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:/[]".contains(&b));
    if rule.id.as_ref().is_some_and(|id| !plain_id(id)) {
        return Err(PolicyError::rule(
            belljar_types::escape_untrusted(name.as_bytes()),
            "expected an id of 1 to 64 letters, digits, - _ . : /",
        ));
    }
    if rule.hosts.is_empty() && rule.cidrs.is_empty() {
        return wrong("expected hosts or cidrs, got neither");
    }
    let reads = !rule.methods.is_empty() || !rule.paths.is_empty() || rule.inspect;
    if reads && (rule.protocol != Protocol::Tcp || rule.scheme == Some(Scheme::Raw)) {
        return wrong("methods, paths and inspect need HTTP: leave out protocol and a scheme of raw");
    }
    if reads && !rule.cidrs.is_empty() {
        return wrong("methods, paths and inspect need hosts: an address says nothing about whom a request is for");
    }
    if rule.protocol == Protocol::Icmp && !rule.ports.is_empty() {
        return wrong("icmp has no ports");
    }
    check_methods(name, &rule.methods)
}

fn check_methods(name: &str, methods: &[String]) -> Result<(), PolicyError> {
    match methods
        .iter()
        .find(|method| method.is_empty() || method.len() > 32 || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'))
    {
        Some(method) => Err(PolicyError::rule(
            name,
            format!("expected methods in capital letters, got {:?}", belljar_types::escape_untrusted(method.as_bytes())),
        )),
        None => Ok(()),
    }
}

const LONGEST_HEADER: usize = 8 << 10;
/// Headers that decide where a request goes or where it ends.
const FRAMING: [&str; 9] =
    ["host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "expect"];

/// Whether this header may be put into a request from outside.
fn is_settable(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    plain(&header) && !FRAMING.contains(&header.as_str()) && !header.starts_with("proxy-")
}

fn plain(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn check_header(name: &str, rule: &HeaderRule) -> Result<(), PolicyError> {
    let wrong = |problem: &str| Err(PolicyError::rule(name, problem));
    if rule.hosts.is_empty() || !rule.hosts.iter().all(|host| matches!(host, NamePattern::Exact(_))) {
        return wrong("expected exact hosts");
    }
    if !is_settable(&rule.header) {
        return wrong("expected the name of a header that decides neither where a request goes nor where it ends");
    }
    if rule.value.len() > LONGEST_HEADER || !rule.value.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return wrong("expected a value of at most 8192 visible ASCII characters");
    }
    Ok(())
}

fn check_secret(name: &str, secret: &SecretRule) -> Result<(), PolicyError> {
    let wrong = |problem: &str| Err(PolicyError::rule(name, problem));
    if !plain(&secret.secret) {
        return wrong("expected a secret's name of 1 to 128 letters, digits, - and _");
    }
    if secret.hosts.is_empty() || !secret.hosts.iter().all(|host| matches!(host, NamePattern::Exact(_))) {
        return wrong("expected exact hosts: a secret is never sent to whoever owns a name below a wildcard");
    }
    if !is_settable(&secret.header) {
        return wrong("expected the name of a header that carries a credential, such as authorization");
    }
    let value = &secret.value;
    if value.matches("{}").count() != 1 || !value.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return wrong("expected a value with {} once for the secret, in visible ASCII");
    }
    let is_variable = |text: &String| plain(text) && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('-');
    if secret.variable.as_ref().is_some_and(|variable| !is_variable(variable)) {
        return wrong("expected the name of an environment variable");
    }
    check_methods(name, &secret.methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_formats_say_the_same() {
        let toml = "version = 1\n[[network.allow]]\nid = \"a\"\nhosts = [\"A.test\"]\nports = [443, \"8000-8010\"]\n[network.limits]\nsent = \"1KiB\"";
        let yaml =
            "version: 1\nnetwork:\n  allow:\n    - id: a\n      hosts: [a.test]\n      ports: [443, 8000-8010]\n  limits: {sent: 1024}\n";
        let json = r#"{"version":1,"network":{"allow":[{"id":"a","hosts":["a.test."],"ports":[443,"8000-8010"]}],"limits":{"sent":1024}}}"#;
        let read = |text, format| parse(text, format).unwrap();
        let policy = read(toml, Format::Toml);
        assert_eq!(policy, read(yaml, Format::Yaml));
        assert_eq!(policy, read(json, Format::Json));
        assert_eq!(policy, read(&policy.to_json(), Format::Json), "it comes back as it was");
    }

    #[test]
    fn a_field_that_is_not_known_is_named_with_its_place() {
        for (text, format) in [
            ("version = 1\n[network]\n[[network.allow]]\nhosts = [\"a.test\"]\nport = [1]", Format::Toml),
            ("version: 1\nnetwork: {allow: [{hosts: [a.test], port: [1]}]}", Format::Yaml),
            (r#"{"version":1,"network":{"allow":[{"hosts":["a.test"],"port":[1]}]}}"#, Format::Json),
        ] {
            let told = parse(text, format).unwrap_err().to_string();
            assert!(told.starts_with("policy.network.allow[0]") && told.contains("unknown field `port`"), "{format:?}: {told}");
        }
        assert!(parse(r#"{"version":1,"version":1}"#, Format::Json).is_err(), "twice is a mistake");
        assert!(parse("version: 1\nversion: 1", Format::Yaml).is_err(), "twice is a mistake");
        assert!(parse(r#"{"version":1} x"#, Format::Json).is_err());
    }

    #[test]
    fn mistakes_name_their_rule() {
        for (rule, said) in [
            (r#"{"id":"x"}"#, "policy rule x: expected hosts or cidrs"),
            (r#"{"id":"x","cidrs":["1.2.3.4"],"paths":["/a"]}"#, "policy rule x: methods, paths and inspect need hosts"),
            (r#"{"id":"x","hosts":["a.b"],"methods":["get"]}"#, "policy rule x: expected methods in capital letters"),
            (r#"{"hosts":["a.b"],"protocol":"udp","paths":["/"]}"#, "policy rule network.allow[0]: methods, paths"),
            (r#"{"hosts":["*.b"]}"#, "policy.network.allow[0].hosts[0]"),
            (r#"{"hosts":["a.b"],"ports":["9-3"]}"#, "policy.network.allow[0].ports[0]"),
        ] {
            let told = parse(&format!(r#"{{"version":1,"network":{{"allow":[{rule}]}}}}"#), Format::Json).unwrap_err().to_string();
            assert!(told.starts_with(said), "{told}");
        }
        assert!(parse("version = 2", Format::Toml).unwrap_err().to_string().starts_with("policy.version: expected 1, got 2"));
    }
}
