//! Expiry dates of entries.

use std::time::{Duration, SystemTime};

use ropewalk_base::date::{DAY_SECONDS, days_from_civil};
use toml::value::{Datetime, Offset};

/// Help text for an expiry date.
pub(super) const DATE_HELP: &str =
    "give a date as 2027-01-31, which includes that day (UTC), or a moment as 2027-01-31T12:00:00Z";

/// The moment at which an entry expires. A date without a time includes its entire day, in UTC. `None` if the date
/// is invalid or before 1970.
pub(super) fn expiry(date: Datetime) -> Option<SystemTime> {
    let day = date.date?;
    let midnight = days_from_civil(day.year, day.month, day.day) * DAY_SECONDS as i64;
    let seconds = match (date.time, date.offset) {
        (None, None) => midnight + DAY_SECONDS as i64,
        (Some(time), Some(offset)) => {
            let offset_minutes = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => i64::from(minutes),
            };
            let second = i64::from(time.second.unwrap_or(0));
            let minute = i64::from(time.hour) * 60 + i64::from(time.minute) - offset_minutes;
            midnight + minute * 60 + second
        }
        // A time without an offset is ambiguous.
        _ => return None,
    };
    let since_1970 = Duration::from_secs(u64::try_from(seconds).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_seconds_that_the_system_counts() {
        // From `date --utc --date=... +%s`; a date without a time lasts until the end of its day.
        for (text, seconds) in [
            ("1970-01-01", Some(86_400)),
            ("2000-02-29", Some(951_868_800)),
            ("2027-01-31", Some(1_801_440_000)),
            ("2027-01-31T00:00:00Z", Some(1_801_353_600)),
            ("2027-01-31T12:30:05+01:00", Some(1_801_395_005)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400)),
            ("1969-12-30", None),
            ("2027-01-31T12:30:05", None),
            ("12:30:05", None),
        ] {
            let date: Datetime = text.parse().expect(text);
            let expected = seconds.map(|s| SystemTime::UNIX_EPOCH + Duration::from_secs(s));
            assert_eq!(expiry(date), expected, "{text}");
        }
    }
}
