//! Ports of programs in a sandbox: which there are, and permission for others to reach one.

use belljar_types::SandboxId;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::Client;
use crate::error::ClientError;

/// A port that a program inside listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The port.
    pub port: u16,
    /// The address it is bound to.
    pub address: String,
    /// Who listens, where it can be told.
    pub pid: Option<u32>,
}

/// Permission to reach one port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortToken {
    /// To be sent as `X-Belljar-Token`, or once as `?belljar_token=`.
    pub token: String,
    /// Until when, RFC 3339.
    pub expires_at: String,
    /// The port's own host name, if the server has a domain.
    pub host: Option<String>,
}

#[derive(Deserialize)]
struct PortList {
    ports: Vec<Port>,
}

impl Client {
    /// Ports that programs inside listen on.
    pub async fn ports(&self, sandbox: &SandboxId) -> Result<Vec<Port>, ClientError> {
        let list: PortList = self.ask(Method::GET, ["v1", "sandboxes", sandbox.as_str(), "ports"]).fetch().await?;
        Ok(list.ports)
    }

    /// A token by which somebody without a key reaches one port for a while.
    pub async fn port_token(&self, sandbox: &SandboxId, port: u16, seconds: u64) -> Result<PortToken, ClientError> {
        let path = ["v1", "sandboxes", sandbox.as_str(), "ports", &port.to_string(), "token"];
        self.ask(Method::POST, path).json(&json!({ "expires_in_seconds": seconds })).fetch().await
    }
}
