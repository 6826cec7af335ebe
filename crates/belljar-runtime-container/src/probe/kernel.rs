//! Which kernel this is and how old, as far as its own words tell.

use belljar_types::{Check, escape_untrusted};

/// Idmapped layers under an overlay.
const OLDEST: (u32, u32) = (5, 19);
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 86_400;

pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) age_days: Option<u64>,
}

impl Kernel {
    pub(super) fn of_this_host() -> Self {
        let names = rustix::system::uname();
        let built = days_of_build(&names.version().to_string_lossy());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs() / DAY;
        let release = escape_untrusted(names.release().to_bytes()).to_string();
        Self { release, age_days: built.and_then(|built| now.checked_sub(built)) }
    }

    pub(super) fn check(&self) -> Check {
        const NAME: &str = "kernel";
        let version = version(&self.release);
        if version < OLDEST {
            Check::fail(NAME, self.release.clone(), "use Linux 5.19 or later: layers cannot be shown with a sandbox's owners before")
        } else {
            Check::pass(NAME, self.release.clone())
        }
    }
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Days from 1970 to the build: `(2024-05-03)` as Debian writes it, or `Fri May 3 12:00:00 UTC 2024` as most do.
fn days_of_build(version: &str) -> Option<u64> {
    let words: Vec<&str> = version.split_whitespace().collect();
    let iso = words.iter().find_map(|word| {
        let mut parts = word.trim_matches(|c| c == '(' || c == ')').split('-').map(str::parse::<u64>);
        match (parts.next()?, parts.next()?, parts.next()?) {
            (Ok(year @ 1991..), Ok(month @ 1..=12), Ok(day @ 1..=31)) => Some((year, month, day)),
            _ => None,
        }
    });
    let spelled = || {
        let position = words.iter().position(|word| MONTHS.contains(word))?;
        let month = MONTHS.iter().position(|month| Some(month) == words.get(position))?;
        let day = words.get(position + 1)?.parse().ok()?;
        let year = words.iter().skip(position + 2).find_map(|word| word.parse().ok().filter(|year| *year >= 1991))?;
        Some((year, u64::try_from(month).ok()? + 1, day))
    };
    let (year, month, day) = iso.or_else(spelled)?;
    Some(days_since_1970(year, month, day))
}

/// Counted from March, so that the leap day is a year's last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    const TO_1970: u64 = 719_468;
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_says_when_it_was_built() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
        assert_eq!(days_of_build("#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1 (2024-05-03)"), Some(19_846));
        assert_eq!(days_of_build("#33-Ubuntu SMP PREEMPT_DYNAMIC Fri May  3 12:00:00 UTC 2024"), Some(19_846));
        assert_eq!(days_of_build("#1 SMP PREEMPT_DYNAMIC @0"), None);
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(version("6.18.44-fc"), (6, 18));
        assert!(version("5.4.0") < OLDEST && version("6.1.0-18-amd64") > OLDEST);
        assert_eq!(version("odd"), (0, 0));
    }
}
