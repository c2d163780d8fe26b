//! The report of an emulation after its end.

use std::collections::BTreeMap;
use std::path::Path;

use ropewalk_base::Duration;
use ropewalk_lab::output::write_atomically;
use ropewalk_runtime::emulate::{
    CpuTime, DROP_CAUSES, Lateness, Outcome, PathTraffic, Report, Traffic,
};
use serde::Serialize;

use crate::failure::Failure;
use crate::files::failed;
use crate::printer::{count, percent, rate, time};

/// The document of `--stats`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: &'static str,
    seed: u64,
    duration_s: f64,
    packets: u64,
    cpu_s: f64,
    cpu: CpuFigures,
    realtime: bool,
    /// Lateness of packet deliveries.
    delivery_lateness_s: LatenessFigures,
    /// Lateness of the emulator's wake-ups.
    waking_lateness_s: LatenessFigures,
    refused_packets: u64,
    broken_devices: &'a [String],
    paths: Vec<PathFigures<'a>>,
}

/// Time for which CPUs were used and waited for, s; null if the kernel does not count it.
#[derive(Debug, Serialize)]
struct CpuFigures {
    emulator_waited_s: Option<f64>,
    sender: Option<ProgramsFigures>,
    receiver: Option<ProgramsFigures>,
    /// CPU time withheld by the hypervisor, summed over the CPUs.
    stolen_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ProgramsFigures {
    used_s: f64,
    waited_s: f64,
}

#[derive(Debug, Serialize)]
struct LatenessFigures {
    count: u64,
    mean: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct PathFigures<'a> {
    name: &'a str,
    up: DirectionFigures,
    down: DirectionFigures,
}

#[derive(Debug, Serialize)]
struct DirectionFigures {
    sent_packets: u64,
    sent_bytes: u64,
    delivered_packets: u64,
    delivered_bytes: u64,
    throughput_bps: f64,
    /// Packets dropped on the path's own link, by cause, including packets of cross traffic.
    dropped: BTreeMap<&'static str, u64>,
    /// Packets marked by the queue of that link (ECN).
    marked: u64,
    duplicated: u64,
    queue_max_bytes: u64,
    queue_mean_bytes: f64,
    utilisation: f64,
}

/// Writes the document.
pub fn write(path: &Path, outcome: &Outcome, seed: u64) -> Result<(), Failure> {
    let report = &outcome.report;
    let document = Document {
        schema: "ropewalk.emulate/1",
        version: env!("CARGO_PKG_VERSION"),
        seed,
        duration_s: report.elapsed.as_secs_f64(),
        packets: packets(report),
        cpu_s: report.cpu.as_secs_f64(),
        cpu: cpu(outcome),
        realtime: report.realtime,
        delivery_lateness_s: lateness(&report.deliveries),
        waking_lateness_s: lateness(&report.wakeups),
        refused_packets: report.refused,
        broken_devices: &report.broken,
        paths: report.paths.iter().map(|path| path_figures(path, report.elapsed)).collect(),
    };
    let text = serde_json::to_string_pretty(&document)
        .map_err(|e| Failure::Run(format!("the figures cannot be written as JSON: {e}")))?;
    write_atomically(path, (text + "\n").as_bytes()).map_err(|e| failed("--stats", path, e))
}

fn cpu(outcome: &Outcome) -> CpuFigures {
    let figures = |time: CpuTime| ProgramsFigures {
        used_s: time.used.as_secs_f64(),
        waited_s: time.waited.as_secs_f64(),
    };
    CpuFigures {
        emulator_waited_s: outcome.report.cpu_wait.map(Duration::as_secs_f64),
        sender: outcome.programs.sender.map(figures),
        receiver: outcome.programs.receiver.map(figures),
        stolen_s: outcome.programs.stolen.map(Duration::as_secs_f64),
    }
}

/// The summary for stderr.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    for path in &report.paths {
        for (direction, traffic) in [("up", &path.up), ("down", &path.down)] {
            text += &line(&path.name, direction, traffic, report.elapsed);
        }
    }
    let (deliveries, wakeups) = (&report.deliveries, &report.wakeups);
    let priority = if report.realtime { "with" } else { "without" };
    text += &format!(
        "{} packets in {}, {} of a CPU {priority} real-time priority; packets late by {} p99, {} at \
         worst; awake late by {} p99, {} at worst",
        count(packets(report)),
        time(report.elapsed.as_secs_f64()),
        percent(report.cpu.as_secs_f64() / report.elapsed.as_secs_f64().max(1e-9)),
        time(deliveries.quantile(0.99).as_secs_f64()),
        time(deliveries.max().as_secs_f64()),
        time(wakeups.quantile(0.99).as_secs_f64()),
        time(wakeups.max().as_secs_f64()),
    );
    for device in &report.broken {
        text += &format!("\nthe device {device} was removed");
    }
    if report.refused > 0 {
        text += &format!("\n{} packets were refused by their device", count(report.refused));
    }
    text
}

fn line(name: &str, direction: &str, traffic: &Traffic, elapsed: Duration) -> String {
    let dropped = drops(traffic);
    let causes: Vec<String> = dropped
        .iter()
        .filter(|(_, packets)| **packets > 0)
        .map(|(cause, packets)| format!("{} {cause}", count(*packets)))
        .collect();
    let lost = if causes.is_empty() { "none".to_owned() } else { causes.join(", ") };
    format!(
        "{name}, {direction}: {} packets in, {} out, {}; dropped: {lost}\n",
        count(traffic.packets),
        count(traffic.delivered_packets),
        rate(throughput(traffic, elapsed)),
    )
}

fn drops(traffic: &Traffic) -> BTreeMap<&'static str, u64> {
    DROP_CAUSES.iter().map(|cause| (cause.name(), traffic.wire.dropped.by(*cause))).collect()
}

fn throughput(traffic: &Traffic, elapsed: Duration) -> f64 {
    traffic.delivered_bytes as f64 * 8.0 / elapsed.as_secs_f64().max(1e-9)
}

fn path_figures(path: &PathTraffic, elapsed: Duration) -> PathFigures<'_> {
    PathFigures {
        name: &path.name,
        up: direction(&path.up, elapsed),
        down: direction(&path.down, elapsed),
    }
}

fn direction(traffic: &Traffic, elapsed: Duration) -> DirectionFigures {
    DirectionFigures {
        sent_packets: traffic.packets,
        sent_bytes: traffic.bytes,
        delivered_packets: traffic.delivered_packets,
        delivered_bytes: traffic.delivered_bytes,
        throughput_bps: throughput(traffic, elapsed),
        dropped: drops(traffic),
        marked: traffic.wire.marked,
        duplicated: traffic.wire.duplicated,
        queue_max_bytes: traffic.wire.queue_max_bytes,
        queue_mean_bytes: traffic.wire.queue_mean_bytes,
        utilisation: traffic.wire.utilisation(),
    }
}

fn lateness(of: &Lateness) -> LatenessFigures {
    LatenessFigures {
        count: of.count(),
        mean: of.mean().as_secs_f64(),
        p50: of.quantile(0.5).as_secs_f64(),
        p99: of.quantile(0.99).as_secs_f64(),
        max: of.max().as_secs_f64(),
    }
}

/// Packets delivered, in both directions.
fn packets(report: &Report) -> u64 {
    let both = |path: &PathTraffic| path.up.delivered_packets + path.down.delivered_packets;
    report.paths.iter().map(both).sum()
}
