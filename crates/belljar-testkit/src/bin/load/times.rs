//! Durations by name, and their percentiles.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(crate) struct Times(BTreeMap<String, Vec<Duration>>);

/// One name's percentiles, in milliseconds.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    what: String,
    count: usize,
    p50: f64,
    p99: f64,
    longest: f64,
}

impl Times {
    /// Counts what began then and ends now.
    pub(crate) fn add(&mut self, what: &str, begun: Instant) {
        self.push(what, begun.elapsed());
    }

    pub(crate) fn push(&mut self, what: &str, took: Duration) {
        self.0.entry(what.to_owned()).or_default().push(took);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (what, more) in other.0 {
            self.0.entry(what).or_default().extend(more);
        }
    }

    /// Half took less, in milliseconds.
    pub(crate) fn p50(&self, what: &str) -> f64 {
        let mut sorted = self.0.get(what).cloned().unwrap_or_default();
        sorted.sort_unstable();
        at(&sorted, 50)
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let row = |(what, all): (&String, &Vec<Duration>)| {
            let mut sorted = all.clone();
            sorted.sort_unstable();
            Row { what: what.clone(), count: sorted.len(), p50: at(&sorted, 50), p99: at(&sorted, 99), longest: at(&sorted, 100) }
        };
        self.0.iter().map(row).collect()
    }
}

fn at(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(f64::NAN, |took| took.as_secs_f64() * 1000.0)
}
