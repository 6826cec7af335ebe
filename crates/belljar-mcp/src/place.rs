//! Where an agent works, and whose sandbox is whose.

use std::time::Duration;

use belljar_client::{CreateSandbox, HELD, SandboxView};
use belljar_types::{Invalid, SandboxId, escape_untrusted};

/// What a sandbox is made from if nobody said otherwise and the server has it: the one in which code keeps its state.
pub(crate) const PREFERRED_TEMPLATE: &str = "code-interpreter-v1";
/// A sandbox's metadata: who made it, which computer it is, and of which computer it is a fork.
const MADE_BY: (&str, &str) = ("made-by", "belljar mcp");
pub(crate) const COMPUTER: &str = "mcp";
pub(crate) const FORK_OF: &str = "mcp-fork-of";
const LONGEST_NAME: usize = 64;

/// Where the agent is to work.
#[derive(Debug, Clone)]
pub enum Place {
    /// In a sandbox that is there and stays.
    Given(SandboxId),
    /// In one that is made when it is first needed, and ended with the connection.
    Made(Box<CreateSandbox>),
    /// In the computer of that name, which is made when it is first needed and outlives whoever asked for it.
    Named(ComputerName, Computers),
}

/// What computers with a name are made as.
#[derive(Debug, Clone)]
pub struct Computers {
    /// As what. What happens when nobody uses them any more is in it, too.
    pub like: Box<CreateSandbox>,
    /// How long each stays although nobody uses it.
    pub idle: Duration,
}

/// What a computer is called; the same name is the same computer, within a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputerName(String);

impl ComputerName {
    /// The one that is meant if none is named.
    pub fn main() -> Self {
        Self("main".to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for ComputerName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(is_plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new("computer", "1 to 64 of A-Z, a-z, 0-9, '-', '_' and '.'", escape_untrusted(text.as_bytes())))
    }
}

impl Place {
    /// How long a sandbox of this place lives without whoever uses it.
    pub(crate) fn lease(&self) -> Duration {
        match self {
            Self::Given(_) | Self::Made(_) => HELD,
            Self::Named(_, computers) => computers.idle,
        }
    }

    /// The lease to make one with: being made may take longer than nobody's using it is borne.
    pub(crate) fn first_lease(&self) -> Duration {
        self.lease().max(HELD)
    }

    /// What a sandbox that is made here is to be.
    pub(crate) fn like(&self) -> Option<CreateSandbox> {
        let mut request = match self {
            Self::Given(_) => return None,
            Self::Made(like) | Self::Named(_, Computers { like, .. }) => (**like).clone(),
        };
        request.lease_seconds = Some(self.first_lease().as_secs());
        request.metadata.extend(self.mark(COMPUTER));
        Some(request)
    }

    /// The metadata of what is made here.
    pub(crate) fn mark(&self, kinship: &str) -> Vec<(String, String)> {
        let made_by = (MADE_BY.0.to_owned(), MADE_BY.1.to_owned());
        match self {
            Self::Named(name, _) => vec![made_by, (kinship.to_owned(), name.as_str().to_owned())],
            Self::Given(_) | Self::Made(_) => vec![made_by],
        }
    }

    /// Whether a sandbox is this computer, or a fork of it.
    pub(crate) fn has(&self, sandbox: &SandboxView) -> bool {
        let Self::Named(name, _) = self else { return false };
        [COMPUTER, FORK_OF].iter().any(|kinship| sandbox.metadata.get(*kinship).is_some_and(|of| of == name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computers_name_is_short_and_plain() {
        for good in ["main", "a", "conversation-17_b.2", &"x".repeat(64)] {
            assert_eq!(good.parse::<ComputerName>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a/b", "a:b", "é", "a\u{1b}", &"x".repeat(65)] {
            let error = bad.parse::<ComputerName>().unwrap_err();
            assert!(error.to_string().contains("computer") && !error.to_string().contains('\u{1b}'), "{bad:?}: {error}");
        }
    }
}
