//! The document: one schema for TOML, YAML and JSON. A field that is not known is refused by name, because a rule that is not read is a
//! rule that is not kept. `docs/reference/policy.md` describes every field.

use belljar_types::Meter;
use serde::{Deserialize, Serialize};

use crate::{Cidr, NamePattern, PathPattern, PortRange, Size, Span};

/// The version of the schema.
pub const VERSION: u32 = 1;

/// What a sandbox may do. What is left out is left to the document above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Must be 1.
    pub version: u32,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What goes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What comes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PolicyLimits>,
    /// How long it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Lifetime>,
    /// Who it may be inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Users>,
    /// Which secrets are added to which requests, outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<SecretRule>>,
    /// Which headers are put into which requests, outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<HeaderRule>>,
    /// How much it may use in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How its output is handed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// Which volumes it may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounts: Option<Vec<Mount>>,
}

/// What happens to a connection that no rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stance {
    /// It is refused.
    #[default]
    Deny,
    /// It may go to any public address.
    Allow,
}

/// `network`: outgoing connections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// For what no rule is about.
    #[serde(default)]
    pub default: Stance,
    /// What may go out.
    #[serde(default)]
    pub allow: Vec<Rule>,
    /// What may not, whatever else allows it.
    #[serde(default)]
    pub deny: Vec<Rule>,
    /// How much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<NetworkLimits>,
}

/// What kind of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Connections.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
    /// `ping` and what goes with it.
    Icmp,
}

/// What is spoken over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// TLS, whose name must be the one asked for.
    Https,
    /// Plain HTTP, every request of which is looked at.
    Http,
    /// Anything: only name or address and port are looked at.
    Raw,
}

/// One rule of the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name in verdicts and errors; made from its place when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Names it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<NamePattern>,
    /// Networks it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cidrs: Vec<Cidr>,
    /// Ports; 80 and 443 when left out of a rule that allows, all when left out of one that denies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// Kind of packets.
    #[serde(default)]
    pub protocol: Protocol,
    /// What is spoken; by port when left out: 443 is `https`, 80 is `http`, others are `raw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// Methods of HTTP; all when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Paths of HTTP; all when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathPattern>,
    /// Look into TLS even if nothing else asks for it: closes fronting.
    #[serde(default)]
    pub inspect: bool,
}

/// How much may go through the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkLimits {
    /// Connections at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Bytes a second, each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<Size>,
    /// Bytes sent in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Size>,
    /// Bytes received in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Size>,
    /// Different names below wildcards that are looked up in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names_per_minute: Option<u32>,
}

/// `ingress`: connections from outside to ports inside.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ingress {
    /// Ports that may be reached; none when empty.
    pub ports: Vec<PortRange>,
}

/// `limits`: the most that may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyLimits {
    /// Thousandths of a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Disk beyond the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
}

/// `lifetime`: the longest that may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lifetime {
    /// A lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Span>,
    /// Without being used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// In all, whatever happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<Span>,
}

/// `users`: who processes may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// Whether anything may become root inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<bool>,
}

/// One entry of `secrets`: a secret of the project, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRule {
    /// The secret's name in the project.
    pub secret: String,
    /// Hosts it is sent to, over TLS only; no wildcards.
    pub hosts: Vec<NamePattern>,
    /// Ports; 443 when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// Methods; all when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Paths; all when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathPattern>,
    /// The header it is sent in.
    pub header: String,
    /// The header's value, with `{}` for the secret.
    #[serde(default = "secret_alone")]
    pub value: String,
    /// A variable that holds a placeholder, for programs that insist on a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

fn secret_alone() -> String {
    "{}".to_owned()
}

/// One entry of `headers`: a header with a value that is no secret, put into requests in place of the program's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderRule {
    /// Hosts it is sent to; no wildcards.
    pub hosts: Vec<NamePattern>,
    /// Ports; 80 and 443 when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// The header.
    pub header: String,
    /// Its value.
    pub value: String,
}

/// `budget`: sums over its life. A sandbox that has used one up is paused and cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Processor time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Span>,
    /// Time it runs; pauses are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Span>,
    /// Bytes sent through the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Size>,
    /// Bytes received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Size>,
    /// Processes started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
}

impl Budget {
    /// What may be used of what.
    pub fn limits(&self) -> impl Iterator<Item = (Meter, u64)> {
        let whole = |units: u128| u64::try_from(units).unwrap_or(u64::MAX);
        let limits = [
            (Meter::CpuMicros, self.cpu.map(|span| whole(span.0.as_micros()))),
            (Meter::WallMillis, self.running.map(|span| whole(span.0.as_millis()))),
            (Meter::EgressBytes, self.sent.map(|size| size.0)),
            (Meter::IngressBytes, self.received.map(|size| size.0)),
            (Meter::Executions, self.executions),
        ];
        limits.into_iter().filter_map(|(meter, limit)| Some((meter, limit?)))
    }
}

/// `output`: what is handed on of the results of commands. Streams are bytes, and are handed on as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The most of one result; its middle is left out and counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Take terminal escapes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strip_escapes: Option<bool>,
    /// Mask known secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_secrets: Option<bool>,
}

/// One entry of `mounts`: a volume that may be mounted. No other may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The volume.
    pub volume: String,
    /// Where it is inside.
    pub at: String,
    /// Whether it may be written.
    #[serde(default)]
    pub writable: bool,
}

impl Policy {
    /// A document that says nothing.
    pub fn blank() -> Self {
        Self {
            version: VERSION,
            name: None,
            description: None,
            network: None,
            ingress: None,
            limits: None,
            lifetime: None,
            users: None,
            secrets: None,
            headers: None,
            budget: None,
            output: None,
            mounts: None,
        }
    }

    /// What it is called in errors.
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| "the policy".to_owned())
    }

    /// Whether anything at all may go out.
    pub fn has_network(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.default == Stance::Allow || !network.allow.is_empty())
    }

    /// As JSON, the form in which it is stored and sent.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Rule {
    /// The ports it is about, if it allows.
    pub fn allowed_ports(&self) -> Vec<PortRange> {
        let single = |port| PortRange { first: port, last: port };
        if self.ports.is_empty() { vec![single(80), single(443)] } else { self.ports.clone() }
    }

    /// Whether requests have to be read for it.
    pub fn reads_requests(&self) -> bool {
        self.inspect || !self.methods.is_empty() || !self.paths.is_empty()
    }

    /// What is spoken on this port under it.
    pub fn scheme_at(&self, port: u16) -> Scheme {
        match (self.scheme, port) {
            (Some(scheme), _) => scheme,
            (None, 80) => Scheme::Http,
            (None, 443) => Scheme::Https,
            (None, _) if self.reads_requests() => Scheme::Https,
            (None, _) => Scheme::Raw,
        }
    }
}
