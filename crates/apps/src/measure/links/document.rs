//! A measurement of links as a JSON document.

use serde::Serialize;

use super::{DirectionEstimate, LinkEstimate, LinkMeasurement};
use crate::measure::Direction;
use crate::measure::estimate::{JitterFit, LossModel};

/// The document `ropewalk.measure/1`. Rates and sizes are those of IP packets.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    seconds: f64,
    sent_bytes: u64,
    links: Vec<Link<'a>>,
    shared_bottlenecks: Vec<Vec<&'a str>>,
    sharing_tests: Vec<SharingTest<'a>>,
    /// The scenario file.
    scenario: &'a str,
}

#[derive(Debug, Serialize)]
struct Link<'a> {
    name: &'a str,
    base_rtt_s: Option<f64>,
    /// Round-trip times of small packets on the idle link.
    rtt_s: Quantiles,
    mtu_bytes: u32,
    up: OneWay,
    down: OneWay,
}

#[derive(Debug, Serialize)]
struct Quantiles {
    p50: f64,
    p95: f64,
    p99: f64,
}

#[derive(Debug, Serialize)]
struct OneWay {
    capacity: Option<Capacity>,
    queue: Option<Queue>,
    loss: Option<Loss>,
    /// Delay above the minimum, of small packets on the idle link.
    delay_s: Option<Quantiles>,
    jitter_s: Option<f64>,
    jitter_fit: Option<Jitter>,
    reordered: Option<f64>,
    rate_variation: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Capacity {
    rate_bps: f64,
    low_bps: f64,
    high_bps: f64,
    seconds: f64,
    /// Whether the link was full; otherwise the rate is a lower bound.
    saturated: bool,
}

#[derive(Debug, Serialize)]
struct Queue {
    bytes: f64,
    delay_s: f64,
    drops: usize,
    /// Whether the queue was full; otherwise the size is a lower bound.
    full: bool,
}

#[derive(Debug, Serialize)]
struct Loss {
    sent_packets: usize,
    lost_packets: usize,
    rate: f64,
    low: f64,
    high: f64,
    probes_per_s: f64,
    burst_mean: f64,
    model: Model,
    model_burst_mean: f64,
    log_likelihood_gain: f64,
}

#[derive(Debug, Serialize)]
#[serde(tag = "name", rename_all = "kebab-case")]
enum Model {
    Bernoulli { rate: f64 },
    GilbertElliott { p: f64, r: f64, bad: f64 },
}

#[derive(Debug, Serialize)]
#[serde(tag = "distribution", rename_all = "kebab-case")]
enum Jitter {
    Uniform { max_s: f64 },
    Exponential { mean_s: f64 },
}

#[derive(Debug, Serialize)]
struct SharingTest<'a> {
    direction: &'static str,
    overloaded: &'a str,
    watched: &'a str,
    rise: f64,
    correlation: f64,
    shared: bool,
}

impl<'a> Document<'a> {
    /// The document of a measurement whose links have these names, with its scenario file.
    ///
    /// # Panics
    /// If there are fewer names than links.
    pub fn new(found: &LinkMeasurement, names: &'a [String], scenario: &'a str) -> Self {
        let link = |(link, name): (&LinkEstimate, &'a String)| Link {
            name,
            base_rtt_s: link.rtt_s,
            rtt_s: quantiles(link.rtt_quantiles_s),
            mtu_bytes: link.mtu_bytes,
            up: one_way(&link.up),
            down: one_way(&link.down),
        };
        let tests = found.sharing.iter().map(|test| SharingTest {
            direction: if test.direction == Direction::Up { "up" } else { "down" },
            overloaded: &names[test.overloaded],
            watched: &names[test.watched],
            rise: test.found.rise,
            correlation: test.found.correlation,
            shared: test.found.shared,
        });
        let groups = found.groups().into_iter();
        let groups = groups.map(|group| group.into_iter().map(|i| names[i].as_str()).collect());
        Self {
            schema: "ropewalk.measure/1",
            seconds: found.seconds,
            sent_bytes: found.sent_bytes,
            links: found.links.iter().zip(names).map(link).collect(),
            shared_bottlenecks: groups.collect(),
            sharing_tests: tests.collect(),
            scenario,
        }
    }
}

const fn quantiles([p50, p95, p99]: [f64; 3]) -> Quantiles {
    Quantiles { p50, p95, p99 }
}

fn one_way(found: &DirectionEstimate) -> OneWay {
    let capacity = found.capacity.map(|found| Capacity {
        rate_bps: found.rate_bps,
        low_bps: found.low_bps,
        high_bps: found.high_bps,
        seconds: found.seconds,
        saturated: found.saturated,
    });
    let queue = found.queue.map(|found| Queue {
        bytes: found.bytes,
        delay_s: found.delay_s,
        drops: found.drops,
        full: found.full,
    });
    let loss = found.loss.map(|loss| Loss {
        sent_packets: loss.sent,
        lost_packets: loss.lost,
        rate: loss.rate,
        low: loss.low,
        high: loss.high,
        probes_per_s: found.loss_probes_per_s,
        burst_mean: loss.burst_mean,
        model: match loss.model {
            LossModel::Bernoulli { rate } => Model::Bernoulli { rate },
            LossModel::GilbertElliott { p, r, bad } => Model::GilbertElliott { p, r, bad },
        },
        model_burst_mean: loss.model_burst_mean,
        log_likelihood_gain: loss.log_likelihood_gain,
    });
    OneWay {
        capacity,
        queue,
        loss,
        delay_s: found.delays.map(|delays| quantiles(delays.above_s)),
        jitter_s: found.delays.map(|delays| delays.jitter_s),
        jitter_fit: found.delays.map(|delays| match delays.fit {
            JitterFit::Uniform(max_s) => Jitter::Uniform { max_s },
            JitterFit::Exponential(mean_s) => Jitter::Exponential { mean_s },
        }),
        reordered: found.delays.map(|delays| delays.reordered),
        rate_variation: found.variation,
    }
}
