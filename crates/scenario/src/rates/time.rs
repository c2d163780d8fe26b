//! Times in logs: numbers, or dates and times of day.

use chrono::{DateTime, NaiveDateTime, NaiveTime, Timelike};

use super::table::{Rows, shortened};

/// Dates with times of day. The last one is that of G-NetTrack.
const DATES: [&str; 5] = [
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y.%m.%d %H:%M:%S%.f",
    "%Y.%m.%d_%H.%M.%S",
];

/// Unit of times that are numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeUnit {
    pub(super) seconds: f64,
    pub(super) name: &'static str,
}

impl TimeUnit {
    pub(super) const SECOND: Self = Self { seconds: 1.0, name: "s" };
    pub(super) const MILLISECOND: Self = Self { seconds: 1e-3, name: "ms" };
    pub(super) const MICROSECOND: Self = Self { seconds: 1e-6, name: "us" };
    pub(super) const NANOSECOND: Self = Self { seconds: 1e-9, name: "ns" };

    /// The unit that a word in the name of a column states.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "s" | "sec" | "secs" | "second" | "seconds" => Self::SECOND,
            "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => Self::MILLISECOND,
            "us" | "usec" | "micros" | "microsecond" | "microseconds" => Self::MICROSECOND,
            "ns" | "nsec" | "nanos" | "nanosecond" | "nanoseconds" => Self::NANOSECOND,
            _ => return None,
        })
    }

    /// The unit of a number without a stated unit: seconds, or the unit in which the number is a date
    /// of 1973 or later.
    pub(super) fn of_magnitude(first: f64) -> Self {
        match first.abs() {
            size if size >= 1e17 => Self::NANOSECOND,
            size if size >= 1e14 => Self::MICROSECOND,
            size if size >= 1e11 => Self::MILLISECOND,
            _ => Self::SECOND,
        }
    }
}

/// Format of the times in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Clock {
    Number(TimeUnit),
    Date,
}

impl Clock {
    /// The format of the first field, with the unit in the column's name.
    pub(super) fn of(rows: &Rows<'_>, field: &str, unit: Option<TimeUnit>) -> Result<Self, String> {
        match rows.number(field) {
            Ok(Some(number)) => {
                Ok(Self::Number(unit.unwrap_or_else(|| TimeUnit::of_magnitude(number))))
            }
            _ => date(field).map(|_| Self::Date),
        }
    }

    /// Seconds since some moment.
    pub(super) fn seconds(self, rows: &Rows<'_>, field: &str) -> Result<f64, String> {
        match self {
            Self::Number(unit) => {
                let number = rows.number(field)?.ok_or("the time is missing")?;
                Ok(number * unit.seconds)
            }
            Self::Date => date(field),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Number(unit) => unit.name,
            Self::Date => "date",
        }
    }
}

/// Seconds of a date with a time of day, or of a time of day.
fn date(field: &str) -> Result<f64, String> {
    let seconds = |at: NaiveDateTime| {
        let at = at.and_utc();
        at.timestamp() as f64 + f64::from(at.timestamp_subsec_nanos()) * 1e-9
    };
    if let Ok(at) = DateTime::parse_from_rfc3339(field) {
        return Ok(seconds(at.naive_utc()));
    }
    if let Ok(at) = DateTime::parse_from_str(field, "%Y-%m-%d %H:%M:%S%.f%:z") {
        return Ok(seconds(at.naive_utc()));
    }
    let plain = field.trim_end_matches('Z').trim_end_matches("UTC").trim_end();
    let dates = DATES.iter().find_map(|format| NaiveDateTime::parse_from_str(plain, format).ok());
    if let Some(at) = dates {
        return Ok(seconds(at));
    }
    if let Ok(at) = NaiveTime::parse_from_str(plain, "%H:%M:%S%.f") {
        return Ok(f64::from(at.num_seconds_from_midnight()) + f64::from(at.nanosecond()) * 1e-9);
    }
    Err(format!(
        "`{}` is not a time: use a number, 2024-05-31 12:00:00, or 12:00:00",
        shortened(field)
    ))
}
