//! A measurement as a JSON document, with the names that a run's document uses.

use cpu_time::ProcessTime;
use ropewalk_apps::measure::{Direction, Measurement, MeasurementPlan};
use ropewalk_runtime::endpoint::{PathStats, Stats};
use serde::Serialize;

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
    /// Longest time in which nothing was delivered, seconds.
    longest_gap_s: f64,
    receive_buffer: Buffer,
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
    /// Time in which the receive window alone blocked a path; known to the sender only.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Latency {
    p50: f64,
    p99: f64,
    samples: usize,
}

#[derive(Debug, Serialize)]
struct Path {
    /// Interface, else local address.
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
            latency_s: latency.map(|[p50, p99]| Latency { p50, p99, samples }),
            paths: measured.stats.iter().flat_map(paths).collect(),
            cpu_s: Cpu {
                receiver: figures.cpu_s,
                here: ProcessTime::now().as_duration().as_secs_f64(),
            },
        }
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
    fn percentiles_are_samples() {
        assert_eq!(percentiles(&[]), None);
        assert_eq!(percentiles(&[3.0]), Some([3.0, 3.0]));
        let hundred: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentiles(&hundred), Some([50.0, 99.0]));
    }
}
