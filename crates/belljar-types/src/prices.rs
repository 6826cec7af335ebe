//! What usage costs. Money is counted in billionths of the currency's unit, in whole numbers: what is billed to each adds up to what is billed
//! to all.

use std::fmt;
use std::str::FromStr;

use crate::{Consumption, Invalid};

/// Billionths of one unit of money.
const NANOS: u64 = 1_000_000_000;
const DECIMALS: usize = 9;
const HOUR_MICROS: u128 = 3_600_000_000;
const HOUR_MILLIS: u128 = 3_600_000;
const GIB: u128 = 1 << 30;
const GIB_HOUR_MIB_SECONDS: u128 = 1024 * 3600;

/// An amount of money, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Money(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// So many, where this is the price of `unit` of them.
    fn times(self, amount: u64, unit: u128) -> Self {
        let cost = u128::from(self.0) * u128::from(amount) / unit;
        Self(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / NANOS, self.0 % NANOS)
    }
}

impl FromStr for Money {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::new("price", format!("a number as in 0.05, with at most {DECIMALS} decimals"), text);
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > DECIMALS {
            return Err(refused());
        }
        let whole: u64 = whole.parse().map_err(|_| refused())?;
        let nanos: u64 = format!("{decimals:0<DECIMALS$}").parse().map_err(|_| refused())?;
        whole.checked_mul(NANOS).and_then(|whole| whole.checked_add(nanos)).map(Self).ok_or_else(refused)
    }
}

impl TryFrom<String> for Money {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

/// What each thing costs; what is unset costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// The word for the unit of money; without it nothing is priced.
    pub currency: Option<String>,
    /// One processor for an hour.
    pub cpu_hour: Money,
    /// A running sandbox for an hour.
    pub wall_hour: Money,
    /// One GiB of memory for an hour.
    pub memory_gib_hour: Money,
    /// One GiB written to disk.
    pub disk_gib: Money,
    /// One GiB that leaves.
    pub egress_gib: Money,
    /// One GiB that comes in.
    pub ingress_gib: Money,
    /// A process started.
    pub execution: Money,
}

impl Prices {
    /// What one sandbox's usage costs. What several cost is the sum of what each costs.
    pub fn cost(&self, used: &Consumption) -> Money {
        let parts = [
            self.cpu_hour.times(used.cpu_micros, HOUR_MICROS),
            self.wall_hour.times(used.wall_millis, HOUR_MILLIS),
            self.memory_gib_hour.times(used.memory_mib_seconds, GIB_HOUR_MIB_SECONDS),
            self.disk_gib.times(used.disk_bytes, GIB),
            self.egress_gib.times(used.egress_bytes, GIB),
            self.ingress_gib.times(used.ingress_bytes, GIB),
            self.execution.times(used.executions, 1),
        ];
        parts.into_iter().fold(Money::ZERO, Money::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    #[test]
    fn money_reads_as_it_is_written() {
        for (text, written) in [("0.05", "0.050000000"), ("12", "12.000000000"), ("0.000000001", "0.000000001")] {
            assert_eq!(money(text).to_string(), written);
        }
        for bad in ["", ".5", "1.", "-1", "1,5", "0.0000000001", "99999999999999999999", "1e3"] {
            assert!(bad.parse::<Money>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_hour_of_everything_costs_what_the_prices_say() {
        let prices = Prices {
            currency: Some("EUR".to_owned()),
            cpu_hour: money("0.05"),
            wall_hour: money("0.01"),
            memory_gib_hour: money("0.02"),
            disk_gib: money("0.3"),
            egress_gib: money("0.09"),
            ingress_gib: money("0"),
            execution: money("0.001"),
        };
        let used = Consumption {
            cpu_micros: 3_600_000_000,
            wall_millis: 3_600_000,
            memory_mib_seconds: 512 * 3600,
            disk_bytes: 1 << 29,
            egress_bytes: 1 << 30,
            ingress_bytes: 1 << 40,
            executions: 3,
        };
        assert_eq!(prices.cost(&used).to_string(), "0.313000000");
        assert_eq!(Prices::default().cost(&used), Money::ZERO);
    }
}
