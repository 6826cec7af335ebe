//! `[audit]`: how much depends on the record of what happens, and where else it goes.

use std::path::{Path, PathBuf};

use belljar_sinks::{Format, Sink, Way};
use belljar_types::Invalid;
use belljar_webhook::SharedSecret;
use serde::Deserialize;

use super::quantity::{Bytes, Time};

/// `[audit]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuditSection {
    /// Whether what cannot be recorded is not done.
    pub(crate) required: bool,
    /// Whether what terminals show is kept.
    pub(crate) record_terminals: bool,
    /// How long that is.
    pub(crate) keep_recordings: Option<Time>,
    /// How much of it there is at most.
    pub(crate) max_recordings: Option<Bytes>,
    /// Where the log is carried to.
    sinks: Vec<SinkSection>,
}

impl Default for AuditSection {
    fn default() -> Self {
        Self { required: true, record_terminals: false, keep_recordings: None, max_recordings: None, sinks: Vec::new() }
    }
}

/// `[[audit.sinks]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SinkSection {
    name: String,
    kind: SinkKind,
    #[serde(default)]
    format: SinkFormat,
    path: Option<PathBuf>,
    url: Option<String>,
    secret_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SinkKind {
    File,
    Webhook,
    Otlp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SinkFormat {
    #[default]
    Jsonl,
    Ocsf,
}

impl AuditSection {
    /// The sinks, with their secrets read.
    pub(crate) fn sinks(&self) -> Result<Vec<Sink>, Invalid> {
        let mut sinks: Vec<Sink> = Vec::new();
        for section in &self.sinks {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if section.name.is_empty() || section.name.len() > 63 || !section.name.bytes().all(is_name) {
                return Err(Invalid::new("audit.sinks.name", "1 to 63 of A-Z, a-z, 0-9, '-' and '_'", &section.name));
            }
            if sinks.iter().any(|known| known.name == section.name) {
                return Err(Invalid::new("audit.sinks.name", "a name that no other sink has", &section.name));
            }
            sinks.push(section.sink()?);
        }
        Ok(sinks)
    }
}

impl SinkSection {
    fn sink(&self) -> Result<Sink, Invalid> {
        let way = match self.kind {
            SinkKind::File => Way::File { path: self.take("path", self.path.as_deref())?.to_owned() },
            SinkKind::Webhook => {
                Way::Webhook { url: self.url()?, secret: read_secret(self.take("secret_file", self.secret_file.as_deref())?)? }
            }
            SinkKind::Otlp => Way::Otlp { url: self.url()? },
        };
        let needless = match self.kind {
            SinkKind::File => self.url.is_some() || self.secret_file.is_some(),
            SinkKind::Webhook => self.path.is_some(),
            SinkKind::Otlp => self.path.is_some() || self.secret_file.is_some(),
        };
        if needless {
            let expected = "only what its kind has: path for file, url and secret_file for webhook, url for otlp";
            return Err(Invalid::new("audit.sinks", expected, &self.name));
        }
        let format = match self.format {
            SinkFormat::Jsonl => Format::Jsonl,
            SinkFormat::Ocsf => Format::Ocsf,
        };
        Ok(Sink { name: self.name.clone(), format, way })
    }

    fn take<T>(&self, key: &'static str, value: Option<T>) -> Result<T, Invalid> {
        value.ok_or_else(|| Invalid::new(format!("audit.sinks.{key}"), "something: this kind of sink needs it", &self.name))
    }

    fn url(&self) -> Result<String, Invalid> {
        let url = self.take("url", self.url.clone())?;
        if url.starts_with("https://") || url.starts_with("http://") {
            Ok(url)
        } else {
            Err(Invalid::new("audit.sinks.url", "an address that begins with https:// or http://", url))
        }
    }
}

fn read_secret(path: &Path) -> Result<SharedSecret, Invalid> {
    let expected = "a file with whsec_ and at least 24 random bytes in Base64";
    let refused = |found: String| Invalid::new("audit.sinks.secret_file", expected, found);
    let text = std::fs::read_to_string(path).map_err(|error| refused(format!("{}: {error}", path.display())))?;
    SharedSecret::parse(&text).ok_or_else(|| refused(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sinks(text: &str) -> Result<Vec<Sink>, Invalid> {
        toml::from_str::<AuditSection>(text).unwrap().sinks()
    }

    #[test]
    fn a_sink_has_what_its_kind_needs_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let secret = directory.path().join("secret");
        std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let hook = format!("[[sinks]]\nname = 'h'\nkind = 'webhook'\nurl = 'https://example.com/'\nsecret_file = '{}'", secret.display());
        assert_eq!(sinks(&hook).unwrap().len(), 1);
        assert_eq!(sinks("[[sinks]]\nname = 'f'\nkind = 'file'\npath = '/var/log/a'\nformat = 'ocsf'").unwrap()[0].format, Format::Ocsf);
        for (text, field) in [
            ("[[sinks]]\nname = 'f'\nkind = 'file'", "audit.sinks.path"),
            ("[[sinks]]\nname = '../f'\nkind = 'file'\npath = '/a'", "audit.sinks.name"),
            ("[[sinks]]\nname = 'o'\nkind = 'otlp'\nurl = 'collector:4318'", "audit.sinks.url"),
            ("[[sinks]]\nname = 'o'\nkind = 'otlp'\nurl = 'http://a/'\npath = '/a'", "audit.sinks"),
            ("[[sinks]]\nname = 'h'\nkind = 'webhook'\nurl = 'http://a/'\nsecret_file = '/dev/null'", "audit.sinks.secret_file"),
            ("[[sinks]]\nname = 'f'\nkind = 'file'\npath = '/a'\n[[sinks]]\nname = 'f'\nkind = 'file'\npath = '/b'", "audit.sinks.name"),
        ] {
            assert_eq!(sinks(text).unwrap_err().field, field, "{text}");
        }
    }
}
