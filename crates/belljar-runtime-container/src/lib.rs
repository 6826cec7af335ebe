//! The container class: sandboxes that share the host's kernel, behind every fence that kernel offers.
//!
//! ```text
//!   lifecycle  the Runtime verbs                     live    who runs, and how it ended
//!   start      one launch, from reservation to pid   root    what a sandbox sees: layers, /dev, /sys, masks
//!   create     made whole, or not at all             snapshot  what is kept, and brought back
//! ```
//! A sandbox has its own user, pid, mount, uts, ipc, network and cgroup namespaces; its root is an overlay that no path on the host
//! leads to. It has no capability over anything of the host, cannot gain any (`no_new_privs`; `sudo` is the agent's own and raises
//! nobody above the sandbox's root), and its system calls pass an allow-list. What stands between it and the host is still one
//! kernel, which is why nobody gets this class who did not ask for it.

mod config;
mod create;
mod errors;
mod lifecycle;
mod live;
mod metrics;
mod probe;
mod root;
mod snapshot;
mod start;

pub use config::ContainerConfig;
pub use errors::ContainerError;
pub use lifecycle::ContainerRuntime;
