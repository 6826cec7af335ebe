//! Bodies of the verbs about the sandbox as a whole.

use std::collections::BTreeMap;
use std::net::IpAddr;

use belljar_types::{GuestMetrics, Invalid, ListeningPort};
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

/// Who the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// The sandbox.
    #[n(0)]
    pub sandbox: String,
    /// The run.
    #[n(1)]
    pub execution: String,
    /// The agent's version.
    #[n(2)]
    pub agent_version: String,
}

/// A new identity after a restore or a fork.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct Renew {
    /// The sandbox it is from now on.
    #[n(0)]
    pub sandbox: String,
    /// The run it is from now on.
    #[n(1)]
    pub execution: String,
    /// The secret from now on.
    #[n(2)]
    pub token: ByteArray<32>,
    /// The wall clock, nanoseconds since 1970; set where the kernel lets the agent.
    #[n(3)]
    pub wall_clock_nanos: Option<u64>,
    /// The host name from now on.
    #[n(4)]
    pub hostname: Option<String>,
    /// The gateway's address from now on.
    #[n(5)]
    pub gateway: Option<ByteArray<4>>,
    /// Leave alone what programs write until the next connection: memory is about to be written down.
    #[n(6)]
    pub quiet: Option<bool>,
    /// The environment of processes that are started from now on, in place of the one before.
    #[n(7)]
    pub env: Option<BTreeMap<String, String>>,
}

impl std::fmt::Debug for Renew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renew").field("sandbox", &self.sandbox).field("execution", &self.execution).finish_non_exhaustive()
    }
}

/// A port to connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Connect {
    /// The port.
    #[n(0)]
    pub port: u16,
}

/// A port that is listened on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PortBody {
    /// 4 or 16 bytes.
    #[n(0)]
    pub address: ByteVec,
    /// The port.
    #[n(1)]
    pub port: u16,
    /// Who listens.
    #[n(2)]
    pub pid: Option<u32>,
}

impl From<&ListeningPort> for PortBody {
    fn from(port: &ListeningPort) -> Self {
        let address = match port.address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        Self { address: address.into(), port: port.port, pid: port.pid }
    }
}

impl TryFrom<PortBody> for ListeningPort {
    type Error = Invalid;
    fn try_from(body: PortBody) -> Result<Self, Invalid> {
        let address = if let Ok(v4) = <[u8; 4]>::try_from(&body.address[..]) {
            IpAddr::from(v4)
        } else if let Ok(v6) = <[u8; 16]>::try_from(&body.address[..]) {
            IpAddr::from(v6)
        } else {
            return Err(Invalid::new("address", "4 or 16 bytes", &body.address[..]));
        };
        Ok(Self { address, port: body.port, pid: body.pid })
    }
}

/// What the agent measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct MetricsBody {
    #[n(0)]
    cpus: u32,
    #[n(1)]
    cpu_micros: u64,
    #[n(2)]
    memory_total_bytes: u64,
    #[n(3)]
    memory_used_bytes: u64,
    #[n(4)]
    disk_total_bytes: u64,
    #[n(5)]
    disk_used_bytes: u64,
    #[n(6)]
    processes: u32,
}

impl From<GuestMetrics> for MetricsBody {
    fn from(m: GuestMetrics) -> Self {
        Self {
            cpus: m.cpus,
            cpu_micros: m.cpu_micros,
            memory_total_bytes: m.memory_total_bytes,
            memory_used_bytes: m.memory_used_bytes,
            disk_total_bytes: m.disk_total_bytes,
            disk_used_bytes: m.disk_used_bytes,
            processes: m.processes,
        }
    }
}

impl From<MetricsBody> for GuestMetrics {
    fn from(m: MetricsBody) -> Self {
        Self {
            cpus: m.cpus,
            cpu_micros: m.cpu_micros,
            memory_total_bytes: m.memory_total_bytes,
            memory_used_bytes: m.memory_used_bytes,
            disk_total_bytes: m.disk_total_bytes,
            disk_used_bytes: m.disk_used_bytes,
            processes: m.processes,
        }
    }
}
