//! What an operator can decide about the container class.

use std::time::Duration;

/// The container class's settings.
#[derive(Debug, Clone)]
pub struct ContainerConfig {
    /// How long a new sandbox's agent may take to answer.
    pub agent_deadline: Duration,
}

impl Default for ContainerConfig {
    fn default() -> Self {
        Self { agent_deadline: Duration::from_secs(10) }
    }
}
