//! [`Egress`]: who lets sandboxes out.
//!
//! A sandbox that is not attached has no way out, whatever its slot: so everything may fail, end or be restarted at any moment, and nothing gets out.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_types::{ProjectId, Sandbox, SandboxId, Traffic};
use tokio::sync::mpsc;

/// What an egress can hold beside names, addresses and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EgressAbilities {
    /// It reads requests inside TLS.
    pub inspection: bool,
    /// It adds secrets to requests.
    pub secrets: bool,
}

/// Why a sandbox was not let out.
#[derive(Debug, thiserror::Error)]
#[error("{operation} for sandbox {id}")]
pub struct EgressError {
    /// What was being attempted.
    pub operation: &'static str,
    /// For whom.
    pub id: SandboxId,
    /// What went wrong.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// What kind of thing happened at the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EgressEventKind {
    /// A connection was allowed.
    Allowed,
    /// A connection was refused.
    Denied,
    /// A request on a connection was allowed.
    RequestAllowed,
    /// A request on a connection was refused.
    RequestDenied,
    /// A question for a name was refused.
    NameDenied,
    /// Too many different names were asked for.
    TooManyNames,
    /// A connection was allowed, and could not be made.
    Unreachable,
    /// A connection was cut: its policy changed, or its limit was reached.
    Cut,
    /// A secret was added to a request.
    SecretUsed,
}

/// One thing that happened at the boundary, for whoever keeps a record of it: every verdict with the rule that decided, never a byte of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressEvent {
    /// Whose sandbox.
    pub project: ProjectId,
    /// To whom.
    pub sandbox: SandboxId,
    /// What.
    pub kind: EgressEventKind,
    /// Where to: a name or an address, safe to print.
    pub destination: String,
    /// Which port.
    pub port: u16,
    /// The rule that decided; of a secret, its name.
    pub rule: String,
    /// Why, for people; safe to print.
    pub reason: String,
}

/// What a sandbox has to be given for its way out to work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    /// A certificate, as PEM, that programs inside have to trust: whoever reads their TLS signs with it.
    pub certificate: Option<String>,
}

/// Who counts what one sandbox sends and receives, and says how much of it may still go.
pub trait Toll: std::fmt::Debug + Send + Sync {
    /// Counts bytes that are about to leave: all of them, or as many as no budget forbids. Says how many; the rest must not go.
    fn leaving(&self, bytes: u64) -> u64;

    /// The same for bytes that are about to come in.
    fn entering(&self, bytes: u64) -> u64;
}

/// The way out of all sandboxes of a host.
#[async_trait]
pub trait Egress: Send + Sync {
    /// What it can hold.
    fn abilities(&self) -> EgressAbilities;

    /// Lets a running sandbox out as its policy says, and asks `toll` for every byte; whatever it had before is cut.
    async fn attach(&self, sandbox: &Sandbox, toll: Arc<dyn Toll>) -> Result<Attached, EgressError>;

    /// Holds an attached sandbox to its policy as it is now. Connections that it does not allow are cut within a second.
    async fn change(&self, sandbox: &Sandbox) -> Result<Attached, EgressError>;

    /// Ends everything of a sandbox at the boundary. Does nothing if there is nothing.
    fn detach(&self, id: &SandboxId);

    /// What an attached sandbox used since it was attached.
    fn traffic(&self, id: &SandboxId) -> Option<Traffic>;

    /// What happens there, for the one who asks first. Whoever reads too slowly loses events, never packets.
    fn events(&self) -> Option<mpsc::Receiver<EgressEvent>>;
}
