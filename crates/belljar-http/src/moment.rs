//! Moments as every front writes them.

use belljar_types::Timestamp;

/// As RFC 3339 has it.
pub fn moment(at: Timestamp) -> String {
    i64::try_from(at.0).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()).unwrap_or(jiff::Timestamp::MAX).to_string()
}
