//! Moments as people see them: how long ago, how long until.

use std::time::Duration;

use jiff::Timestamp;

use crate::units;

/// `3m20s ago`, `in 5m00s`, `now`; as it came, if it is no moment.
pub(crate) fn relative(moment: &str) -> String {
    relative_to(moment, Timestamp::now())
}

fn relative_to(moment: &str, now: Timestamp) -> String {
    let Ok(at) = moment.parse::<Timestamp>() else { return moment.to_owned() };
    let millis = at.as_millisecond() - now.as_millisecond();
    let length = Duration::from_millis(millis.unsigned_abs() / 1000 * 1000);
    match (millis, length.is_zero()) {
        (_, true) => "now".to_owned(),
        (0.., _) => format!("in {}", units::duration(length)),
        _ => format!("{} ago", units::duration(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_from_now() {
        let now: Timestamp = "2026-11-15T06:00:00Z".parse().unwrap();
        for (moment, told) in [
            ("2026-11-15T06:05:00.250Z", "in 5m00s"),
            ("2026-11-15T05:59:15Z", "45s ago"),
            ("2026-11-15T06:00:00.900Z", "now"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(relative_to(moment, now), told);
        }
    }
}
