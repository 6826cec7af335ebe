//! Sandboxes behind a kernel in user space: gVisor's `runsc` with the systrap platform.
//!
//! ```text
//!  host's kernel
//!    │ private mount namespace                       made by a thread of ours, gone with the last process in it
//!    │   overlay of layers + upper  ◀── gofer        serves files to the sentry; root, but locked into the overlay
//!    │                                    │
//!    │   slot's network namespace   ◀── sentry       the kernel the sandbox sees; nobody, without a capability, behind seccomp
//!    │                                    │
//!    └──────────────────────────────── stubs         run the sandbox's code; every system call of theirs goes to the sentry
//! ```
//! All of them are in the sandbox's control group before their first instruction, so killing the group ends everything and its limits hold
//! whatever happens inside. `runsc` keeps its state in the sandbox's home; it is never asked to clean up (that takes 1.5 s).
//!
//! # What is peculiar about runsc, and where it is dealt with
//! * **(a)** Versions before 20240807 take every network namespace of a kernel ≥ 6.11 for the host's own and refuse it. They are started with a
//!   `/proc/sys` that holds only what they need: `launch`. A private `/proc/meminfo` tells the sandbox its own memory limit at that occasion.
//! * **(b)** A bound host socket makes checkpoints fail, so the agent is reached by TCP through the slot, with a token
//!   ([`belljar_host::Host::agent`]), and there is `--host-uds=none`: `launch`.
//! * **(c)** It takes the address and routes off the slot's interface, for its own stack. The host puts them back when a slot is used again.
//! * **(d)** Without `--net-disconnect-ok` nothing can be checkpointed while a TCP connection exists: `launch`. A file that was removed and is still
//!   open cannot be either, and the caller is told so: `checkpoint`.
//! * **(e)** It ignores the set-user-ID bit, so `sudo` is the agent under another name. This crate gives root inside the
//!   capabilities that this takes, and no more: `bundle`.
//! * **(f)** It takes its root for itself alone (`--file-access=exclusive`): what is needed in it is written before the start (`create`), everything
//!   later goes through the agent.
//! * **(g)** Versions before 20260622 wake about 900 times a second for nothing, 3 % of a core for each sandbox that only waits. When
//!   nothing happens in one, the kernel may put its wake-ups together, which leaves a quarter: `rest`.
//! * A process of the sandbox is two on the host, so the group's limit on processes is a backstop that ends the sandbox; the limit
//!   that a fork bomb meets is the sentry's own: `bundle`.
//! * When memory runs out, the host's kernel kills a stub, and the sentry ends that process with code 1, not with a signal; `oom` sees to
//!   it that the victim is not the sentry.
//! * It covers an empty `/tmp` with a filesystem in memory unless told of a mount there: `bundle`.

mod attributes;
mod bundle;
mod checkpoint;
mod config;
mod create;
mod errors;
mod find;
mod launch;
mod lifecycle;
mod live;
mod metrics;
mod oom;
mod probe;
mod rest;
mod restore;
mod runsc;
mod runtime;
mod snapshot;
mod standby;

pub use config::GvisorConfig;
pub use runtime::GvisorRuntime;
