//! What the operator decides about sandboxes as a whole.

use std::time::Duration;

use belljar_ports::KeptTapes;
use belljar_types::{IsolationRequest, Limits, Prices, TemplateName};

use crate::{Policies, SharedKernel};

/// The service's settings.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// Whether sandboxes may share the host's kernel.
    pub shared_kernel: SharedKernel,
    /// What isolates a sandbox when the caller does not say.
    pub default_isolation: IsolationRequest,
    /// What a sandbox is made from when the caller does not say.
    pub default_template: TemplateName,
    /// What a sandbox may use when the caller does not say.
    pub default_limits: Limits,
    /// The most a caller may ask for, per sandbox; whatever the engine takes when unset.
    pub max_limits: Option<Limits>,
    /// How long a sandbox lives when the caller does not say.
    pub default_lease: Duration,
    /// The longest lease, counted from the moment it is set.
    pub max_lease: Duration,
    /// Most sandboxes at one time.
    pub max_sandboxes: u32,
    /// Sum of all memory limits, in percent of the host's memory: most sandboxes use a small part of what they may.
    pub memory_overcommit_percent: u32,
    /// Memory that is never given to a new sandbox.
    pub memory_reserve_bytes: u64,
    /// Disk that is never given to a new sandbox.
    pub disk_reserve_bytes: u64,
    /// Most sandboxes being made at one time.
    pub creates_at_once: usize,
    /// Most requests waiting for their turn to be made; beyond it the answer is "busy".
    pub creates_waiting: usize,
    /// How long something on the host that the store knows nothing of is left alone.
    pub orphan_grace: Duration,
    /// What a sandbox whose lease ran out while the server was away still gets.
    pub restart_grace: Duration,
    /// Most bytes of one artifact.
    pub max_artifact_bytes: u64,
    /// Most artifacts of one sandbox.
    pub max_artifacts: u64,
    /// How long ended sandboxes are remembered.
    pub keep_ended: Duration,
    /// Whether what cannot be recorded is not done.
    pub audit_required: bool,
    /// How long what terminals showed is kept, and how much of it.
    pub recordings: KeptTapes,
    /// What usage costs.
    pub prices: Prices,
    /// What projects and templates may do, beside what callers ask for.
    pub policies: Policies,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            shared_kernel: SharedKernel::default(),
            default_isolation: IsolationRequest::Auto,
            default_template: "base".parse().expect("a valid name"),
            default_limits: Limits::default(),
            max_limits: None,
            default_lease: Duration::from_secs(300),
            max_lease: Duration::from_secs(24 * 3600),
            max_sandboxes: 1000,
            memory_overcommit_percent: 400,
            memory_reserve_bytes: 256 << 20,
            disk_reserve_bytes: 1 << 30,
            creates_at_once: std::thread::available_parallelism().map_or(2, usize::from) * 2,
            creates_waiting: 256,
            orphan_grace: Duration::from_secs(60),
            restart_grace: Duration::from_secs(30),
            max_artifact_bytes: 1 << 30,
            max_artifacts: 1000,
            keep_ended: Duration::from_secs(7 * 24 * 3600),
            audit_required: true,
            recordings: KeptTapes { age: Duration::from_secs(30 * 24 * 3600), bytes: 10 << 30 },
            prices: Prices::default(),
            policies: Policies::default(),
        }
    }
}
