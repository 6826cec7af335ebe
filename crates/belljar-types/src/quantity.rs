//! Sizes and times as people write them: `512MiB`, `1.5h`, `3m20s`. One spelling for the command line and the configuration; what `belljar`
//! shows can be typed in again.

use std::time::Duration;

use crate::Invalid;

const SIZES: [(&str, u64); 16] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
    // As other tools write them; always the powers of two.
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
];
const TIMES: [(&str, f64); 5] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// A number of bytes: `512MiB`, `512M` for the same, `2GB`, or just digits.
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

/// A length of time: `90s`, `5m`, `1.5h`, `7d`, several such as `3m20s`, or just seconds.
pub fn parse_duration(field: &str, text: &str) -> Result<Duration, Invalid> {
    let wrong = || Invalid::new(field, "a time, as in 90s, 5m, 1.5h or 7d", text);
    let seconds = decimal(text).or_else(|| sum_of_parts(text)).ok_or_else(wrong)?;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| time.as_secs() <= 100 * 365 * 86_400).ok_or_else(wrong)
}

/// Numbers that each have a unit, the larger units first.
fn sum_of_parts(text: &str) -> Option<f64> {
    let (mut rest, mut seconds, mut larger) = (text, 0.0, f64::INFINITY);
    loop {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let after = after.trim_start();
        let (unit, next) = after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let factor = TIMES.iter().find(|(name, factor)| *name == unit && *factor < larger)?.1;
        seconds += decimal(number)? * factor;
        if next.is_empty() {
            return Some(seconds);
        }
        (rest, larger) = (next, factor);
    }
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
        for (text, bytes) in [("512M", 512 << 20), ("512m", 512 << 20), ("1.5G", 3 << 29), ("4k", 4096), ("4K", 4096), ("2T", 2 << 40)] {
            assert_eq!(parse_bytes("x", text).unwrap(), bytes, "{text}");
        }
        for (text, seconds) in [("90", 90.0), ("90s", 90.0), ("1.5h", 5400.0), ("250ms", 0.25), ("7d", 604_800.0), ("5 m", 300.0)] {
            assert!((parse_duration("x", text).unwrap().as_secs_f64() - seconds).abs() < 1e-9, "{text}");
        }
        for (text, seconds) in [("3m20s", 200.0), ("2h05m", 7_500.0), ("3d4h", 273_600.0), ("1s500ms", 1.5), ("1d0h", 86_400.0)] {
            assert!((parse_duration("x", text).unwrap().as_secs_f64() - seconds).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "-1", "1e9", "inf", "MiB", "1.2.3GiB", "99999999999999999999", "20000000TiB", "5x", "."] {
            assert!(parse_bytes("memory", text).is_err(), "{text}");
        }
        for text in ["", "-1s", "inf", "h", "1e9d", "999999999d", "3m20", "20s3m", "3m20m", "3m 20s", "3mm", "m20s", "5m "] {
            assert!(parse_duration("lease", text).is_err(), "{text}");
        }
        assert_eq!(
            parse_bytes("memory", "lots").unwrap_err().to_string(),
            "memory: expected bytes, as in 512MiB, 2GiB or 1000000, got \"lots\""
        );
    }
}
