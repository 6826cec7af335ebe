//! What is counted of a sandbox over its whole life, and how much of it somebody may have.
//!
//! A sandbox belongs to one project and was asked for with one key, so that what a project or a key used is the sum of its sandboxes, and
//! nothing else.

use std::fmt;
use std::str::FromStr;

use crate::{Invalid, KeyId, ProjectId, SandboxId, Timestamp};

/// What a sandbox used since its making, over all its runs. Only ever grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Consumption {
    /// Processor time, in microseconds.
    pub cpu_micros: u64,
    /// Time it ran, in milliseconds; not while it was paused.
    pub wall_millis: u64,
    /// Memory it was promised, times the time it ran: MiB × seconds.
    pub memory_mib_seconds: u64,
    /// The most it had written to disk, in bytes.
    pub disk_bytes: u64,
    /// Bytes that left it.
    pub egress_bytes: u64,
    /// Bytes that came in.
    pub ingress_bytes: u64,
    /// Processes that were started in it through the API.
    pub executions: u64,
}

impl Consumption {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What this has more than `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.each(before, u64::saturating_sub)
    }

    fn each(&self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            cpu_micros: join(self.cpu_micros, other.cpu_micros),
            wall_millis: join(self.wall_millis, other.wall_millis),
            memory_mib_seconds: join(self.memory_mib_seconds, other.memory_mib_seconds),
            disk_bytes: join(self.disk_bytes, other.disk_bytes),
            egress_bytes: join(self.egress_bytes, other.egress_bytes),
            ingress_bytes: join(self.ingress_bytes, other.ingress_bytes),
            executions: join(self.executions, other.executions),
        }
    }

    /// The part that the server alone counts.
    pub fn tally(&self) -> Tally {
        Tally { executions: self.executions, egress_bytes: self.egress_bytes, ingress_bytes: self.ingress_bytes }
    }

    /// One of the counts.
    pub fn of(&self, meter: Meter) -> u64 {
        match meter {
            Meter::CpuMicros => self.cpu_micros,
            Meter::WallMillis => self.wall_millis,
            Meter::MemoryMibSeconds => self.memory_mib_seconds,
            Meter::DiskBytes => self.disk_bytes,
            Meter::EgressBytes => self.egress_bytes,
            Meter::IngressBytes => self.ingress_bytes,
            Meter::Executions => self.executions,
        }
    }
}

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// Processor time.
    CpuMicros,
    /// Time it ran.
    WallMillis,
    /// Memory it was promised, times that time.
    MemoryMibSeconds,
    /// The most it had written to disk.
    DiskBytes,
    /// Bytes that left it.
    EgressBytes,
    /// Bytes that came in.
    IngressBytes,
    /// Processes started in it.
    Executions,
}

impl Meter {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::CpuMicros,
        Self::WallMillis,
        Self::MemoryMibSeconds,
        Self::DiskBytes,
        Self::EgressBytes,
        Self::IngressBytes,
        Self::Executions,
    ];

    /// Whether it counts bytes of the network.
    pub fn is_of_bytes(self) -> bool {
        matches!(self, Self::EgressBytes | Self::IngressBytes)
    }

    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CpuMicros => "cpu_micros",
            Self::WallMillis => "wall_millis",
            Self::MemoryMibSeconds => "memory_mib_seconds",
            Self::DiskBytes => "disk_bytes",
            Self::EgressBytes => "egress_bytes",
            Self::IngressBytes => "ingress_bytes",
            Self::Executions => "executions",
        }
    }
}

impl fmt::Display for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Meter {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let words = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL.into_iter().find(|meter| meter.as_str() == text).ok_or_else(|| Invalid::new("meter", words(), text))
    }
}

/// What the server alone counts of a sandbox, since its making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Processes that were started in it through the API.
    pub executions: u64,
    /// Bytes that left it.
    pub egress_bytes: u64,
    /// Bytes that came in.
    pub ingress_bytes: u64,
}

/// What was counted of one sandbox, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterReading {
    /// Which sandbox.
    pub sandbox: SandboxId,
    /// Whose.
    pub project: ProjectId,
    /// The key it was asked for with, where that was written down.
    pub key: Option<KeyId>,
    /// All it used.
    pub total: Consumption,
    /// When it was read.
    pub read_at: Timestamp,
}

/// Whose budget it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetSubject {
    /// All sandboxes of a project.
    Project(ProjectId),
    /// All sandboxes that were asked for with a key.
    Key(KeyId),
    /// One sandbox.
    Sandbox(SandboxId),
}

impl fmt::Display for BudgetSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(id) => write!(f, "project:{id}"),
            Self::Key(id) => write!(f, "key:{id}"),
            Self::Sandbox(id) => write!(f, "sandbox:{id}"),
        }
    }
}

impl FromStr for BudgetSubject {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.split_once(':') {
            Some(("project", id)) => Ok(Self::Project(id.parse()?)),
            Some(("key", id)) => Ok(Self::Key(id.parse()?)),
            Some(("sandbox", id)) => Ok(Self::Sandbox(id.parse()?)),
            _ => Err(Invalid::new("subject", "project:NAME, key:ID or sandbox:ID", text)),
        }
    }
}

/// What happens when a budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtLimit {
    /// Sandboxes stand still, and go on when there is budget again.
    #[default]
    Pause,
    /// Sandboxes end.
    Kill,
}

impl AtLimit {
    /// The word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Kill => "kill",
        }
    }
}

/// How much of something somebody may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Who.
    pub subject: BudgetSubject,
    /// Of what.
    pub meter: Meter,
    /// From here on it is told.
    pub soft: Option<u64>,
    /// Here it ends.
    pub hard: Option<u64>,
    /// How.
    pub at_limit: AtLimit,
    /// When the soft limit was told of; it is once.
    pub warned_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_as_they_are_written() {
        for meter in Meter::ALL {
            assert_eq!(meter.as_str().parse::<Meter>().unwrap(), meter);
            assert_eq!(serde_json::to_value(meter).unwrap(), meter.as_str());
        }
        let project = BudgetSubject::Project("team-a".parse().unwrap());
        assert_eq!(project.to_string().parse::<BudgetSubject>().unwrap(), project);
        assert!("team-a".parse::<BudgetSubject>().is_err());
    }

    #[test]
    fn what_was_used_since_and_before_make_the_whole() {
        let before = Consumption { cpu_micros: 5, executions: 2, ..Consumption::default() };
        let after = Consumption { cpu_micros: 9, executions: 2, wall_millis: 7, ..Consumption::default() };
        assert_eq!(before.plus(&after.since(&before)), after);
    }
}
