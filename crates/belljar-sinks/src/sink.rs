//! What a sink is: a name by which its mark is found again, and a way to it.

use std::path::PathBuf;
use std::time::Duration;

use belljar_audit::to_ocsf;
use belljar_ports::AuditError;
use belljar_types::{AuditRecord, ProjectId};
use belljar_webhook::SharedSecret;

use crate::{file, hook, otlp};

/// Whoever takes longer is asked again later.
const PATIENCE: Duration = Duration::from_secs(30);

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As they stand in the log.
    #[default]
    Jsonl,
    /// In the words of the Open Cybersecurity Schema Framework.
    Ocsf,
}

/// How events get to a sink.
#[derive(Debug, Clone)]
pub enum Way {
    /// Appended to a file, one line each.
    File {
        /// Which.
        path: PathBuf,
    },
    /// Posted, signed as webhooks are.
    Webhook {
        /// Where to.
        url: String,
        /// What with.
        secret: SharedSecret,
    },
    /// Posted to a collector as OpenTelemetry log records.
    Otlp {
        /// Where to; a collector's path ends in `/v1/logs`.
        url: String,
    },
}

/// Where the audit log is carried to.
#[derive(Debug, Clone)]
pub struct Sink {
    /// What its mark is found by.
    pub name: String,
    /// How events are written.
    pub format: Format,
    /// How they get there.
    pub way: Way,
}

/// Why events were not taken. They are carried again.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The log could not be read.
    #[error("read the audit log")]
    Log(#[from] AuditError),
    /// A file did not take them.
    #[error("write {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the disk said.
        #[source]
        source: std::io::Error,
    },
    /// Nobody answered.
    #[error("post to the sink")]
    Post(#[source] reqwest::Error),
    /// Somebody answered something else than yes.
    #[error("the sink answered {status}")]
    Answered {
        /// What.
        status: u16,
    },
    /// How far it came could not be kept.
    #[error("keep the mark {path}")]
    Mark {
        /// Where.
        path: PathBuf,
        /// What the disk said.
        #[source]
        source: std::io::Error,
    },
    /// Whoever worked for it died.
    #[error("the work was given up")]
    GivenUp,
}

/// Events of one project, each with its line in the log.
pub(crate) struct Batch<'a> {
    pub(crate) project: &'a ProjectId,
    pub(crate) records: &'a [(AuditRecord, String)],
}

impl Batch<'_> {
    /// One line each, without its end.
    pub(crate) fn lines(&self, format: Format) -> Vec<String> {
        let line = |(record, line): &(AuditRecord, String)| match format {
            Format::Jsonl => line.trim_end().to_owned(),
            Format::Ocsf => to_ocsf(record).to_string(),
        };
        self.records.iter().map(line).collect()
    }
}

impl Sink {
    /// Carries events there. `Ok` means that they were taken.
    pub(crate) async fn carry(&self, http: &reqwest::Client, batch: &Batch<'_>) -> Result<(), SinkError> {
        match &self.way {
            Way::File { path } => {
                let (path, lines) = (path.clone(), batch.lines(self.format));
                tokio::task::spawn_blocking(move || file::append(&path, &lines)).await.map_err(|_died| SinkError::GivenUp)?
            }
            Way::Webhook { url, secret } => hook::post(http, url, secret, batch, self.format).await,
            Way::Otlp { url } => otlp::post(http, url, batch, self.format).await,
        }
    }
}

/// What all posts go through.
pub(crate) fn client() -> Result<reqwest::Client, reqwest::Error> {
    belljar_webhook::use_tls();
    reqwest::Client::builder()
        .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .timeout(PATIENCE)
        .build()
}

/// Posts, and looks at nothing of the answer but its status.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> Result<(), SinkError> {
    let status = request.send().await.map_err(SinkError::Post)?.status();
    if status.is_success() { Ok(()) } else { Err(SinkError::Answered { status: status.as_u16() }) }
}
