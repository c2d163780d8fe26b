//! One function for each shape of file.

use super::columns::{self, Columns};
use super::intervals::{Sample, checked_bps, of_samples};
use super::table::{Delimiter, Rows, shortened};
use super::time::Clock;
use super::units::RateUnit;
use super::{Interval, RateLog, RateLogError, Rates, ReadOptions};
use crate::types::Trace;

/// Seconds of the longest single test that FCC's measurements can have.
const MOST_TEST_SECONDS: f64 = 3600.0;

/// Recognises the shape of the file by its first row, and reads it.
pub(super) fn read(text: &str, options: &ReadOptions) -> Result<RateLog, RateLogError> {
    let rows = Rows::new(text).ok_or_else(|| RateLogError::unknown("it is empty"))?;
    let (line, first) = first_row(&rows)?;
    let is_header = !first.iter().all(|field| rows.number(field).is_ok());
    if is_header {
        let at = |name: &str| first.iter().position(|own| own.eq_ignore_ascii_case(name));
        let fcc = (at("dtime"), at("fetch_time"), at("bytes_sec"));
        let selected = Selected::new(&rows, line, first.clone(), options)?;
        return match fcc {
            (Some(test), Some(time), Some(rate)) if options.column.is_none() => {
                fcc_tests(&selected, test, time, rate)
            }
            _ => samples(&selected, &columns::choose(&selected.names, line, options)?),
        };
    }
    if options.column.is_some() || !options.filter.is_empty() {
        let message = "the columns have no names, which --column and --where need";
        return Err(RateLogError::new(line, message, "put a line with names in front"));
    }
    match first.len() {
        1 => mahimahi(text, options),
        2 => two_columns(&rows, line, options),
        6 => received_bytes(&rows),
        count => {
            let message = format!("{count} columns of numbers without names");
            Err(RateLogError { line, ..RateLogError::unknown(message) })
        }
    }
}

fn first_row(rows: &Rows<'_>) -> Result<(usize, Vec<String>), RateLogError> {
    let mut found = None;
    // Only the first row is needed, so further rows are not an error.
    let stopped = rows.each(|line, fields| {
        found = Some((line, fields.iter().map(|field| (*field).to_owned()).collect()));
        Err(RateLogError::unknown(""))
    });
    found.ok_or_else(|| stopped.err().unwrap_or_else(|| RateLogError::unknown("it is empty")))
}

/// The rows below the names that pass the filter.
struct Selected<'a> {
    rows: &'a Rows<'a>,
    /// 0 if there is no such line.
    names_line: usize,
    names: Vec<String>,
    filter: Vec<(usize, &'a str)>,
}

impl<'a> Selected<'a> {
    fn new(
        rows: &'a Rows<'a>,
        names_line: usize,
        names: Vec<String>,
        options: &'a ReadOptions,
    ) -> Result<Self, RateLogError> {
        let filter = options.filter.iter().map(|(name, value)| {
            let column = columns::named(&names, name, names_line, "--where")?;
            Ok((column, value.trim()))
        });
        let filter = filter.collect::<Result<_, _>>()?;
        Ok(Self { rows, names_line, names, filter })
    }

    fn each(
        &self,
        mut row: impl FnMut(usize, &[&str]) -> Result<(), RateLogError>,
    ) -> Result<(), RateLogError> {
        self.rows.each(|line, fields| {
            let passes = |(column, value): &(usize, &str)| fields.get(*column) == Some(value);
            if line == self.names_line || !self.filter.iter().all(passes) {
                return Ok(());
            }
            row(line, fields)
        })
    }
}

/// The number in a column of a row; `None` if it is empty or absent.
fn number(
    rows: &Rows<'_>,
    line: usize,
    fields: &[&str],
    column: usize,
) -> Result<Option<f64>, RateLogError> {
    let field = fields.get(column).copied().unwrap_or("");
    rows.number(field).map_err(|message| invalid(line, format!("column {}: {message}", column + 1)))
}

fn invalid(line: usize, message: String) -> RateLogError {
    RateLogError { line, ..RateLogError::unknown(message) }
}

