//! A scenario file from a measurement of links, with comments that say how each value was found.

use std::fmt::Write;

use ropewalk_runtime::endpoint::Association;

use super::result::{DirectionEstimate, LinkEstimate, LinkMeasurement};
use crate::measure::Direction;
use crate::measure::estimate::{JitterFit, LossModel};

/// Width of the 10th to 90th percentile of delays below which jitter is left out: the two hosts cause as much.
const JITTER_MIN_S: f64 = 2e-3;
/// Minimum queue of a scenario: one packet of the default size, bytes.
const LEAST_QUEUE: f64 = 1500.0;
/// Share of the shared bottleneck's rate above which a link's own capacity cannot be distinguished from it.
const OWN_RATE: f64 = 0.9;

/// A scenario, and its additional files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioFiles {
    /// The scenario file.
    pub toml: String,
    /// Names and contents of traces.
    pub traces: Vec<(String, String)>,
}

/// Names of the links: the interface that each path uses, or its position.
pub fn names(association: &Association, found: &LinkMeasurement) -> Vec<String> {
    let paths = association.stats().map(|stats| stats.paths).unwrap_or_default();
    let interface = |path: usize| paths.get(path)?.local.as_ref()?.interface.clone();
    let mut names: Vec<String> = Vec::new();
    for (i, link) in found.links.iter().enumerate() {
        let valid = |name: &String| {
            name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
                && !names.contains(name)
        };
        let name = interface(link.path).filter(valid);
        names.push(name.unwrap_or_else(|| format!("path{}", i + 1)));
    }
    names
}

/// A shared bottleneck: its members, and its rate in each direction if they share it there.
struct Shared {
    name: String,
    members: Vec<usize>,
    rates_bps: [Option<f64>; 2],
}

/// Writes the scenario of a measurement. `names` are those of its links; `stem` is the prefix of trace file
/// names.
pub fn scenario(found: &LinkMeasurement, names: &[String], stem: &str) -> ScenarioFiles {
    let mut files = ScenarioFiles { toml: String::new(), traces: Vec::new() };
    let shared: Vec<Shared> = found
        .groups()
        .into_iter()
        .enumerate()
        .map(|(i, members)| {
            let rates_bps = [Direction::Up, Direction::Down]
                .map(|direction| rate_of(found, &members, direction));
            Shared { name: format!("bottleneck{}", i + 1), members, rates_bps }
        })
        .collect();
    let toml = &mut files.toml;
    let _ = writeln!(
        toml,
        "# Measured by `ropewalk measure` in {:.1} s with {:.1} MB of probes. Rates and sizes are those of IP\n\
         # packets. Intervals contain the value with 99 % confidence.\n\n[transfer]\nprotocol = \"cmt-sctp\"\n\
         duration = \"60 s\"\nreceive_buffer = \"16 MiB\"",
        found.seconds,
        found.sent_bytes as f64 / 1e6
    );
    for (i, link) in found.links.iter().enumerate() {
        let within = shared.iter().find(|shared| shared.members.contains(&i));
        write_path(&mut files, link, &names[i], within, stem);
    }
    for shared in &shared {
        write_shared(&mut files.toml, found, shared);
    }
    files
}

/// The largest capacity of links that share a bottleneck in this direction. `None` if they do not.
fn rate_of(found: &LinkMeasurement, members: &[usize], direction: Direction) -> Option<f64> {
    let shares = |a: &usize| members.iter().any(|b| a != b && found.shares(direction, *a, *b));
    let rates = members.iter().filter(|member| shares(member));
    let rates = rates.filter_map(|member| found.links[*member].of(direction).capacity);
    rates.map(|capacity| capacity.rate_bps).reduce(f64::max)
}

