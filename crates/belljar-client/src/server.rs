//! The server itself: what it is, who asks, what it counts.

use bytes::Bytes;
use futures_util::Stream;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::error::ClientError;
use crate::sandboxes::LimitsOf;

/// Whoever asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The key's public name.
    pub key: String,
    /// For whom it acts.
    pub project: String,
    /// What it may do.
    pub scopes: Vec<String>,
}

/// An engine of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOf {
    /// Its class.
    pub isolation: String,
    /// Program and version.
    pub version: String,
    /// Whether it works there.
    pub works: bool,
}

/// The server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its version.
    pub version: String,
    /// What it can isolate with.
    pub engines: Vec<EngineOf>,
    /// The template that is used when none is named.
    pub default_template: String,
    /// Limits of a sandbox that asks for none.
    pub default_limits: LimitsOf,
    /// How long a sandbox lives that does not say.
    pub default_lease_seconds: u64,
    /// The longest lease.
    pub max_lease_seconds: u64,
    /// Below it, `{port}-{id}` is a port of a sandbox.
    pub domain: Option<String>,
}

impl Client {
    /// Who the key is.
    pub async fn who_am_i(&self) -> Result<Who, ClientError> {
        self.ask(Method::GET, ["v1", "whoami"]).fetch().await
    }

    /// What the server is.
    pub async fn server(&self) -> Result<Server, ClientError> {
        self.ask(Method::GET, ["v1", "server"]).fetch().await
    }

    /// The server's counters, in Prometheus' text form.
    pub async fn server_metrics(&self) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static, ClientError> {
        Ok(self.ask(Method::GET, ["metrics"]).send().await?.pieces())
    }
}
