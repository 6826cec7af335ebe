//! Sizes and times as people write them: `512MiB`, `1.5h`. One spelling for the command line and the configuration.

use std::time::Duration;

use crate::Invalid;

const SIZES: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];
const TIMES: [(&str, f64); 5] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// A number of bytes: `512MiB`, `2GB`, or just digits.
pub fn parse_bytes(field: &str, text: &str) -> Result<u64, Invalid> {
    let wrong = || Invalid::new(field, "bytes, as in 512MiB, 2GiB or 1000000", text);
    let (number, factor) = match SIZES.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor))) {
        Some((number, factor)) => (number.trim_end(), factor),
        None => (text, 1),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(wrong);
    }
    let part = decimal(number).ok_or_else(wrong)?;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and positive"
    )]
    let bytes = (part < 1e6).then_some((part * factor as f64) as u64);
    bytes.ok_or_else(wrong)
}

/// A length of time: `90s`, `5m`, `1.5h`, `7d`, or just seconds.
pub fn parse_duration(field: &str, text: &str) -> Result<Duration, Invalid> {
    let wrong = || Invalid::new(field, "a time, as in 90s, 5m, 1.5h or 7d", text);
    let (number, factor) = match TIMES.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor))) {
        Some((number, factor)) => (number.trim_end(), factor),
        None => (text, 1.0),
    };
    let seconds = decimal(number).ok_or_else(wrong)? * factor;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= 100 * 365 * 86_400).ok_or_else(wrong)
}

/// Digits with at most one point; no sign, no exponent, no `inf`.
fn decimal(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.bytes().any(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_as_people_write_them() {
        for (text, bytes) in [("0", 0), ("1000", 1000), ("512MiB", 512 << 20), ("1.5GiB", 3 << 29), ("2 GB", 2_000_000_000), ("7B", 7)] {
            assert_eq!(parse_bytes("x", text).unwrap(), bytes, "{text}");
        }
        for (text, seconds) in [("90", 90.0), ("90s", 90.0), ("1.5h", 5400.0), ("250ms", 0.25), ("7d", 604_800.0), ("5 m", 300.0)] {
            assert!((parse_duration("x", text).unwrap().as_secs_f64() - seconds).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "-1", "1e9", "inf", "MiB", "1.2.3GiB", "99999999999999999999", "20000000TiB", "5x", "."] {
            assert!(parse_bytes("memory", text).is_err(), "{text}");
        }
        for text in ["", "-1s", "inf", "h", "1e9d", "999999999d"] {
            assert!(parse_duration("lease", text).is_err(), "{text}");
        }
        assert_eq!(
            parse_bytes("memory", "lots").unwrap_err().to_string(),
            "memory: expected bytes, as in 512MiB, 2GiB or 1000000, got \"lots\""
        );
    }
}
