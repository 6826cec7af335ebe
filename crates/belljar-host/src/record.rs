//! What the host knows of a sandbox: written before anything is made, removed after everything is gone.

use std::net::Ipv4Addr;
use std::time::SystemTime;

use belljar_types::{ExecutionId, IsolationClass, Network, SandboxId, SandboxSpec, Secret};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How far a sandbox got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordState {
    /// Its making was begun. If its maker is gone, it is to be removed.
    Making,
    /// It was made whole.
    Running,
}

/// One sandbox, as found again after a crash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Its name for life.
    pub id: SandboxId,
    /// Its current run.
    pub execution: ExecutionId,
    /// What isolates it.
    pub class: IsolationClass,
    /// What it was made from.
    pub spec: SandboxSpec,
    /// What the host and the agent of this run prove to each other that they know.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    pub token: Secret<[u8; 32]>,
    /// Its network slot.
    pub slot: u32,
    /// Whether the slot is open or closed.
    pub network: Network,
    /// Its own address.
    pub guest_address: Ipv4Addr,
    /// The only address that may talk to its agent.
    pub gateway_address: Ipv4Addr,
    /// First of its host user ids.
    pub uid_base: u32,
    /// How far it got.
    pub state: RecordState,
    /// When its making began.
    pub started_at: SystemTime,
    /// What its engine wants to find again.
    #[serde(default)]
    pub engine: serde_json::Value,
}

fn to_hex<S: Serializer>(token: &Secret<[u8; 32]>, serializer: S) -> Result<S::Ok, S::Error> {
    let text: String = token.reveal().iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&text)
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret<[u8; 32]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let mut token = [0u8; 32];
    // The text itself stays out of the error: it may be most of a secret.
    let malformed = || de::Error::custom("a token is 64 hexadecimal digits");
    if text.len() != 64 || !text.is_ascii() {
        return Err(malformed());
    }
    for (byte, pair) in token.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| malformed())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| malformed())?;
    }
    Ok(Secret::new(token))
}
