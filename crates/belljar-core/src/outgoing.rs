//! What may go out of a sandbox, as vendors' clients say it: everything, or by rules. Whether that needs the proxy is decided here, once for all of them.

use std::sync::Arc;

use belljar_policy::{Network as Rules, Policy, Stance};
use belljar_types::{Network, Sandbox};

use crate::{Caller, CoreError, SandboxChange, Service};

/// What may go out.
#[derive(Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// All that the server lets anybody reach.
    Everything,
    /// What this says.
    Ruled(Box<Policy>),
}

impl Outgoing {
    /// A policy with these rules about the network, and no others.
    pub fn policy_of(rules: Rules) -> Policy {
        Policy { network: Some(rules), ..Policy::blank() }
    }

    /// What a policy says, known for what it is if it says nothing.
    pub fn by(policy: Policy) -> Self {
        let nothing_said = Self::policy_of(Rules { default: Stance::Allow, ..Rules::default() });
        if policy == nothing_said { Self::Everything } else { Self::Ruled(Box::new(policy)) }
    }

    /// Whether it is all or nothing, which needs no proxy: `Some(true)` for all.
    pub fn plain(&self) -> Option<bool> {
        match self {
            Self::Everything => Some(true),
            Self::Ruled(policy) if **policy == Self::policy_of(Rules::default()) => Some(false),
            Self::Ruled(_) => None,
        }
    }

    /// The slot and the policy of a sandbox of which this is true; nothing if that cannot be held. `filters`: whether the server has a proxy to hold
    /// rules with.
    pub fn slot(self, filters: bool) -> Option<(Network, Option<Policy>)> {
        match (filters, self.plain(), self) {
            (true, _, Self::Everything) => Some((Network::Filtered, None)),
            (true, _, Self::Ruled(policy)) => Some((Network::Filtered, Some(*policy))),
            (false, Some(true), _) => Some((Network::Open, None)),
            (false, Some(false), _) => Some((Network::None, None)),
            (false, None, _) => None,
        }
    }
}

impl Service {
    /// Replaces all rules about what goes out of a sandbox; connections that are not allowed any more are cut. Nothing is answered, and nothing
    /// changed, if the sandbox was made without the proxy and this would need it.
    pub async fn set_outgoing(
        self: &Arc<Self>,
        caller: &Caller,
        sandbox: &Arc<Sandbox>,
        wanted: Outgoing,
    ) -> Result<Option<Arc<Sandbox>>, CoreError> {
        if sandbox.spec.network != Network::Filtered {
            let is_so = wanted.plain().is_some_and(|open| open == (sandbox.spec.network == Network::Open));
            return Ok(is_so.then(|| Arc::clone(sandbox)));
        }
        let policy = match wanted {
            Outgoing::Everything => self.widest(sandbox)?,
            Outgoing::Ruled(policy) => *policy,
        };
        let change = SandboxChange { policy: Some(Box::new(policy)), ..SandboxChange::default() };
        self.update(caller, &sandbox.id, change).await.map(Some)
    }
}
