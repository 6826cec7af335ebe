//! What isolates a sandbox, how strong it is, and how an engine reports on itself.

use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// The boundary between a sandbox and its host. The order is the order of strength, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationClass {
    /// Shared kernel, hardened. Only when the operator allowed it.
    Container,
    /// No operating system at all: WebAssembly with granted imports.
    Wasm,
    /// A kernel in user space (gVisor's `runsc`) between the sandbox and the host's kernel.
    Gvisor,
    /// A kernel of its own on virtual hardware.
    Microvm,
}

impl IsolationClass {
    /// The word used in requests, answers and configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Wasm => "wasm",
            Self::Gvisor => "gvisor",
            Self::Microvm => "microvm",
        }
    }

    /// Whether code in the sandbox talks to the host's kernel directly.
    pub fn shares_kernel(self) -> bool {
        self == Self::Container
    }
}

impl fmt::Display for IsolationClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationRequest {
    /// The strongest class that works here and runs a whole operating system.
    #[default]
    Auto,
    /// This class or an error; never another one.
    Exactly(IsolationClass),
}

impl FromStr for IsolationRequest {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Ok(match text {
            "auto" => Self::Auto,
            "container" => Self::Exactly(IsolationClass::Container),
            "wasm" => Self::Exactly(IsolationClass::Wasm),
            "gvisor" => Self::Exactly(IsolationClass::Gvisor),
            "microvm" => Self::Exactly(IsolationClass::Microvm),
            other => return Err(Invalid::new("isolation", "auto, microvm, gvisor, container or wasm", other)),
        })
    }
}

/// How one check of the host came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    /// As it should be.
    Pass,
    /// Works, but something is weaker or older than it could be.
    Warn,
    /// The engine cannot be used because of this.
    Fail,
}

/// One thing looked at, what was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Check {
    /// What was looked at, in a few words.
    pub name: String,
    /// How it came out.
    pub outcome: CheckOutcome,
    /// What was found.
    pub found: String,
    /// What to do, in words a person can follow; empty when there is nothing to do.
    pub fix: String,
}

impl Check {
    /// A check that passed.
    pub fn pass(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { name: name.into(), outcome: CheckOutcome::Pass, found: found.into(), fix: String::new() }
    }

    /// A check that found something weaker than it could be.
    pub fn warn(name: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), outcome: CheckOutcome::Warn, found: found.into(), fix: fix.into() }
    }

    /// A check that rules the engine out.
    pub fn fail(name: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), outcome: CheckOutcome::Fail, found: found.into(), fix: fix.into() }
    }
}

/// What an engine found out about itself on this host by trying, not by guessing.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EngineReport {
    /// The class it provides.
    pub class: IsolationClass,
    /// Program and version, e.g. `runsc 20240729.0`, or the kernel's for the container class.
    pub version: String,
    /// Days since that version was made, where it can be told.
    pub age_days: Option<u64>,
    /// Everything looked at.
    pub checks: Vec<Check>,
}

impl EngineReport {
    /// Whether nothing ruled the engine out.
    pub fn works(&self) -> bool {
        self.checks.iter().all(|check| check.outcome != CheckOutcome::Fail)
    }

    /// The first check that ruled it out.
    pub fn first_failure(&self) -> Option<&Check> {
        self.checks.iter().find(|check| check.outcome == CheckOutcome::Fail)
    }
}
