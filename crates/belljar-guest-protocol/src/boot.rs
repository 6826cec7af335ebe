//! What the host tells a new agent before anything can be asked of it: who it is, its token, and defaults for processes.
//!
//! Written by the engine into the sandbox's root as `/.belljar/boot` (mode 0600), read and removed by the agent before it listens.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use belljar_types::{ExecutionId, Invalid, PrivilegePolicy, SandboxId, Secret, UserName};
use minicbor::bytes::ByteArray;

use crate::{Malformed, decode, encode};

/// The agent's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootConfig {
    /// The sandbox it is in.
    pub sandbox: SandboxId,
    /// The run it is part of.
    pub execution: ExecutionId,
    /// The secret both sides prove to know.
    pub token: Secret<[u8; 32]>,
    /// The only address it accepts connections from.
    pub gateway: Ipv4Addr,
    /// Environment of every process.
    pub env: BTreeMap<String, String>,
    /// Who runs processes when the caller does not say; `user` when unset.
    pub default_user: Option<UserName>,
    /// Where they start; the user's home when unset.
    pub workdir: Option<String>,
    /// Who may become root.
    pub privilege: PrivilegePolicy,
    /// The sandbox's host name; left as it is when unset.
    pub hostname: Option<String>,
}

/// Why a boot configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// It is not one.
    #[error("read the boot configuration")]
    Malformed(#[from] Malformed),
    /// A field has a bad value.
    #[error("check the boot configuration")]
    Invalid(#[from] Invalid),
}

#[derive(minicbor::Encode, minicbor::Decode)]
struct Wire {
    #[n(0)]
    sandbox: String,
    #[n(1)]
    execution: String,
    #[n(2)]
    token: ByteArray<32>,
    #[n(3)]
    gateway: ByteArray<4>,
    #[n(4)]
    env: BTreeMap<String, String>,
    #[n(5)]
    default_user: Option<String>,
    #[n(6)]
    workdir: Option<String>,
    #[n(7)]
    user_only: bool,
    #[n(8)]
    hostname: Option<String>,
}

impl BootConfig {
    /// The bytes of `/.belljar/boot`.
    pub fn encode(&self) -> Vec<u8> {
        encode(&Wire {
            sandbox: self.sandbox.to_string(),
            execution: self.execution.to_string(),
            token: ByteArray::from(*self.token.reveal()),
            gateway: ByteArray::from(self.gateway.octets()),
            env: self.env.clone(),
            default_user: self.default_user.as_ref().map(UserName::to_string),
            workdir: self.workdir.clone(),
            user_only: self.privilege == PrivilegePolicy::UserOnly,
            hostname: self.hostname.clone(),
        })
    }

    /// Reads what [`BootConfig::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, BootError> {
        let wire: Wire = decode(bytes)?;
        Ok(Self {
            sandbox: wire.sandbox.parse()?,
            execution: wire.execution.parse()?,
            token: Secret::new(wire.token.into()),
            gateway: <[u8; 4]>::from(wire.gateway).into(),
            env: wire.env,
            default_user: wire.default_user.map(|name| name.parse()).transpose()?,
            workdir: wire.workdir,
            privilege: if wire.user_only { PrivilegePolicy::UserOnly } else { PrivilegePolicy::RootAllowed },
            hostname: wire.hostname,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_writes_the_agent_reads() {
        let config = BootConfig {
            sandbox: SandboxId::random(),
            execution: ExecutionId::random(),
            token: Secret::new([7; 32]),
            gateway: Ipv4Addr::new(100, 64, 0, 1),
            env: BTreeMap::from([("LANG".into(), "C.UTF-8".into())]),
            default_user: Some("user".parse().unwrap()),
            workdir: Some("/srv".into()),
            privilege: PrivilegePolicy::UserOnly,
            hostname: None,
        };
        assert_eq!(BootConfig::decode(&config.encode()).unwrap(), config);
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(BootConfig::decode(b"").is_err());
        assert!(BootConfig::decode(&[0xff; 64]).is_err());
    }
}