/// Times and rates in the chosen columns.
fn samples(selected: &Selected<'_>, columns: &Columns) -> Result<RateLog, RateLogError> {
    let Selected { rows, names, .. } = selected;
    let Columns { format, time, time_unit, rate, unit } = *columns;
    let mut clock = None;
    let (mut found, mut empty_rows) = (Vec::new(), 0);
    selected.each(|line, fields| {
        let at = fields.get(time).copied().unwrap_or("");
        let named = |message| invalid(line, format!("column `{}`: {message}", names[time]));
        let clock = match clock {
            Some(clock) => clock,
            None => *clock.insert(Clock::of(rows, at, time_unit).map_err(named)?),
        };
        let Some(value) = number(rows, line, fields, rate)? else {
            empty_rows += 1;
            return Ok(());
        };
        let at_s = clock.seconds(rows, at).map_err(named)?;
        found.push(Sample { line, at_s, bps: checked_bps(line, value * unit.bps())? });
        Ok(())
    })?;
    let (intervals, gaps) = of_samples(&found)?;
    let clock = clock.map_or("", Clock::name);
    let how =
        format!("time from `{}` ({clock}), rate from `{}` ({unit})", names[time], names[rate]);
    Ok(RateLog { format, how, rates: Rates::Intervals(intervals), empty_rows, gaps })
}

/// Tests of FCC's Measuring Broadband America. A test has either a single row, or one row per interval.
///
/// FCC's data dictionary (`curr_httpgetmt.csv`): `fetch_time` is the time for which the test ran, in microseconds;
/// `bytes_sec` is the throughput in bytes per second from the start of the test to the present interval, and
/// `bytes_sec_interval` that of the interval. Early files have `bytes_sec` only.
fn fcc_tests(
    selected: &Selected<'_>,
    test: usize,
    time: usize,
    rate: usize,
) -> Result<RateLog, RateLogError> {
    let Selected { rows, names, names_line, .. } = selected;
    let at = |name: &str| names.iter().position(|own| own.eq_ignore_ascii_case(name));
    let (unit, target) = (at("unit_id"), at("target"));
    let interval_rate = at("bytes_sec_interval");
    let mut units: Vec<String> = Vec::new();
    let mut before: Option<(String, f64, f64)> = None;
    let (mut intervals, mut empty_rows) = (Vec::new(), 0);
    selected.each(|line, fields| {
        let text =
            |column: Option<usize>| column.and_then(|c| fields.get(c)).copied().unwrap_or("");
        if units.len() < 3 && !units.iter().any(|known| known == text(unit)) {
            units.push(text(unit).to_owned());
        }
        let own = format!("{}\n{}\n{}", text(unit), text(Some(test)), text(target));
        let (Some(until), Some(bytes)) = (
            number(rows, line, fields, time)?,
            number(rows, line, fields, interval_rate.unwrap_or(rate))?,
        ) else {
            empty_rows += 1;
            return Ok(());
        };
        let since = before.as_ref().filter(|(test, at, _)| *test == own && *at < until);
        let (from, mean) = since.map_or((0.0, 0.0), |(_, at, mean)| (*at, *mean));
        let seconds = (until - from) * 1e-6;
        if !(seconds > 0.0 && seconds <= MOST_TEST_SECONDS) {
            return Err(invalid(
                line,
                format!("a test of {seconds} s in column `{}`", names[time]),
            ));
        }
        before = Some((own, until, bytes));
        let own_bytes = match interval_rate {
            Some(_) => bytes,
            None => ((bytes * until - mean * from) / (until - from)).max(0.0),
        };
        let bps = checked_bps(line, own_bytes * RateUnit::BYTE.bps())?;
        intervals.push(Interval { seconds, bps });
        Ok(())
    })?;
    if units.len() > 1 {
        let message = format!("measurements of several units: {}, ...", units.join(", "));
        let help = "choose one with --where unit_id=NUMBER";
        return Err(RateLogError::new(*names_line, message, help));
    }
    let how = format!(
        "time from `{}` (us), rate from `{}` (B/s), the time between tests is left out",
        names[time],
        names[interval_rate.unwrap_or(rate)]
    );
    let format = "FCC Measuring Broadband America";
    Ok(RateLog { format, how, rates: Rates::Intervals(intervals), empty_rows, gaps: (0, 0.0) })
}

