//! Figures 9 to 12: static against dynamic window management on two paths (Section 6.2).

use ropewalk_models::optimise::{Members, PathTable, allocate};
use ropewalk_models::{LossModel, LossyPath, window_packets};

use super::super::judge::fraction;
use super::super::plan::{RunKey, Runs};
use super::{PAPER, seeds};

const PACKET_BYTES: f64 = 1500.0;
const RTO_MAX_S: f64 = 60.0;
const FIRST_RATE_MBPS: f64 = 21.0;
const FIRST_RTT_MS: f64 = 40.0;

/// Loss rates of the first path in the figures, ascending.
pub const LOSSES: [f64; 7] = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];

/// Pairs of runs of each point.
pub const SEEDS: u64 = 10;

/// One curve of a figure: the second path, and the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// The item, which determines the seeds.
    item: &'static str,
    /// The varied parameter, with its unit.
    pub label: &'static str,
    rate_mbps: f64,
    rtt_ms: f64,
    loss: f64,
    buffer_kib: f64,
}

const BASE: Curve = Curve {
    item: "figure-9",
    label: "",
    rate_mbps: 20.0,
    rtt_ms: 40.0,
    loss: 1e-4,
    buffer_kib: 128.0,
};

/// The curves of an item; empty if it has none.
pub fn curves(item: &str) -> Vec<Curve> {
    let rate = |label, rate_mbps| Curve { label, rate_mbps, ..BASE };
    let buffer = |label, buffer_kib| Curve { item: "figure-10", label, buffer_kib, ..BASE };
    let loss = |label, loss| Curve { item: "figure-11", label, loss, ..BASE };
    let delay = |label, rtt_ms| Curve { item: "figure-12", label, rtt_ms, ..BASE };
    match item {
        "figure-9" => vec![
            rate("5 Mbit/s", 5.0),
            rate("10 Mbit/s", 10.0),
            rate("15 Mbit/s", 15.0),
            rate("20 Mbit/s", 20.0),
        ],
        "figure-10" => vec![
            buffer("64 KiB", 64.0),
            buffer("96 KiB", 96.0),
            buffer("128 KiB", 128.0),
            buffer("192 KiB", 192.0),
            buffer("256 KiB", 256.0),
        ],
        "figure-11" => {
            vec![loss("1e-4", 1e-4), loss("1e-3", 1e-3), loss("1e-2", 1e-2), loss("1e-1", 1e-1)]
        }
        "figure-12" => vec![
            delay("20 ms", 20.0),
            delay("40 ms", 40.0),
            delay("80 ms", 80.0),
            delay("100 ms", 100.0),
        ],
        _ => Vec::new(),
    }
}

/// Two runs with the same point and seed, one with each manager.
#[derive(Clone, Debug)]
pub struct Pair {
    /// With static limits.
    pub fixed: RunKey,
    /// With dynamic ranks.
    pub dynamic: RunKey,
}

impl Curve {
    /// The best limits by the Markov model with independent losses (Eq 56 to 60, note 9), packets.
    fn limits(&self, first_loss: f64) -> Result<Vec<u32>, String> {
        let words = |error: ropewalk_models::OutOfRange| error.to_string();
        let packets = window_packets(self.buffer_kib * 1024.0, PACKET_BYTES).map_err(words)?;
        let table = |rate_mbps: f64, rtt_ms: f64, loss| {
            let (rate_bps, delay_s) = (rate_mbps * 1e6, rtt_ms * 1e-3);
            let path = LossyPath::from_bits(rate_bps, delay_s, loss, RTO_MAX_S, PACKET_BYTES)?;
            PathTable::markov(&path, packets, LossModel::Independent)
        };
        let first = table(FIRST_RATE_MBPS, FIRST_RTT_MS, first_loss).map_err(words)?;
        let second = table(self.rate_mbps, self.rtt_ms, self.loss).map_err(words)?;
        let best = allocate(&[first, second], packets, Members::All).map_err(|e| e.to_string())?;
        Ok(best.limits_packets)
    }

    /// The simulations of one point of the curve, a pair for each seed.
    ///
    /// # Errors
    /// A message if the model or the optimiser rejects the parameters.
    pub fn keys(&self, first_loss: f64) -> Result<Vec<Pair>, String> {
        let limits = self.limits(first_loss)?;
        let timeout_ms = 3.0 * self.rtt_ms.max(FIRST_RTT_MS);
        let with = |seed| {
            let dynamic = RunKey::new(PAPER, "two-paths.toml", "round-robin")
                .with(format!("path.first.loss.rate={first_loss}"))
                .with(format!("path.second.rate={}Mbit/s", self.rate_mbps))
                .with(format!("path.second.rtt={}ms", self.rtt_ms))
                .with(format!("path.second.loss.rate={}", self.loss))
                .with(format!("sctp.rto_min={timeout_ms}ms"))
                .with(format!("sctp.rto_initial={timeout_ms}ms"))
                .with(format!("transfer.receive_buffer={}KiB", self.buffer_kib))
                .with(format!("transfer.seed={seed}"));
            let fixed = dynamic
                .clone()
                .with("transfer.window_manager=static")
                .with(format!("path.first.window_limit={}packets", limits[0]))
                .with(format!("path.second.window_limit={}packets", limits[1]));
            Pair { fixed, dynamic }
        };
        Ok(seeds(self.item, SEEDS).map(with).collect())
    }

    /// Gain of static limits over dynamic ranks, as a fraction of the latter, for each seed.
    ///
    /// # Errors
    /// A message if a run failed.
    pub fn gains(&self, first_loss: f64, runs: &Runs) -> Result<Vec<f64>, String> {
        let goodput = |key: &RunKey| Ok::<f64, String>(runs.get(key)?.result.goodput_wire_bps);
        let one = |pair: &Pair| {
            let (fixed, dynamic) = (goodput(&pair.fixed)?, goodput(&pair.dynamic)?);
            fraction(fixed, dynamic).ok_or_else(|| "nothing was delivered".to_owned())
        };
        self.keys(first_loss)?.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_scenarios_that_stand_and_limits_that_fit_into_the_buffer() {
        for item in ["figure-9", "figure-10", "figure-11", "figure-12"] {
            assert!(curves(item).len() >= 4, "{item}");
            for curve in curves(item) {
                for loss in LOSSES {
                    let pair = &curve.keys(loss).unwrap()[0];
                    pair.dynamic.scenario().unwrap();
                    let scenario = pair.fixed.scenario().unwrap();
                    let limits = scenario.paths.iter().map(|path| path.window_limit.unwrap());
                    let packets = curve.buffer_kib * 1024.0 / PACKET_BYTES;
                    assert!(f64::from(limits.sum::<u32>()) <= packets, "{item} {}", curve.label);
                }
            }
        }
    }

    #[test]
    fn a_path_that_loses_more_leaves_its_window_to_the_other() {
        let limits = |loss| BASE.limits(loss).unwrap();
        assert!(limits(1e-4)[0] > limits(1e-2)[0], "{:?} {:?}", limits(1e-4), limits(1e-2));
    }
}
