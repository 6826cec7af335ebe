//! Sizes, lengths of time and numbers of cores as people write and read them. What is shown can be typed in again.

use std::time::Duration;

use belljar_types::Invalid;

const SIZES: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Reads `512MiB`, `2GiB`, `1048576`.
pub(crate) fn parse_size(text: &str) -> Result<u64, Invalid> {
    belljar_types::parse_bytes("size", text)
}

/// Reads `30s`, `5m`, `1.5h`, `2d`; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, Invalid> {
    belljar_types::parse_duration("time", text)
}

/// Reads `1`, `0.5`, `2.25` cores as thousandths.
pub(crate) fn parse_cores(text: &str) -> Result<u32, Invalid> {
    let wrong = || Invalid::new("cores", "a number such as 1, 0.5 or 2.25", text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return Err(wrong());
    }
    let thousandths: u32 = format!("{fraction:0<3}").parse().map_err(|_| wrong())?;
    whole.parse::<u32>().ok().and_then(|cores| cores.checked_mul(1000)?.checked_add(thousandths)).ok_or_else(wrong)
}

/// Reads `NAME=VALUE`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), Invalid> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Invalid::new("pair", "NAME=VALUE", text)),
    }
}

/// `512MiB`, `1.5GiB`, `7B`.
pub(crate) fn size(bytes: u64) -> String {
    match SIZES.iter().find(|(_, factor)| bytes >= *factor) {
        None => format!("{bytes}B"),
        Some((unit, factor)) => {
            let tenths = u64::try_from(u128::from(bytes) * 10 / u128::from(*factor)).unwrap_or(u64::MAX);
            if tenths.is_multiple_of(10) || tenths >= 1000 {
                format!("{}{unit}", tenths / 10)
            } else {
                format!("{}.{}{unit}", tenths / 10, tenths % 10)
            }
        }
    }
}

/// `45s`, `3m20s`, `2h05m`, `3d4h`: the two largest units.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// `1`, `0.5`: thousandths of a core as cores.
pub(crate) fn cores(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short() {
        for (bytes, text) in [(0, "0B"), (999, "999B"), (1024, "1KiB"), (1536, "1.5KiB"), (512 << 20, "512MiB"), (u64::MAX, "16777215TiB")]
        {
            assert_eq!(size(bytes), text);
        }
        for (seconds, text) in [(45, "45s"), (200, "3m20s"), (7_500, "2h05m"), (273_600, "3d4h")] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
        for (millis, text) in [(1000, "1"), (500, "0.5"), (2250, "2.25"), (0, "0")] {
            assert_eq!(cores(millis), text);
        }
    }

    #[test]
    fn cores_and_pairs() {
        for (text, millis) in [("0.5", 500), ("2", 2000), ("2.25", 2250)] {
            assert_eq!(parse_cores(text), Ok(millis));
        }
        for text in ["two", "", ".", "1.", "-1", "1.2345", "99999999999"] {
            assert!(parse_cores(text).is_err(), "{text}");
        }
        assert_eq!(parse_pair("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(parse_pair("=b").is_err());
        assert!(parse_pair("A").is_err());
    }
}
