//! Between what travels and the core's words. What cannot be said in them is refused here, by the name the caller used.

mod artifact;
mod audit;
mod code;
mod file;
mod metering;
mod process;
mod project;
mod sandbox;
mod server;
mod snapshot;
mod volume;
mod webhook;

pub(crate) use artifact::*;
pub(crate) use audit::*;
pub(crate) use code::*;
pub(crate) use file::*;
pub(crate) use metering::*;
pub(crate) use process::*;
pub(crate) use project::*;
pub(crate) use sandbox::*;
pub(crate) use server::*;
pub(crate) use snapshot::*;
pub(crate) use volume::*;
pub(crate) use webhook::*;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_types::{Invalid, Timestamp};

/// Ten years: longer than anything here lives, and short enough for every clock.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A moment as RFC 3339, in UTC, with milliseconds.
pub(crate) fn moment(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).ok();
    let at = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

/// Whole seconds.
pub(crate) fn seconds(field: &str, seconds: u64) -> Result<Duration, Invalid> {
    let duration = Duration::from_secs(seconds);
    if duration <= LONGEST {
        Ok(duration)
    } else {
        Err(Invalid::new(field, format!("at most {} seconds", LONGEST.as_secs()), seconds.to_string()))
    }
}

/// Seconds with fractions, more than none.
pub(crate) fn fractional_seconds(field: &str, seconds: f64) -> Result<Duration, Invalid> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero() && *duration <= LONGEST)
        .ok_or_else(|| Invalid::new(field, format!("more than 0 and at most {} seconds", LONGEST.as_secs()), seconds.to_string()))
}

pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn from_base64(field: &str, text: &str) -> Result<Vec<u8>, Invalid> {
    STANDARD.decode(text).map_err(|_| Invalid::new(field, "base64", text))
}

/// Bytes as text, and as base64 too if they are not.
pub(crate) fn text_or_base64(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(to_base64(bytes))),
    }
}

/// One of a few words.
pub(crate) fn word<T: Copy>(field: &str, text: &str, words: &[(&str, T)]) -> Result<T, Invalid> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning).ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Invalid::new(field, all.join(" or "), text)
    })
}

/// A number within bounds, or the default.
pub(crate) fn bounded(field: &str, value: Option<u32>, default: u32, min: u32, max: u32) -> Result<u32, Invalid> {
    let value = value.unwrap_or(default);
    if (min..=max).contains(&value) { Ok(value) } else { Err(Invalid::new(field, format!("{min} to {max}"), value.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_rfc_3339_even_at_the_end_of_time() {
        assert_eq!(moment(Timestamp(1_700_000_000_123)), "2023-11-14T22:13:20.123Z");
        assert!(moment(Timestamp(u64::MAX)).starts_with("9999-"));
    }

    #[test]
    fn seconds_that_no_clock_holds_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(fractional_seconds("deadline_seconds", bad).is_err(), "{bad}");
        }
        assert_eq!(fractional_seconds("deadline_seconds", 0.5).unwrap(), Duration::from_millis(500));
        assert!(seconds("lease_seconds", u64::MAX).is_err());
    }
}
