//! The configuration file. Every key has a default, so that an empty file and no file mean the same; an unknown key is an error, because a
//! typo that is ignored is a limit that is not kept. `docs/reference/configuration.md` lists all of it.

mod audit;
mod blobs;
mod buckets;
mod key_file;
mod quantity;
mod rules;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use belljar_types::{Invalid, Limits, Prices, TemplateName};
use serde::Deserialize;

use audit::AuditSection;
pub(crate) use blobs::{BlobsConfig, BlobsKind};
pub(crate) use buckets::{BucketConfig, BucketsConfig};
pub(crate) use quantity::{Bytes, Time};
pub(crate) use rules::{NetworkConfig, PoliciesConfig, WebhooksConfig, read_policy};

/// Where the file is looked for when nobody says.
pub(crate) const DEFAULT_PATH: &str = "/etc/belljar/belljar.toml";
/// Where everything is kept when nobody says.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/belljar";

/// Why the configuration was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file could not be read.
    #[error("read the configuration {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// It is no valid configuration.
    #[error("understand line {line} of the configuration {path}")]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        line: usize,
        /// Why.
        #[source]
        source: Mistake,
    },
    /// A value is out of range.
    #[error("use the configuration")]
    Value(#[from] Invalid),
}

/// What is wrong with a line, without the picture of it that the parser draws: errors are told on one line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Mistake {
    message: String,
}

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Everything that lasts.
    pub(crate) data_dir: Option<PathBuf>,
    /// The HTTP side.
    pub(crate) server: ServerConfig,
    /// What is remembered, and where.
    pub(crate) store: StoreConfig,
    /// What sandboxes may do and use.
    pub(crate) sandboxes: SandboxesConfig,
    /// The host's side of sandboxes.
    pub(crate) host: HostSection,
    /// The record of what happens.
    pub(crate) audit: AuditSection,
    /// The way out of sandboxes.
    pub(crate) network: NetworkConfig,
    /// What projects and templates may do.
    pub(crate) policies: PoliciesConfig,
    /// What usage costs.
    pub(crate) prices: Prices,
    /// Where bytes are kept that outlive sandboxes.
    pub(crate) blobs: BlobsConfig,
    /// Who may be told.
    pub(crate) webhooks: WebhooksConfig,
    /// Buckets that may be volumes.
    pub(crate) buckets: BucketsConfig,
    /// What is logged.
    pub(crate) log: LogConfig,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) tls_certificate: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) behind_proxy: bool,
    pub(crate) domain: Option<String>,
    pub(crate) connections: usize,
    pub(crate) requests_per_second: Option<u32>,
    pub(crate) request_burst: Option<u32>,
    pub(crate) max_upload: Bytes,
    pub(crate) drain: Time,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            tls_certificate: None,
            tls_key: None,
            behind_proxy: false,
            domain: None,
            connections: 4096,
            requests_per_second: None,
            request_burst: None,
            max_upload: Bytes::gibibytes(10),
            drain: Time::from_secs(20),
        }
    }
}

/// `[store]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StoreConfig {
    /// `sqlite:PATH` or `postgres://…`; a file in the data directory when unset.
    pub(crate) url: Option<String>,
}

/// `[sandboxes]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxesConfig {
    pub(crate) allow_shared_kernel: bool,
    pub(crate) default_isolation: Option<String>,
    pub(crate) default_template: Option<TemplateName>,
    pub(crate) default_lease: Option<Time>,
    pub(crate) max_lease: Option<Time>,
    pub(crate) max_sandboxes: Option<u32>,
    pub(crate) memory_overcommit_percent: Option<u32>,
    pub(crate) memory_reserve: Option<Bytes>,
    pub(crate) disk_reserve: Option<Bytes>,
    pub(crate) creates_at_once: Option<usize>,
    pub(crate) creates_waiting: Option<usize>,
    pub(crate) orphan_grace: Option<Time>,
    pub(crate) restart_grace: Option<Time>,
    pub(crate) keep_ended: Option<Time>,
    pub(crate) default_limits: LimitsConfig,
    pub(crate) max_limits: Option<LimitsConfig>,
}

/// `[sandboxes.default_limits]` and `[sandboxes.max_limits]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsConfig {
    pub(crate) cpu_millis: Option<u32>,
    pub(crate) memory: Option<Bytes>,
    pub(crate) disk: Option<Bytes>,
    pub(crate) pids: Option<u32>,
    pub(crate) wall_time: Option<Time>,
}

