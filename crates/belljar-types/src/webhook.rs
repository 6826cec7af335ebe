//! Who is told what happens to a project's sandboxes, and what they are told.

use std::fmt;
use std::str::FromStr;

use crate::{Invalid, ProjectId, SandboxId, Timestamp, WebhookId};

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// A sandbox runs for the first time.
    SandboxCreated,
    /// It stands still.
    SandboxPaused,
    /// It goes on.
    SandboxResumed,
    /// It is gone.
    SandboxEnded,
    /// A soft limit was reached.
    BudgetWarning,
    /// A hard limit was reached: the sandbox is about to be stopped.
    BudgetReached,
}

impl MessageKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::SandboxCreated, Self::SandboxPaused, Self::SandboxResumed, Self::SandboxEnded, Self::BudgetWarning, Self::BudgetReached];

    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SandboxCreated => "sandbox.created",
            Self::SandboxPaused => "sandbox.paused",
            Self::SandboxResumed => "sandbox.resumed",
            Self::SandboxEnded => "sandbox.ended",
            Self::BudgetWarning => "budget.warning",
            Self::BudgetReached => "budget.reached",
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MessageKind {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let words = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| Invalid::new("kinds", words(), text))
    }
}

/// An address that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name.
    pub id: WebhookId,
    /// Whose sandboxes it is about.
    pub project: ProjectId,
    /// Where messages go.
    pub url: String,
    /// What it is told of; everything when empty.
    pub kinds: Vec<MessageKind>,
    /// Since when.
    pub created_at: Timestamp,
    /// When a message last arrived.
    pub delivered_at: Option<Timestamp>,
    /// What went wrong the last time, if it did; safe to print.
    pub problem: Option<String>,
    /// How many messages wait.
    pub waiting: u64,
}

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same for every attempt and every receiver, so that one who gets it twice can tell.
    pub id: String,
    /// What it is about.
    pub kind: MessageKind,
    /// Whose webhooks.
    pub project: ProjectId,
    /// Of which sandbox: what is told of one is told in order.
    pub sandbox: SandboxId,
    /// When it happened.
    pub at: Timestamp,
    /// As it is sent.
    pub body: String,
}

/// A message on its way to one receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// To whom.
    pub webhook: WebhookId,
    /// Where that is.
    pub url: String,
    /// Of which sandbox.
    pub sandbox: SandboxId,
    /// Its place in the order.
    pub number: u64,
    /// The message's id.
    pub message: String,
    /// What is sent.
    pub body: String,
    /// Since when it waits.
    pub entered_at: Timestamp,
    /// How often it was tried.
    pub attempts: u64,
}
