//! The scenario of logged links.

use std::fmt::Write;

use ropewalk_base::Duration;

use super::{Interval, RateLog, Rates, whole};
use crate::quantity::{duration_text, rate_text, size_text};
use crate::toml_text::quoted;

/// Maximum number of steps of a path.
const MOST_STEPS: usize = 100_000;
/// Round trip of a path. Logs of rates contain none.
const RTT: &str = "40 ms";
/// Queue, in seconds at the mean rate.
const QUEUE_SECONDS: f64 = 0.2;
/// Minimum queue, bytes: the default of scenarios.
const LEAST_QUEUE: f64 = 150e3;
/// Receive buffer, in seconds at the highest rates.
const BUFFER_SECONDS: f64 = 1.0;
/// Limits of the receive buffer, bytes.
const BUFFERS: (f64, f64) = (1e6, 1e9);
/// Characters of a path's name.
const NAME_LENGTH: usize = 40;

/// A log and its file.
#[derive(Clone, Debug)]
pub struct LoggedPath {
    /// Name of the file in the scenario.
    pub file: String,
    /// Name from which the name of the path is derived.
    pub name: String,
    /// The log.
    pub log: RateLog,
}

/// A scenario with a path for each log. It lasts as long as the shortest log.
///
/// # Panics
/// If there is no log.
pub fn scenario(paths: &[LoggedPath]) -> String {
    let seconds = paths.iter().map(|path| path.log.seconds()).fold(f64::INFINITY, f64::min);
    let highest: f64 = paths.iter().map(|path| path.log.max_bps()).sum();
    let buffer = (highest / 8.0 * BUFFER_SECONDS).clamp(BUFFERS.0, BUFFERS.1);
    let mut text = format!(
        "# Rates follow the logs. Logs have neither round trips nor queues nor losses: rtt, queue and loss are to be set.\n\
         [transfer]\nduration       = \"{}\"\npreset         = \"live\"\nreceive_buffer = \"{}\"\n",
        time_text(seconds),
        size_text(round_up(buffer, 1e6)),
    );
    let mut names: Vec<String> = Vec::new();
    for path in paths {
        let name = unique(&path.name, &names);
        text += &table(path, &name);
        names.push(name);
    }
    text
}

fn table(path: &LoggedPath, name: &str) -> String {
    let LoggedPath { file, log, .. } = path;
    let queue = round_up((log.mean_bps() / 8.0 * QUEUE_SECONDS).max(LEAST_QUEUE), 1e3);
    let (rate, steps) = match &log.rates {
        Rates::Mahimahi(_) => (format!("trace = {}", quoted(file)), String::new()),
        Rates::Intervals(intervals) => steps(intervals),
    };
    format!(
        "\n# {}: {}\n[[path]]\nname  = \"{name}\"\n{rate}\nrtt   = \"{RTT}\"\nqueue = \"{}\"\n{steps}",
        file.replace(char::is_control, " "),
        log.summary().replace(char::is_control, " "),
        size_text(queue),
    )
}

/// The initial rate, and the changes.
fn steps(intervals: &[Interval]) -> (String, String) {
    let joined = join_equal(intervals);
    let mut at = 0.0;
    let mut before = time_text(at);
    let mut text = String::new();
    for pair in joined.windows(2) {
        at += pair[0].seconds;
        let time = time_text(at);
        // Steps ascend. An interval with a rounded length of zero is too short to matter.
        if time != before {
            let rate = rate_text(whole(pair[1].bps));
            let _ = writeln!(text, "  {{ at = \"{time}\", rate = \"{rate}\" }},");
        }
        before = time;
    }
    let initial = format!("rate  = \"{}\"", rate_text(whole(joined[0].bps)));
    if text.is_empty() { (initial, text) } else { (initial, format!("steps = [\n{text}]\n")) }
}

/// If there are more intervals than a scenario allows, several become one with their mean rate. Then joins
/// neighbours with the same rate.
fn join_equal(intervals: &[Interval]) -> Vec<Interval> {
    let count = intervals.len().div_ceil(MOST_STEPS);
    let mean = |some: &[Interval]| {
        let seconds = some.iter().map(|one| one.seconds).sum::<f64>();
        let bits = some.iter().map(|one| one.seconds * one.bps).sum::<f64>();
        Interval { seconds, bps: bits / seconds }
    };
    let few: Vec<Interval> = intervals.chunks(count.max(1)).map(mean).collect();
    let same = few.chunk_by(|a, b| whole(a.bps) == whole(b.bps));
    same.map(|same| Interval { bps: same[0].bps, ..mean(same) }).collect()
}

/// A time in whole microseconds.
fn time_text(seconds: f64) -> String {
    duration_text(Duration::from_micros((seconds * 1e6).round() as u64))
}

/// Rounds a size up to trailing zeros, so that it looks chosen and not measured.
fn round_up(bytes: f64, unit: f64) -> u64 {
    ((bytes / unit).ceil() * unit) as u64
}

/// A name of letters, digits, `-` and `_` that no other path has.
fn unique(name: &str, others: &[String]) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain = |c| if is_allowed(c) { c } else { '-' };
    let base: String = name.chars().map(plain).take(NAME_LENGTH).collect();
    let base =
        if base.contains(|c: char| c.is_ascii_alphanumeric()) { base } else { "path".into() };
    let mut numbered = (2..).map(|number| format!("{base}-{number}"));
    let is_free = |name: &String| !others.contains(name);
    if is_free(&base) {
        return base;
    }
    numbered.find(is_free).expect("one of so many names is free")
}