impl LimitsConfig {
    /// These limits, with `base` for what is unset.
    pub(crate) fn over(&self, base: &Limits) -> Result<Limits, Invalid> {
        let limits = Limits {
            cpu_millis: self.cpu_millis.unwrap_or(base.cpu_millis),
            memory_bytes: self.memory.map_or(base.memory_bytes, Bytes::get),
            disk_bytes: self.disk.map_or(base.disk_bytes, Bytes::get),
            pids: self.pids.unwrap_or(base.pids),
            wall_time: self.wall_time.map(Time::get).or(base.wall_time),
        };
        limits.validate()?;
        Ok(limits)
    }
}

/// `[host]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HostSection {
    pub(crate) pool_size: Option<Bytes>,
    pub(crate) closed_slots: Option<u32>,
    pub(crate) open_slots: Option<u32>,
    pub(crate) guest: Option<PathBuf>,
    pub(crate) recipes: Option<PathBuf>,
    pub(crate) default_registry: Option<String>,
}

/// `[log]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogConfig {
    pub(crate) format: LogFormat,
    pub(crate) filter: String,
    pub(crate) otlp_endpoint: Option<String>,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::default(), filter: "info".to_owned(), otlp_endpoint: None }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for collectors.
    Json,
}

impl Config {
    /// Reads the file given, or the default one if it is there.
    pub(crate) fn load(given: Option<&Path>) -> Result<Self, ConfigError> {
        let path = given.unwrap_or(Path::new(DEFAULT_PATH));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if given.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let source = Mistake { message: error.message().to_owned() };
            ConfigError::Parse { path: path.to_owned(), line: before.matches('\n').count() + 1, source }
        })
    }

    /// Where everything is kept.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(|| DEFAULT_DATA_DIR.into())
    }

    /// The store's address.
    pub(crate) fn store_url(&self) -> String {
        self.store.url.clone().unwrap_or_else(|| format!("sqlite:{}", self.data_dir().join("belljar.db").display()))
    }

    /// What the service needs of it.
    pub(crate) fn service(&self) -> Result<belljar_core::ServiceConfig, ConfigError> {
        use belljar_core::{ServiceConfig, SharedKernel};
        let base = ServiceConfig::default();
        let own = &self.sandboxes;
        let time = |value: Option<Time>, default| value.map_or(default, Time::get);
        let default_limits = own.default_limits.over(&base.default_limits)?;
        let widest = Limits { cpu_millis: 1_024_000, memory_bytes: 16 << 40, disk_bytes: 64 << 40, pids: 4_000_000, wall_time: None };
        Ok(ServiceConfig {
            shared_kernel: if own.allow_shared_kernel { SharedKernel::Allowed } else { SharedKernel::Refused },
            default_isolation: own.default_isolation.as_deref().map_or(Ok(base.default_isolation), str::parse)?,
            default_template: own.default_template.clone().unwrap_or(base.default_template),
            max_limits: own.max_limits.as_ref().map(|max| max.over(&widest)).transpose()?,
            default_limits,
            default_lease: time(own.default_lease, base.default_lease),
            max_lease: time(own.max_lease, base.max_lease),
            max_sandboxes: own.max_sandboxes.unwrap_or(base.max_sandboxes),
            memory_overcommit_percent: own.memory_overcommit_percent.unwrap_or(base.memory_overcommit_percent),
            memory_reserve_bytes: own.memory_reserve.map_or(base.memory_reserve_bytes, Bytes::get),
            disk_reserve_bytes: own.disk_reserve.map_or(base.disk_reserve_bytes, Bytes::get),
            creates_at_once: own.creates_at_once.unwrap_or(base.creates_at_once),
            creates_waiting: own.creates_waiting.unwrap_or(base.creates_waiting),
            orphan_grace: time(own.orphan_grace, base.orphan_grace),
            restart_grace: time(own.restart_grace, base.restart_grace),
            keep_ended: time(own.keep_ended, base.keep_ended),
            max_artifact_bytes: self.blobs.max_artifact.map_or(base.max_artifact_bytes, Bytes::get),
            max_artifacts: self.blobs.max_artifacts.unwrap_or(base.max_artifacts),
            audit_required: self.audit.required,
            recordings: belljar_ports::KeptTapes {
                age: time(self.audit.keep_recordings, base.recordings.age),
                bytes: self.audit.max_recordings.map_or(base.recordings.bytes, Bytes::get),
            },
            prices: self.prices.clone(),
            policies: self.policies.load(self.network.operator())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_defaults_and_a_typo_is_named() {
        let config: Config = toml::from_str("").unwrap();
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:7070");
        assert_eq!(config.service().unwrap().max_sandboxes, 1000);
        let error = Config::parse("[sandboxes]\nmax_sandboxs = 3", Path::new("a.toml")).unwrap_err();
        let told = belljar_core::chain(&error);
        assert!(told.starts_with("understand line 2 of the configuration a.toml: unknown field `max_sandboxs`"), "{told}");
        assert!(told.contains("`max_sandboxes`") && !told.contains('\n'), "{told}");
    }

    #[test]
    fn sizes_and_times_are_written_as_people_do_and_checked() {
        let text = "[sandboxes]\nmax_lease = \"2h\"\n[sandboxes.default_limits]\nmemory = \"1GiB\"\n[sandboxes.max_limits]\npids = 64";
        let service = toml::from_str::<Config>(text).unwrap().service().unwrap();
        assert_eq!(service.max_lease.as_secs(), 7200);
        assert_eq!(service.default_limits.memory_bytes, 1 << 30);
        assert_eq!(service.max_limits.unwrap().pids, 64);
        let tiny = toml::from_str::<Config>("[sandboxes.default_limits]\nmemory = \"1KiB\"").unwrap();
        assert!(matches!(tiny.service(), Err(ConfigError::Value(invalid)) if invalid.field == "limits.memory_bytes"));
    }

    const PAGE: &str = include_str!("../../../docs/reference/configuration.md");
    const SECTIONS: &[&str] = &[
        "server",
        "store",
        "sandboxes",
        "sandboxes.default_limits",
        "sandboxes.max_limits",
        "host",
        "audit",
        "audit.sinks",
        "network",
        "policies",
        "prices",
        "blobs",
        "webhooks",
        "buckets.NAME",
        "log",
    ];

    /// How a section begins: some are there as often as one likes.
    fn header_of(section: &str) -> String {
        if section == "audit.sinks" { format!("[[{section}]]") } else { format!("[{section}]") }
    }

    /// The keys that a section takes, as the refusal of an unknown one lists them.
    fn keys_of(section: &str) -> Vec<String> {
        let header = if section.is_empty() { String::new() } else { format!("{}\n", header_of(section)) };
        let error = toml::from_str::<Config>(&format!("{header}no_such_key = 1")).unwrap_err();
        let mut keys: Vec<String> = error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect();
        keys.sort();
        keys
    }

    /// The keys that the page has rows for, below a heading.
    fn rows_below(heading: &str) -> Vec<String> {
        let after = PAGE.split_once(&format!("# {heading}\n")).unwrap_or_else(|| panic!("the page has no heading {heading}")).1;
        // What is below it has a heading of its own.
        let section = after.split("\n##").next().unwrap_or_default();
        let mut rows: Vec<String> =
            section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(key, _)| key.to_owned()).collect();
        rows.sort();
        rows
    }

    #[test]
    fn the_page_has_every_key_and_no_other() {
        for section in SECTIONS.iter().copied() {
            let nested = ["default_limits".to_owned(), "max_limits".to_owned(), "sinks".to_owned()];
            let keys: Vec<String> = keys_of(section).into_iter().filter(|key| !nested.contains(key)).collect();
            assert_eq!(rows_below(&format!("`{}`", header_of(section))), keys, "[{section}]");
        }
        let top: Vec<String> =
            keys_of("").into_iter().filter(|key| !SECTIONS.iter().any(|section| section.split('.').next() == Some(key))).collect();
        assert_eq!(rows_below("Top level"), top);
    }

    #[test]
    fn the_examples_of_the_page_are_taken() {
        let examples: Vec<&str> = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(examples.len() >= 3);
        for example in examples {
            let config =
                Config::parse(example, Path::new("configuration.md")).unwrap_or_else(|error| panic!("{}", belljar_core::chain(&error)));
            config.service().unwrap();
        }
    }
}
