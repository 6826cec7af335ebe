//! Why the way out could not be opened, for everybody or for one sandbox. What happens to single connections is an [`crate::Event`].

use std::io;

use belljar_policy::PolicyError;
use belljar_types::SandboxId;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The listeners in the gateway could not be made.
    #[error("listen in the gateway for {what}")]
    Listen {
        /// Names or connections.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The gateway's namespace could not be entered.
    #[error("open the gateway's network namespace")]
    Gateway(#[source] io::Error),
    /// The namespace from which the outside is reached could not be entered.
    #[error("open the network namespace of the uplink")]
    Uplink(#[source] io::Error),
    /// The certificates that hosts are recognised by cannot be used.
    #[error("use the certificates that hosts are recognised by")]
    Roots(#[source] tokio_rustls::rustls::Error),
    /// The sandbox's own certificate authority could not be made.
    #[error("make a certificate authority for sandbox {id}")]
    Authority {
        /// Whose.
        id: SandboxId,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The policy cannot be used.
    #[error("use the policy of sandbox {id}")]
    Policy {
        /// Whose.
        id: SandboxId,
        /// Why not.
        #[source]
        source: PolicyError,
    },
    /// It is not known where the sandbox is.
    #[error("find the address of sandbox {id}")]
    Address {
        /// Whose.
        id: SandboxId,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
