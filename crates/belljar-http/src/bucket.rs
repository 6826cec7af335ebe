//! Token buckets: so many a second, and so many at once. One for each key or sandbox, and never more of them than fit.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average.
    pub per_second: f64,
    /// At once, after a pause.
    pub burst: f64,
}

struct Bucket {
    tokens: f64,
    filled_at: Instant,
}

/// A bucket for each `K`. Those that are full again are forgotten when there are many: a full one and none are the same.
pub struct Buckets<K> {
    rate: Rate,
    buckets: Mutex<HashMap<K, Bucket>>,
}

const MANY: usize = 10_000;

impl<K: Hash + Eq> Buckets<K> {
    /// Full buckets for everyone.
    pub fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::new(HashMap::new()) }
    }

    /// Takes one token, or says how long until there is one.
    pub fn take(&self, key: K) -> Result<(), Duration> {
        self.take_at(key, Instant::now())
    }

    fn take_at(&self, key: K, now: Instant) -> Result<(), Duration> {
        let Rate { per_second, burst } = self.rate;
        let filled =
            |bucket: &Bucket| (bucket.tokens + now.saturating_duration_since(bucket.filled_at).as_secs_f64() * per_second).min(burst);
        let mut buckets = self.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if buckets.len() >= MANY && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| filled(bucket) < burst);
        }
        let bucket = buckets.entry(key).or_insert(Bucket { tokens: burst, filled_at: now });
        let tokens = filled(bucket);
        bucket.filled_at = now;
        if tokens >= 1.0 {
            bucket.tokens = tokens - 1.0;
            Ok(())
        } else {
            bucket.tokens = tokens;
            Err(Duration::from_secs_f64(((1.0 - tokens) / per_second.max(0.001)).min(3600.0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let buckets = Buckets::new(Rate { per_second: 2.0, burst: 3.0 });
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(buckets.take_at("a", start), Ok(()));
        }
        assert_eq!(buckets.take_at("a", start), Err(Duration::from_millis(500)));
        assert_eq!(buckets.take_at("b", start), Ok(()), "another key has its own");
        assert_eq!(buckets.take_at("a", start + Duration::from_millis(500)), Ok(()));
        assert!(buckets.take_at("a", start + Duration::from_millis(600)).is_err());
    }

    #[test]
    fn keys_that_come_once_do_not_fill_the_memory() {
        let buckets = Buckets::new(Rate { per_second: 1000.0, burst: 1.0 });
        let start = Instant::now();
        for n in 0..30_000_u32 {
            let at = start + Duration::from_millis(u64::from(n));
            assert_eq!(buckets.take_at(n, at), Ok(()));
        }
        assert!(buckets.buckets.lock().unwrap().len() <= MANY);
    }
}