fn write_path(
    files: &mut ScenarioFiles,
    link: &LinkEstimate,
    name: &str,
    shared: Option<&Shared>,
    stem: &str,
) {
    let toml = &mut files.toml;
    let _ = writeln!(toml, "\n[[path]]\nname = \"{name}\"");
    if let Some(rtt) = link.rtt_s {
        let [p50, p95, p99] = link.rtt_quantiles_s.map(|s| s * 1e3);
        let _ = writeln!(
            toml,
            "# Least sum of the delays in both directions, without serialisation. Small packets on the idle link: \
             median {p50:.1} ms,\n# 95th percentile {p95:.1} ms, 99th {p99:.1} ms.\nrtt = \"{:.2} ms\"",
            rtt * 1e3
        );
    }
    for (direction, suffix) in [(Direction::Up, ""), (Direction::Down, "_down")] {
        let estimate = link.of(direction);
        let limit = shared.and_then(|shared| shared.rates_bps[direction as usize]);
        write_rate(files, estimate, limit, &format!("{stem}-{name}"), suffix);
        write_losses(&mut files.toml, estimate, suffix);
        write_jitter(&mut files.toml, estimate, suffix);
    }
    let toml = &mut files.toml;
    if link.mtu_bytes > 0 {
        let _ = writeln!(
            toml,
            "# Largest packet that was acknowledged.\nmtu = \"{} B\"",
            link.mtu_bytes
        );
    }
    if let Some(shared) = shared {
        let _ = writeln!(toml, "via = [\"{}\"]", shared.name);
    }
}

fn write_rate(
    files: &mut ScenarioFiles,
    estimate: &DirectionEstimate,
    shared_bps: Option<f64>,
    stem: &str,
    suffix: &str,
) {
    let toml = &mut files.toml;
    let Some(capacity) = estimate.capacity else {
        let _ = writeln!(
            toml,
            "# rate{suffix}: not measured; no probe arrived, or --max-bytes was reached."
        );
        return;
    };
    if let Some(bottleneck) = shared_bps.filter(|rate| capacity.rate_bps >= OWN_RATE * rate) {
        let _ = writeln!(
            toml,
            "# The shared bottleneck hides the rate of this link itself. It is at least as large; twice is assumed.\n\
             rate{suffix} = \"{}\"\nqueue{suffix} = \"unlimited\"",
            rate(2.0 * bottleneck)
        );
        return;
    }
    let word = if capacity.saturated { "Overloaded" } else { "Lower bound, the link was not full" };
    let _ = writeln!(
        toml,
        "# {word} for {:.1} s: {} to {}.",
        capacity.seconds,
        rate(capacity.low_bps),
        rate(capacity.high_bps)
    );
    if let Some(variation) = estimate.variation {
        let _ = writeln!(
            toml,
            "# Between intervals of 0.35 s or more, the rate varied by {:.0} %.",
            variation * 100.0
        );
    }
    if estimate.trace.is_empty() {
        let _ = writeln!(toml, "rate{suffix} = \"{}\"", rate(capacity.rate_bps));
    } else {
        let file = format!("{stem}{}.mahi", suffix.replace('_', "-"));
        let _ = writeln!(toml, "trace{suffix} = \"{file}\"");
        let lines = estimate.trace.iter().map(|ms| format!("{ms}\n")).collect();
        files.traces.push((file, lines));
    }
    write_queue(&mut files.toml, estimate, suffix);
}

fn write_queue(toml: &mut String, estimate: &DirectionEstimate, suffix: &str) {
    let Some(queue) = estimate.queue else { return };
    let [low, high] = queue.quartiles_s.map(|s| s * 1e3);
    let _ = if queue.full {
        writeln!(
            toml,
            "# Longest delay before loss {:.1} ms, median of {} drops; quartiles {low:.1} and {high:.1} ms.",
            queue.delay_s * 1e3,
            queue.drops
        )
    } else {
        writeln!(
            toml,
            "# Lower bound: nothing was dropped at a delay of {:.1} ms.",
            queue.delay_s * 1e3
        )
    };
    let _ = writeln!(toml, "queue{suffix} = \"{:.0} B\"", queue.bytes.max(LEAST_QUEUE));
}

