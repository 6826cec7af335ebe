//! What the host knows of a sandbox: written before anything is made, removed after everything is gone.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use crate::slot::Slot;
use belljar_types::{ExecutionId, IsolationClass, LayerDigest, Network, SandboxId, SandboxSpec, Secret, hex};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How far a sandbox got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordState {
    /// Its making was begun. If its maker is gone, it is to be removed.
    Making,
    /// It was made whole.
    Running,
    /// It is on disk alone: no process, no cgroup, no slot.
    Paused,
    /// It is being brought back from what was kept of it. If whoever does it is gone, it is paused as before.
    Resuming,
}

/// Whether somebody holds a running sandbox still for a moment. If that one is gone, it is to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stillness {
    /// Nobody does.
    #[default]
    Going,
    /// Its cgroup is frozen.
    Frozen,
    /// Its engine stopped it in its own way.
    Engine,
}

/// Whom an agent takes itself for, and how it can be told otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Identity {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// The run.
    pub execution: ExecutionId,
    /// What both sides of that run know.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    pub token: Secret<[u8; 32]>,
}

/// What a paused sandbox goes on from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Paused {
    /// The name of its capture, a directory of its own; none if its disk is all there is.
    pub capture: Option<String>,
    /// Whom the agent in the memory image takes itself for; none if there is no such image.
    pub identity: Option<Identity>,
    /// Its disk was changed since, or never was its own: it is made anew from the capture first.
    pub fresh_disk: bool,
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
    /// The layer with the agent that it was started with.
    #[serde(default)]
    pub agent: Option<LayerDigest>,
    /// Whether it is held still.
    #[serde(default)]
    pub still: Stillness,
    /// How long its earlier runs took in all.
    #[serde(default)]
    pub ran_before: Duration,
    /// What it goes on from, if it is paused or being resumed.
    #[serde(default)]
    pub paused: Option<Paused>,
}

impl Record {
    /// Puts it into this slot.
    pub(crate) fn on(&mut self, slot: &Slot) {
        self.slot = slot.number;
        self.network = slot.network;
        self.guest_address = slot.guest_address;
        self.gateway_address = slot.gateway_address;
        self.uid_base = slot.uid_base;
    }

    /// Whom its agent takes itself for in this run.
    pub fn identity(&self) -> Identity {
        Identity { sandbox: self.id.clone(), execution: self.execution.clone(), token: self.token.clone() }
    }
}

fn to_hex<S: Serializer>(token: &Secret<[u8; 32]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(token.reveal()))
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
