//! A bucket of bytes that fills at a constant rate: how fast one sandbox may send or receive, over all its connections.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When the bytes that were promised so far are paid for.
    free_at: Instant,
}

/// How much may go at once after a rest.
const BURST: Duration = Duration::from_millis(250);

impl Pace {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State { free_at: Instant::now() }) }
    }

    /// Waits until these bytes may go.
    pub(crate) async fn take(&self, bytes: u64, per_second: Option<u64>) {
        let Some(per_second) = per_second else { return };
        let cost = Duration::from_secs_f64(to_float(bytes) / to_float(per_second.max(1)));
        let until = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let earliest = Instant::now().checked_sub(BURST).unwrap_or(state.free_at);
            state.free_at = state.free_at.max(earliest) + cost;
            state.free_at
        };
        tokio::time::sleep_until(until).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "a pace need not be exact to the byte")]
fn to_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_beyond_the_rate_wait() {
        let pace = Pace::new();
        let begin = Instant::now();
        for _ in 0..10 {
            pace.take(1000, Some(1000)).await;
        }
        let took = begin.elapsed();
        assert!(took >= Duration::from_secs(9) && took <= Duration::from_secs(11), "{took:?}");
        pace.take(u64::MAX, None).await;
        assert_eq!(begin.elapsed(), took);
    }
}
