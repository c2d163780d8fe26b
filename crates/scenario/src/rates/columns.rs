//! Finds the columns of time and rate in a table.

use super::RateLogError;
use super::ReadOptions;
use super::time::TimeUnit;
use super::units::RateUnit;

/// The columns of time and rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) format: &'static str,
    pub(super) time: usize,
    pub(super) time_unit: Option<TimeUnit>,
    pub(super) rate: usize,
    pub(super) unit: RateUnit,
}

/// Names of columns of time, without units and separators.
const TIMES: [&str; 19] = [
    "",
    "time",
    "timestamp",
    "t",
    "ts",
    "date",
    "datetime",
    "datetimestamp",
    "datetimestamputc",
    "dtime",
    "epoch",
    "unix",
    "unixtime",
    "unixtimestamp",
    "elapsed",
    "elapsedtime",
    "timeelapsed",
    "start",
    "utc",
];
/// Words of columns of rates.
const RATES: [&str; 7] =
    ["throughput", "bandwidth", "bitrate", "datarate", "goodput", "capacity", "rate"];
/// Words of columns of the rate towards the user, and away from them.
const DOWN: [&str; 6] = ["dl", "down", "downlink", "download", "rx", "downstream"];
const UP: [&str; 6] = ["ul", "up", "uplink", "upload", "tx", "upstream"];

/// Finds the columns by their names, which are in `line`.
pub(super) fn choose(
    names: &[String],
    line: usize,
    options: &ReadOptions,
) -> Result<Columns, RateLogError> {
    let known = data_set(names);
    let format = known.map_or("CSV with columns of time and rate", |known| known.0);
    let (time, time_unit) = match known {
        Some((.., time)) => (time, None),
        None => time_column(names, line)?,
    };
    let (rate, unit) = match (&options.column, known) {
        (Some(column), _) => (named(names, column, line, "--column")?, None),
        (None, Some((_, rate, unit, _))) => (rate, Some(unit)),
        (None, None) => (rate_column(names, time, line, options)?, None),
    };
    let unit = options.unit.or(unit).or_else(|| RateUnit::of_column(&names[rate]));
    let unit = unit.ok_or_else(|| {
        let message = format!("the name of the column `{}` has no unit of rates", names[rate]);
        RateLogError::new(line, message, "give it, for example --unit Mbit/s")
    })?;
    Ok(Columns { format, time, time_unit, rate, unit })
}

/// Format, column of the rate, its unit, and column of the time in a known data set.
fn data_set(names: &[String]) -> Option<(&'static str, usize, RateUnit, usize)> {
    let at = |name: &str| names.iter().position(|own| own.eq_ignore_ascii_case(name));
    // Raca et al. 2018 and 2020, recorded by G-NetTrack.
    if let (Some(time), Some(rate), Some(_)) = (at("Timestamp"), at("DL_bitrate"), at("UL_bitrate"))
    {
        let format = "4G or 5G production data set (Raca et al.)";
        return Some((format, rate, RateUnit::KILOBIT, time));
    }
    // Narayanan et al. 2020: a row per second.
    let (run, time, rate) = (at("run_num"), at("seq_num"), at("Throughput"));
    run.and(time)
        .zip(rate)
        .map(|(time, rate)| ("Lumos5G (Narayanan et al. 2020)", rate, RateUnit::MEGABIT, time))
}

/// The column with this name.
pub(super) fn named(
    names: &[String],
    name: &str,
    line: usize,
    option: &str,
) -> Result<usize, RateLogError> {
    let same = |own: &String| own.eq_ignore_ascii_case(name.trim());
    names.iter().position(same).ok_or_else(|| {
        let message = format!("{option}: no column `{name}`");
        RateLogError::new(line, message, format!("columns: {}", listed(names)))
    })
}

fn time_column(names: &[String], line: usize) -> Result<(usize, Option<TimeUnit>), RateLogError> {
    let time_of = |name: &String| {
        let words = words(name);
        let unit = words.iter().find_map(|word| TimeUnit::of_word(word));
        let rest: String = words.into_iter().filter(|w| TimeUnit::of_word(w).is_none()).collect();
        let is_time = TIMES.contains(&rest.as_str()) && !(rest.is_empty() && unit.is_none());
        is_time.then_some(unit)
    };
    let found = names.iter().enumerate().find_map(|(i, name)| Some((i, time_of(name)?)));
    found.ok_or_else(|| {
        let message = format!("no column of times among {}", listed(names));
        RateLogError { line, ..RateLogError::unknown(message) }
    })
}

fn rate_column(
    names: &[String],
    time: usize,
    line: usize,
    options: &ReadOptions,
) -> Result<usize, RateLogError> {
    let is_called_rate = |name: &String| {
        let all = words(name).concat();
        RATES.iter().any(|word| all.contains(word))
    };
    let others = || names.iter().enumerate().filter(|(i, _)| *i != time);
    let with_unit = others().filter(|(_, name)| RateUnit::of_column(name).is_some());
    let mut found: Vec<usize> = with_unit.map(|(i, _)| i).collect();
    if found.is_empty() {
        found.extend(others().filter(|(_, name)| is_called_rate(name)).map(|(i, _)| i));
    }
    // With a unit, the only other column has the rate, whatever its name.
    if found.is_empty() && options.unit.is_some() && names.len() == 2 {
        found.extend(others().map(|(i, _)| i));
    }
    let has = |column: &usize, direction: &[&str]| {
        words(&names[*column]).iter().any(|word| direction.contains(&word.as_str()))
    };
    let down: Vec<usize> = found.iter().copied().filter(|column| has(column, &DOWN)).collect();
    let not_up: Vec<usize> = found.iter().copied().filter(|column| !has(column, &UP)).collect();
    match (&*found, &*down, &*not_up) {
        ([only], ..) | (_, [only], _) | (_, [], [only]) => Ok(*only),
        ([], ..) => {
            let message = format!("no column of rates among {}", listed(names));
            Err(RateLogError { line, ..RateLogError::unknown(message) })
        }
        _ => {
            let several: Vec<String> = found.iter().map(|column| names[*column].clone()).collect();
            let message = format!("several columns of rates: {}", listed(&several));
            Err(RateLogError::new(line, message, "choose one with --column NAME"))
        }
    }
}

/// The words of a name in lower case: `Time (ms)` is `time` and `ms`.
fn words(name: &str) -> Vec<String> {
    let mut text = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            text.push(' ');
        }
        text.push(c);
        before = c;
    }
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase).collect()
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut text = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{}`", super::table::shortened(name)))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > MOST {
        text += &format!(" and {} more", names.len() - MOST);
    }
    text
}
