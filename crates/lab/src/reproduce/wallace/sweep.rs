//! Figures 5 to 8: one path with one varied parameter (Section 6.1).

use ropewalk_models::renewal::{self, PeriodLosses, RoundTrip};
use ropewalk_models::{LossModel, LossyPath, markov, window_packets};

use super::super::plan::{RunKey, Runs};
use super::{PAPER, seeds};

const PACKET_BYTES: f64 = 1500.0;
const RTO_MAX_S: f64 = 60.0;
/// Runs of each point.
pub const SEEDS: u64 = 10;

/// A path and its receive buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The item, which determines the seeds.
    item: &'static str,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Mbit/s.
    pub rate_mbps: f64,
    /// Propagation there and back, ms.
    pub rtt_ms: f64,
    /// KiB.
    pub buffer_kib: f64,
    /// Whether the first loss of a round also loses the rest of it (Eq 7).
    losses: LossModel,
    /// The window that determines the renewal model's round-trip time.
    round_trip: RoundTrip,
}

/// Values of the parameters that are not varied (Section 6.1.1).
const BASE: Point = Point {
    item: "figure-5",
    loss: 1e-3,
    rate_mbps: 21.0,
    rtt_ms: 40.0,
    buffer_kib: 128.0,
    losses: LossModel::Independent,
    round_trip: RoundTrip::AtEnd,
};

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Heading.
    pub title: &'static str,
    /// The varied parameter, with its unit.
    pub x_label: &'static str,
    /// `linear` or `log`.
    pub x_scale: &'static str,
    values: &'static [f64],
    at: fn(f64) -> Point,
}

/// The sweep of an item, if it is one. The paper only shows its own points in the figures.
pub fn sweep(item: &str) -> Option<Sweep> {
    Some(match item {
        "figure-5" => Sweep {
            title: "Figure 5: models against packets, loss varied",
            x_label: "Probability of loss p",
            x_scale: "log",
            values: &[1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
            at: |loss| Point { loss, ..BASE },
        },
        "figure-6" => Sweep {
            title: "Figure 6: models against packets, rate varied",
            x_label: "Rate b (Mbit/s)",
            x_scale: "linear",
            values: &[1.0, 2.0, 5.0, 10.0, 21.0, 35.0, 50.0],
            at: |rate_mbps| Point { item: "figure-6", rate_mbps, ..BASE },
        },
        // The reading with which both pairs of numbers in Section 6.1.2 are consistent.
        "figure-6-20ms" => Sweep {
            title: "Figure 6 with d = 20 ms and correlated losses",
            x_label: "Rate b (Mbit/s)",
            x_scale: "linear",
            values: &[
                2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0,
                30.0, 35.0, 40.0, 45.0, 50.0,
            ],
            at: |rate_mbps| Point {
                item: "figure-6-20ms",
                rate_mbps,
                rtt_ms: 20.0,
                losses: LossModel::Correlated,
                round_trip: RoundTrip::AtMean,
                ..BASE
            },
        },
        "ns2" => Sweep { at: |loss| Point { item: "ns2", loss, ..BASE }, ..sweep("figure-5")? },
        "figure-7" => Sweep {
            title: "Figure 7: models against packets, delay varied",
            x_label: "Round trip d (ms)",
            x_scale: "linear",
            values: &[10.0, 20.0, 40.0, 60.0, 80.0, 100.0],
            at: |rtt_ms| Point { item: "figure-7", rtt_ms, ..BASE },
        },
        "figure-8" => Sweep {
            title: "Figure 8: models against packets, receive buffer varied",
            x_label: "Receive buffer r (KiB)",
            x_scale: "linear",
            values: &[32.0, 64.0, 96.0, 128.0, 176.0, 256.0],
            at: |buffer_kib| Point { item: "figure-8", buffer_kib, ..BASE },
        },
        _ => return None,
    })
}

impl Sweep {
    /// Values of the varied parameter, with their points.
    pub fn points(&self) -> impl Iterator<Item = (f64, Point)> {
        self.values.iter().map(|value| (*value, (self.at)(*value)))
    }
}

/// Throughput model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Section 4.3.
    Markov,
    /// Section 4.4.
    Renewal,
}

impl Point {
    /// The simulations of this point.
    pub fn keys(&self) -> Vec<RunKey> {
        let timeout_ms = 3.0 * self.rtt_ms;
        let losses = match self.losses {
            LossModel::Independent => "bernoulli",
            LossModel::Correlated => "round",
        };
        let with = |seed| {
            RunKey::new(PAPER, "one-path.toml", "round-robin")
                .with(format!("path.one.loss.model={losses}"))
                .with(format!("path.one.loss.rate={}", self.loss))
                .with(format!("path.one.rate={}Mbit/s", self.rate_mbps))
                .with(format!("path.one.rtt={}ms", self.rtt_ms))
                .with(format!("sctp.rto_min={timeout_ms}ms"))
                .with(format!("sctp.rto_initial={timeout_ms}ms"))
                .with(format!("transfer.receive_buffer={}KiB", self.buffer_kib))
                .with(format!("transfer.seed={seed}"))
        };
        seeds(self.item, SEEDS).map(with).collect()
    }

    /// Goodput on the wire with each seed, bit/s.
    ///
    /// # Errors
    /// A message if a run failed.
    pub fn simulated_bps(&self, runs: &Runs) -> Result<Vec<f64>, String> {
        let one = |key: &RunKey| Ok(runs.get(key)?.result.goodput_wire_bps);
        self.keys().iter().map(one).collect()
    }

    /// Throughput by a model, bit/s on the wire.
    ///
    /// # Errors
    /// A message if the model rejects a parameter.
    pub fn model_bps(&self, model: Model) -> Result<f64, String> {
        let words = |error: ropewalk_models::OutOfRange| error.to_string();
        let (rate_bps, delay_s) = (self.rate_mbps * 1e6, self.rtt_ms * 1e-3);
        let path = LossyPath::from_bits(rate_bps, delay_s, self.loss, RTO_MAX_S, PACKET_BYTES);
        let path = path.map_err(words)?;
        let window = window_packets(self.buffer_kib * 1024.0, PACKET_BYTES).map_err(words)?;
        let pps = match model {
            Model::Markov => markov::throughput_pps(&path, window, self.losses),
            Model::Renewal => {
                let losses = PeriodLosses::HalfWindow;
                renewal::solve_with(&path, window, losses, self.round_trip)
                    .map(|solution| solution.throughput_pps)
            }
        };
        Ok(pps.map_err(words)? * PACKET_BYTES * 8.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_scenarios_that_stand_and_both_models() {
        for item in ["figure-5", "figure-6", "figure-6-20ms", "figure-7", "figure-8", "ns2"] {
            for (x, point) in sweep(item).unwrap().points() {
                let keys = point.keys();
                assert_eq!(keys.len() as u64, SEEDS);
                let scenario = keys[0].scenario().unwrap();
                let timeout_s = scenario.sctp.rto_min.unwrap().as_secs_f64();
                assert!((timeout_s * 1e3 - 3.0 * point.rtt_ms).abs() < 1e-6, "{timeout_s}");
                for model in [Model::Markov, Model::Renewal] {
                    let bps = point.model_bps(model).unwrap();
                    assert!(bps > 1e5 && bps <= point.rate_mbps * 1e6, "{item} {x}: {bps}");
                }
            }
        }
        assert!(sweep("figure-9").is_none());
    }
}
