//! A measurement as a JSON document, with the names that a run's document uses.

use cpu_time::ProcessTime;
use ropewalk_apps::measure::{Direction, Measurement, MeasurementPlan};
use ropewalk_lab::result::Unit;
use ropewalk_runtime::endpoint::{PathStats, Stats};
use serde::Serialize;
use serde_json::Value;

use crate::table::{Cell, Table};

/// The JSON document of a measurement.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    /// Whether the server sent.
    reverse: bool,
    /// Whether bulk data was one ordered stream of bytes.
    in_order: bool,
    warmup_s: f64,
    seconds: f64,
    goodput_bps: f64,
    bytes: u64,
    /// Maximum time without a delivery, seconds.
    longest_gap_s: f64,
    receive_buffer: Buffer,
    /// Time from the first transmission of bulk data to its in-order delivery. Only known to the
    /// sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    app_delay_s: Option<AppDelay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_s: Option<Latency>,
    paths: Vec<Path>,
    /// CPU time during the measurement: of the receiver of bulk data, and of this end in total, seconds.
    cpu_s: Cpu,
}

#[derive(Debug, Serialize)]
struct Buffer {
    mean_bytes: f64,
    max_bytes: u64,
    /// Time in which only the receive window blocked a path. Only known to the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct AppDelay {
    p50: f64,
    p99: f64,
}

#[derive(Debug, Serialize)]
struct Latency {
    p50: f64,
    p99: f64,
    samples: usize,
}

#[derive(Debug, Serialize)]
struct Path {
    /// Interface, otherwise local address.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<String>,
    sent_packets: u64,
    retransmitted_packets: u64,
    lost_packets: u64,
    delivered_bytes: u64,
    received_bytes: u64,
    srtt_s: Option<f64>,
    cwnd_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Cpu {
    receiver: f64,
    here: f64,
}

impl Document {
    /// The document of a measurement.
    pub fn new(measured: &Measurement, plan: MeasurementPlan) -> Self {
        let figures = &measured.figures;
        let sender = measured.stats.as_ref().filter(|_| plan.direction == Direction::Up);
        let latency = percentiles(&measured.latencies_s);
        let samples = measured.latencies_s.len();
        Self {
            schema: "ropewalk.bench/1",
            reverse: plan.direction == Direction::Down,
            in_order: plan.in_order,
            warmup_s: plan.warmup_s,
            seconds: figures.seconds,
            goodput_bps: figures.bytes as f64 * 8.0 / figures.seconds.max(1e-9),
            bytes: figures.bytes,
            longest_gap_s: figures.gap_s,
            receive_buffer: Buffer {
                mean_bytes: figures.mean_out_of_order_bytes,
                max_bytes: figures.max_out_of_order_bytes,
                blocked_s: sender.map(|stats| stats.sender.blocked.as_secs_f64()),
            },
            app_delay_s: measured
                .delivery
                .map(|delay| AppDelay { p50: delay.p50_s, p99: delay.p99_s }),
            latency_s: latency.map(|[p50, p99]| Latency { p50, p99, samples }),
            paths: measured.stats.iter().flat_map(paths).collect(),
            cpu_s: Cpu {
                receiver: figures.cpu_s,
                here: ProcessTime::now().as_duration().as_secs_f64(),
            },
        }
    }
}

impl Document {
    /// Every figure of the measurement and of each path in its own row, as in `run --csv`.
    pub fn tidy(&self) -> Table {
        let mut table = Table::empty();
        table.name("path", "path");
        table.name("figure", "figure");
        table.column("unit", "unit");
        table.column("value", "value");
        let mut row = |path: &str, figure: &str, value: f64| {
            let unit = unit(figure);
            let cells = [path.into(), figure.into(), unit.symbol().into(), Cell::of(value, unit)];
            table.row::<Cell>(cells.into());
        };
        for (figure, value) in self.figures() {
            row("", &figure, value);
        }
        for path in &self.paths {
            let ends =
                [path.link.as_deref(), path.remote.as_deref()].map(Option::unwrap_or_default);
            let name = ends.join(" -> ");
            for (figure, value) in numbers("", &serde_json::json!(path)) {
                row(&name, &figure, value);
            }
        }
        table
    }

    /// The figures of the measurement.
    pub fn summary(&self) -> Table {
        let mut table = Table::new(&["figure", "value"]);
        for (figure, value) in self.figures() {
            let unit = unit(&figure);
            table.row(vec![Cell::from(figure), Cell::of(value, unit)]);
        }
        table
    }

    /// The numbers of the document, without those of the paths.
    fn figures(&self) -> Vec<(String, f64)> {
        let mut document = serde_json::json!(self);
        document["paths"] = Value::Null;
        numbers("", &document)
    }
}

/// The numbers in an object and in the objects within it, with their keys joined by dots.
fn numbers(prefix: &str, value: &Value) -> Vec<(String, f64)> {
    match value {
        Value::Object(fields) => {
            let name = |key: &String| match prefix {
                "" => key.clone(),
                prefix => format!("{prefix}.{key}"),
            };
            fields.iter().flat_map(|(key, value)| numbers(&name(key), value)).collect()
        }
        Value::Number(number) => {
            number.as_f64().map(|n| (prefix.to_owned(), n)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The unit of a figure, derived from its name: a suffix at the end or before the dot.
fn unit(figure: &str) -> Unit {
    let is = |suffix: &str| {
        figure.split('.').any(|part| part == suffix || part.ends_with(&format!("_{suffix}")))
    };
    match () {
        () if is("samples") || is("packets") => Unit::Count,
        () if is("bps") => Unit::BitsPerSecond,
        () if is("bytes") => Unit::Bytes,
        () if is("s") || is("seconds") => Unit::Seconds,
        () => Unit::Count,
    }
}

fn paths(stats: &Stats) -> impl Iterator<Item = Path> + '_ {
    stats.paths.iter().map(|path: &PathStats| Path {
        link: path.local.as_ref().map(ToString::to_string),
        remote: path.remote.map(|remote| remote.to_string()),
        sent_packets: path.counters.sent_packets,
        retransmitted_packets: path.counters.retransmitted,
        lost_packets: path.counters.lost,
        delivered_bytes: path.counters.delivered_bytes,
        received_bytes: path.received_bytes,
        srtt_s: path.srtt_s,
        cwnd_bytes: path.cwnd_bytes,
    })
}

/// Median and 99th percentile; `None` without samples.
pub fn percentiles(samples: &[f64]) -> Option<[f64; 2]> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([0.5, 0.99].map(|share| sorted[(last as f64 * share).round() as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_units_that_their_names_end_with() {
        for (figure, expected) in [
            ("goodput_bps", Unit::BitsPerSecond),
            ("bytes", Unit::Bytes),
            ("receive_buffer.mean_bytes", Unit::Bytes),
            ("seconds", Unit::Seconds),
            ("latency_s.p99", Unit::Seconds),
            ("latency_s.samples", Unit::Count),
            ("lost_packets", Unit::Count),
        ] {
            assert_eq!(unit(figure), expected, "{figure}");
        }
        let nested = serde_json::json!({ "a": { "b": 1, "c": null }, "d": "text", "e": 2.5 });
        assert_eq!(numbers("", &nested), [("a.b".to_owned(), 1.0), ("e".to_owned(), 2.5)]);
    }

    #[test]
    fn percentiles_are_samples() {
        assert_eq!(percentiles(&[]), None);
        assert_eq!(percentiles(&[3.0]), Some([3.0, 3.0]));
        let hundred: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentiles(&hundred), Some([50.0, 99.0]));
    }
}