fn write_losses(toml: &mut String, estimate: &DirectionEstimate, suffix: &str) {
    let Some(loss) = estimate.loss else { return };
    let _ = writeln!(
        toml,
        "# {} of {} probes lost at {:.0} per second: {:.3} % to {:.3} %.",
        loss.lost,
        loss.sent,
        estimate.loss_probes_per_s,
        loss.low * 100.0,
        loss.high * 100.0
    );
    match loss.model {
        LossModel::Bernoulli { rate } if loss.lost == 0 => {
            let _ = writeln!(toml, "loss{suffix} = {rate:.1}");
        }
        LossModel::Bernoulli { rate } => {
            let _ = writeln!(
                toml,
                "# No pattern: bursts of {:.2} on average, independent losses have {:.2}.\nloss{suffix} = {rate:.6}",
                loss.burst_mean, loss.model_burst_mean
            );
        }
        LossModel::GilbertElliott { p, r, bad } => {
            let _ = writeln!(
                toml,
                "# Bursts of {:.2} on average, the model has {:.2}. Its log-likelihood is {:.1} above that of \
                 independent losses.\n\
                 loss{suffix} = {{ model = \"gilbert-elliott\", p = {p:.6}, r = {r:.6}, bad = {bad:.4} }}",
                loss.burst_mean, loss.model_burst_mean, loss.log_likelihood_gain
            );
        }
    }
}

fn write_jitter(toml: &mut String, estimate: &DirectionEstimate, suffix: &str) {
    let Some(delays) = estimate.delays else { return };
    let [p50, p95, _] = delays.above_s.map(|s| s * 1e3);
    let _ = writeln!(
        toml,
        "# Delay of small packets above the least: median {p50:.2} ms, 95th percentile {p95:.2} ms; {:.1} % were \
         reordered.",
        delays.reordered * 100.0
    );
    let keep = if delays.reordered > 0.0 { ", keep_order = false" } else { "" };
    match delays.fit {
        JitterFit::Uniform(width) if 0.8 * width >= JITTER_MIN_S => {
            let _ = writeln!(
                toml,
                "jitter{suffix} = {{ distribution = \"uniform\", max = \"{:.2} ms\"{keep} }}",
                width * 1e3
            );
        }
        JitterFit::Exponential(mean) if mean * 9f64.ln() >= JITTER_MIN_S => {
            let _ = writeln!(
                toml,
                "jitter{suffix} = {{ distribution = \"exponential\", mean = \"{:.2} ms\"{keep} }}",
                mean * 1e3
            );
        }
        JitterFit::Uniform(_) | JitterFit::Exponential(_) => {}
    }
}

fn write_shared(toml: &mut String, found: &LinkMeasurement, shared: &Shared) {
    let _ = writeln!(
        toml,
        "\n# While one of these links was overloaded, packets on the other waited too:"
    );
    for test in found
        .sharing
        .iter()
        .filter(|test| shared.members.contains(&test.overloaded) && test.found.shared)
    {
        let _ = writeln!(
            toml,
            "# {} to {}: {:.0} % of the delay, correlation {:.2}.",
            test.overloaded + 1,
            test.watched + 1,
            test.found.rise * 100.0,
            test.found.correlation
        );
    }
    let _ = writeln!(toml, "[[link]]\nname = \"{}\"\ndelay = \"0 s\"", shared.name);
    for (direction, suffix) in [(Direction::Up, ""), (Direction::Down, "_down")] {
        let Some(limit) = shared.rates_bps[direction as usize] else {
            let _ = writeln!(
                toml,
                "# Not shared in this direction.\nrate{suffix} = \"1000 Gbit/s\"\nqueue{suffix} = \"unlimited\""
            );
            continue;
        };
        let _ = writeln!(
            toml,
            "# The largest capacity of a link that leads over it.\nrate{suffix} = \"{}\"",
            rate(limit)
        );
        let queues = shared.members.iter().filter_map(|member| {
            let estimate = found.links[*member].of(direction);
            let own = estimate.capacity.is_some_and(|own| own.rate_bps >= OWN_RATE * limit);
            estimate.queue.filter(|_| own)
        });
        if let Some(queue) = queues.max_by(|a, b| a.bytes.total_cmp(&b.bytes)) {
            let _ = writeln!(toml, "queue{suffix} = \"{:.0} B\"", queue.bytes.max(LEAST_QUEUE));
        }
    }
}

fn rate(bps: f64) -> String {
    format!("{:.3} Mbit/s", bps / 1e6)
}
