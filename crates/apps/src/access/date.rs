//! Expiry dates of entries.

use std::time::{Duration, SystemTime};

use toml::value::{Datetime, Offset};

/// Help text for an expiry date.
pub(super) const DATE_HELP: &str =
    "give a date as 2027-01-31, which includes that day (UTC), or a moment as 2027-01-31T12:00:00Z";

const DAY_SECONDS: i64 = 86_400;

/// The moment at which an entry expires. A date without a time includes its entire day, in UTC. `None` if the date
/// is invalid or before 1970.
pub(super) fn expiry(date: Datetime) -> Option<SystemTime> {
    let day = date.date?;
    let midnight = days_from_1970(day.year, day.month, day.day) * DAY_SECONDS;
    let seconds = match (date.time, date.offset) {
        (None, None) => midnight + DAY_SECONDS,
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

/// Days from 1970-01-01 to a date of the Gregorian calendar. In this calculation years begin in March, so that the
/// leap day is the last day of its year.
fn days_from_1970(year: u16, month: u8, day: u8) -> i64 {
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // There are 719_468 days between 0000-03-01 and 1970-01-01.
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use ropewalk_base::date::civil_from_days;

    use super::*;

    proptest::proptest! {
        #[test]
        fn a_date_is_that_of_its_day(days in 0_u64..23_000_000) {
            let (year, month, day) = civil_from_days(days);
            proptest::prop_assert_eq!(days_from_1970(year, month, day), days as i64);
            proptest::prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }
    }

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
