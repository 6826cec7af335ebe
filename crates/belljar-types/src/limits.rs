//! What a sandbox may use. Every limit is enforced by the engine or the sandbox does not start.

use std::time::Duration;

use crate::Invalid;

/// Upper bounds on one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// CPU time per wall time in thousandths of a core: 1500 is one and a half cores.
    pub cpu_millis: u32,
    /// Memory in bytes, page cache and agent included; there is no swap.
    pub memory_bytes: u64,
    /// Bytes the sandbox may add to its template on disk, metadata included.
    pub disk_bytes: u64,
    /// Processes and threads at one time, the agent's included.
    pub pids: u32,
    /// Life in wall time, whatever happens; `None` leaves it to the lease.
    pub wall_time: Option<Duration>,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Default for Limits {
    fn default() -> Self {
        Self { cpu_millis: 1000, memory_bytes: 512 * MIB, disk_bytes: 2 * GIB, pids: 512, wall_time: None }
    }
}

impl Limits {
    /// Refuses values no engine can keep.
    pub fn validate(&self) -> Result<(), Invalid> {
        bound("limits.cpu_millis", u64::from(self.cpu_millis), 10, 1_024_000)?;
        bound("limits.memory_bytes", self.memory_bytes, 32 * MIB, 16 << 40)?;
        bound("limits.disk_bytes", self.disk_bytes, 16 * MIB, 64 << 40)?;
        bound("limits.pids", u64::from(self.pids), 16, 4_000_000)?;
        match self.wall_time {
            Some(time) => bound("limits.wall_time", time.as_secs(), 1, 10 * 365 * 86_400),
            None => Ok(()),
        }
    }
}

fn bound(field: &str, value: u64, min: u64, max: u64) -> Result<(), Invalid> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(Invalid::new(field, format!("{min} to {max}"), value.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_out_of_range_is_named() {
        let limits = Limits { memory_bytes: 1, ..Limits::default() };
        assert_eq!(limits.validate().unwrap_err().to_string(), "limits.memory_bytes: expected 33554432 to 17592186044416, got \"1\"");
        assert!(Limits::default().validate().is_ok());
    }
}