/// Logs of bytes received: date, ms since the beginning, latitude, longitude, bytes, and ms since the previous row.
/// The date is in seconds in the HSDPA logs (Riiser et al. 2013) and in milliseconds in the 4G logs (van der Hooft
/// et al. 2016).
fn received_bytes(rows: &Rows<'_>) -> Result<RateLog, RateLogError> {
    let mut millis = false;
    let mut before: Option<(usize, f64)> = None;
    let mut found: Vec<(Interval, f64)> = Vec::new();
    let mut empty_rows = 0;
    rows.each(|line, fields| {
        if fields.len() != 6 {
            return Err(invalid(line, format!("{} columns instead of 6", fields.len())));
        }
        let field = |column| number(rows, line, fields, column);
        let (Some(date), Some(at), Some(bytes), Some(ms)) =
            (field(0)?, field(1)?, field(4)?, field(5)?)
        else {
            empty_rows += 1;
            return Ok(());
        };
        if let Some((other, _)) = before.filter(|(_, last)| at < *last) {
            let message =
                format!("{} ms in column 2 are before those of line {other}", shortened(fields[1]));
            return Err(RateLogError::new(line, message, "times must ascend; split the file"));
        }
        millis = date >= 1e11;
        let gap_ms = before.map_or(0.0, |(_, last)| at - last - ms);
        before = Some((line, at));
        if ms == 0.0 {
            empty_rows += 1;
            return Ok(());
        }
        if !(0.0..=MOST_TEST_SECONDS * 1e3).contains(&ms) {
            return Err(invalid(line, format!("{} ms in column 6", shortened(fields[5]))));
        }
        let bps = checked_bps(line, bytes * 8e3 / ms)?;
        found.push((Interval { seconds: ms * 1e-3, bps }, gap_ms * 1e-3));
        Ok(())
    })?;
    let gaps = found.iter().filter(|(interval, gap)| *gap > interval.seconds * 10.0);
    let gaps = gaps.fold((0, 0.0), |(count, sum), (_, gap)| (count + 1, sum + gap));
    let format = if millis {
        "4G/LTE bandwidth log (van der Hooft et al. 2016)"
    } else {
        "HSDPA bandwidth log (Riiser et al. 2013)"
    };
    let how = "rate from the bytes of column 5 and the ms of column 6".to_owned();
    let intervals = found.into_iter().map(|(interval, _)| interval).collect();
    Ok(RateLog { format, how, rates: Rates::Intervals(intervals), empty_rows, gaps })
}

/// Seconds and rates without names. Files prepared for simulators of adaptive streaming are separated by blanks or
/// tabs, and in Mbit/s.
fn two_columns(
    rows: &Rows<'_>,
    line: usize,
    options: &ReadOptions,
) -> Result<RateLog, RateLogError> {
    let usual = (rows.delimiter == Delimiter::Blank || rows.delimiter == Delimiter::Byte(b'\t'))
        .then_some(RateUnit::MEGABIT);
    let unit = options.unit.or(usual).ok_or_else(|| {
        let message = "two columns of numbers without names: the unit of the rates is not known";
        RateLogError::new(line, message, "give it, for example --unit Mbit/s")
    })?;
    let names = ["first column", "second column"].map(str::to_owned).to_vec();
    let selected = Selected { rows, names_line: 0, names, filter: Vec::new() };
    let format = "two columns of time and rate";
    samples(&selected, &Columns { format, time: 0, time_unit: None, rate: 1, unit })
}

fn mahimahi(text: &str, options: &ReadOptions) -> Result<RateLog, RateLogError> {
    if options.unit.is_some() {
        let message = "a single column of times has no unit of rates";
        return Err(RateLogError::new(0, message, "leave out --unit"));
    }
    let trace = Trace::parse("", text).map_err(|(line, message)| {
        invalid(
            line,
            format!("a single column of numbers would be a trace of Mahimahi, but {message}"),
        )
    })?;
    let how = format!("each line is an opportunity to deliver {} B", Trace::OPPORTUNITY_BYTES);
    let rates = Rates::Mahimahi(trace);
    Ok(RateLog { format: "Mahimahi", how, rates, empty_rows: 0, gaps: (0, 0.0) })
}
