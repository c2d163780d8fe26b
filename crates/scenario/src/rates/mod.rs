//! Converts logs of a link's rate over time, written by other programs, to scenarios.
//!
//! [`RateLog::read`] recognises the format and converts it to intervals of constant rate; [`scenario`] writes a
//! scenario with one path for each log.

mod columns;
mod formats;
mod intervals;
mod sniff;
mod table;
mod time;
mod units;
mod write;

use std::fmt;

use ropewalk_base::Rate;
use ropewalk_base::units::RATE_UNITS;

use crate::types::Trace;

pub use units::RateUnit;
pub use write::{LoggedPath, scenario};

/// Largest log in bytes: it is read into memory.
pub const LARGEST_LOG: u64 = 256 << 20;

/// The formats that are read, for messages.
pub const KNOWN_FORMATS: &str = "CSV with columns of time and rate, FCC Measuring Broadband America (curr_httpgetmt), Norway \
    HSDPA and 4G/LTE bandwidth logs, 5G production (DL_bitrate), Lumos5G, Mahimahi, and two columns of seconds and Mbit/s";

/// The user's choices for reading a log.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Name of the column of rates, if there are several.
    pub column: Option<String>,
    /// Unit of the rates, if the name of the column has none.
    pub unit: Option<RateUnit>,
    /// Columns and the value that each must have; other rows are left out.
    pub filter: Vec<(String, String)>,
}

/// A file that is not a log of rates, or an invalid log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RateLogError {
    /// Number of the line, from 1; 0 for the file.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl RateLogError {
    fn new(line: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, message: message.into(), help: help.into() }
    }

    fn unknown(message: impl Into<String>) -> Self {
        Self::new(0, message, format!("known formats: {KNOWN_FORMATS}"))
    }
}

impl fmt::Display for RateLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

/// A time with a constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Length, s; above 0.
    pub seconds: f64,
    /// Rate, bit/s.
    pub bps: f64,
}

/// The rate of a link according to a log.
#[derive(Clone, Debug, PartialEq)]
pub enum Rates {
    /// Consecutive intervals; at least one.
    Intervals(Vec<Interval>),
    /// A trace of Mahimahi, which scenarios use directly.
    Mahimahi(Trace),
}

/// A log of rates.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLog {
    /// Name of the format.
    pub format: &'static str,
    /// The columns that were used, and their units.
    pub how: String,
    /// The rates.
    pub rates: Rates,
    /// Rows without a rate.
    pub empty_rows: usize,
    /// Times without rows that were left out: their number and sum, s.
    pub gaps: (usize, f64),
}

impl RateLog {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// If the format is unknown, or the content is invalid.
    pub fn read(content: &[u8], options: &ReadOptions) -> Result<Self, RateLogError> {
        let text = sniff::text(content)?;
        let log = formats::read(&text, options)?;
        if let Rates::Intervals(intervals) = &log.rates {
            intervals::check(intervals)?;
        }
        Ok(log)
    }

    /// Length of the log, s.
    pub fn seconds(&self) -> f64 {
        match &self.rates {
            Rates::Intervals(intervals) => intervals.iter().map(|one| one.seconds).sum(),
            Rates::Mahimahi(trace) => trace.period().as_secs_f64(),
        }
    }

    /// Mean rate, bit/s.
    pub fn mean_bps(&self) -> f64 {
        match &self.rates {
            Rates::Intervals(intervals) => {
                let bits: f64 = intervals.iter().map(|one| one.seconds * one.bps).sum();
                bits / self.seconds()
            }
            Rates::Mahimahi(trace) => trace.mean_rate().as_bps() as f64,
        }
    }

    /// Highest rate, bit/s; that of a trace of Mahimahi is its mean rate.
    pub fn max_bps(&self) -> f64 {
        match &self.rates {
            Rates::Intervals(intervals) => intervals.iter().map(|one| one.bps).fold(0.0, f64::max),
            Rates::Mahimahi(_) => self.mean_bps(),
        }
    }

    /// One line: format, columns, length, mean rate, and what was left out.
    pub fn summary(&self) -> String {
        let count = match &self.rates {
            Rates::Intervals(intervals) => counted(intervals.len(), "interval"),
            Rates::Mahimahi(trace) => format!("{} opportunities", trace.opportunities.len()),
        };
        let mut text = format!(
            "{}: {}; {count}, {} s, mean {}",
            self.format,
            self.how,
            round(self.seconds()),
            readable(self.mean_bps())
        );
        let (gaps, seconds) = self.gaps;
        if gaps > 0 {
            let times = counted(gaps, "time");
            text += &format!("; left out: {times} without rows, {} s in total", round(seconds));
        }
        if self.empty_rows > 0 {
            text += &format!("; {} without a rate skipped", counted(self.empty_rows, "row"));
        }
        text
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Seconds with at most four significant digits.
fn round(seconds: f64) -> String {
    let digits = (3.0 - seconds.max(1e-3).log10().floor()).clamp(0.0, 3.0);
    let text = format!("{seconds:.*}", digits as usize);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// A rate with three significant digits.
fn readable(bps: f64) -> String {
    let fits = |(scale, _): &(f64, _)| bps >= *scale * 0.9995;
    let (scale, unit) = RATE_UNITS.into_iter().find(fits).unwrap_or((1.0, "bit/s"));
    let value = bps / scale;
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// A rate of a scenario: at least 1 bit/s, which represents zero.
fn whole(bps: f64) -> Rate {
    Rate::from_bps((bps.round() as u64).max(1))
}
