//! Dates of the Gregorian calendar, in UTC.

/// Seconds of a day.
pub const DAY_SECONDS: u64 = 86_400;

/// Year, month and day of the Gregorian calendar for a number of days since 1970-01-01. Years after 65535 are not
/// distinguished.
pub fn civil_from_days(days: u64) -> (u16, u8, u8) {
    // From 0000-03-01, in eras of 400 years, which have 146 097 days each.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_since_march + 2) / 5 + 1;
    let month =
        if months_since_march < 10 { months_since_march + 3 } else { months_since_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (u16::try_from(year).unwrap_or(u16::MAX), month as u8, day as u8)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. In this calculation years begin in March, so that the
/// leap day is the last day of its year.
pub fn days_from_civil(year: u16, month: u8, day: u8) -> i64 {
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // There are 719_468 days between 0000-03-01 and 1970-01-01.
    year * 365 + leap_days + day_of_year - 719_468
}

/// Formats the time `seconds` after 1970, for example as 2027-01-31 12:00:05 UTC.
pub fn utc_text(seconds: u64) -> String {
    let (year, month, day) = civil_from_days(seconds / DAY_SECONDS);
    let second = seconds % DAY_SECONDS;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_that_the_system_shows() {
        // From `date --utc --date=@...`.
        for (seconds, shown) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_827_696, "2000-02-29 12:34:56 UTC"),
            (1_801_440_000, "2027-02-01 00:00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
        ] {
            assert_eq!(utc_text(seconds), shown);
        }
    }

    #[test]
    fn a_date_is_that_of_its_day() {
        for days in (0..4 * 146_097).chain(22_900_000..23_000_000) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days as i64);
            assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }
    }
}
