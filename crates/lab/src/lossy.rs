//! Converts the paths of a scenario, with their configured losses, to the input of the throughput models.

use ropewalk_models::bound::SACK_BYTES;
use ropewalk_models::optimise::PathTable;
use ropewalk_models::{LossyPath, OutOfRange, window_packets};
use ropewalk_scenario::{Path, Scenario};
use serde::Serialize;

use crate::engine_config;
use crate::loss::{LossKind, loss_rates};

/// Whether the formulas include more than the rates and propagation delays of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Formulas {
    /// With the serialisation time of a SACK and the window that the protocol grants, as in a run.
    #[default]
    OnTheWire,
    /// Without these two, as the papers print them: a round trip is d + 1 / b (Wallace and Shami 2014, Eq 8),
    /// and a receive buffer of B bytes holds floor(B / L) packets.
    AsPrinted,
}

impl Formulas {
    /// Size of an acknowledgement, bytes.
    pub(crate) const fn sack_bytes(self) -> f64 {
        match self {
            Self::OnTheWire => SACK_BYTES,
            Self::AsPrinted => 0.0,
        }
    }

    /// Number of whole packets that fit into the receive buffer.
    pub(crate) fn buffer_packets(self, scenario: &Scenario) -> u32 {
        let bytes = scenario.transfer.receive_buffer as f64;
        match self {
            Self::OnTheWire => buffer_packets(scenario),
            Self::AsPrinted => window_packets(bytes, packet_bytes(scenario)).unwrap_or(1),
        }
    }
}

/// One path as input of the models.
#[derive(Clone, Debug)]
pub(crate) struct ModelPath {
    /// Rate, packets/s.
    pub rate_pps: f64,
    /// Round-trip time with the serialisation of the SACK, but without that of the packet, s. The minimum
    /// RTT therefore equals that of the flow-control bound.
    pub delay_s: f64,
    /// Long-run share of lost packets; with correlated losses, the share of packets that begin a loss.
    pub loss: f64,
    /// Loss probability for the models; with bursts, the probability that one begins.
    pub p: f64,
    /// Kind of loss.
    pub kind: LossKind,
    /// The path with its loss. `None` if there is no loss, which only the simplest model accepts.
    pub lossy: Option<LossyPath>,
}

/// Why the models do not apply to a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoModel {
    /// The losses are a list of packets, which has no rate.
    ListedLosses,
    /// A number is out of the models' range.
    Number(OutOfRange),
}

impl ModelPath {
    /// The model of this path; the caller accounts for shared links.
    pub fn new(scenario: &Scenario, path: &Path) -> Result<Self, NoModel> {
        Self::by(Formulas::OnTheWire, scenario, path)
    }

    /// As [`Self::new`], by the given formulas.
    pub fn by(formulas: Formulas, scenario: &Scenario, path: &Path) -> Result<Self, NoModel> {
        let kind = LossKind::of(&path.up.loss, path.up.corrupt);
        let (mean, begins) = loss_rates(&path.up.loss).ok_or(NoModel::ListedLosses)?;
        // A packet that fails its checksum counts as lost.
        let with_corrupt = |loss: f64| loss + path.up.corrupt - loss * path.up.corrupt;
        let (loss, p) = (with_corrupt(mean), with_corrupt(begins));
        let rate_pps =
            path.up.capacity.mean_rate().as_bps() as f64 / (8.0 * packet_bytes(scenario));
        let back_bps = path.down.capacity.mean_rate().as_bps() as f64;
        let delay_s = (path.up.delay + path.down.delay).as_secs_f64();
        let delay_s = delay_s + 8.0 * formulas.sack_bytes() / back_bps;
        let rto_max_s = engine_config::config(scenario).rto.max.as_secs_f64();
        let lossy = match p {
            0.0 => None,
            p => {
                let path = LossyPath::new(rate_pps, delay_s, p, rto_max_s);
                Some(path.map_err(NoModel::Number)?)
            }
        };
        let kind = if lossy.is_some() { kind } else { LossKind::None };
        Ok(Self { rate_pps, delay_s, loss, p, kind, lossy })
    }

    /// Throughput by the Markov chain for each useful window limit up to `packets`.
    pub fn table(&self, packets: u32) -> Result<PathTable, OutOfRange> {
        match &self.lossy {
            None => PathTable::loss_free(self.rate_pps, self.delay_s, packets),
            Some(path) => PathTable::markov(path, packets, self.kind.model()),
        }
    }

    /// Minimum RTT of a full packet, s.
    pub fn round_trip_s(&self) -> f64 {
        self.delay_s + 1.0 / self.rate_pps
    }
}

/// Size of a full packet on the wire, bytes.
pub(crate) fn packet_bytes(scenario: &Scenario) -> f64 {
    let mtus = scenario.paths.iter().map(|path| path.mtu);
    f64::from(mtus.chain([scenario.transfer.packet]).min().unwrap_or(scenario.transfer.packet))
}

/// Number of whole packets that fit into the receive buffer.
pub(crate) fn buffer_packets(scenario: &Scenario) -> u32 {
    let config = engine_config::config(scenario);
    let packets = config.receive_capacity() / u64::from(config.chunk_limit());
    u32::try_from(packets).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(keys: &str) -> Result<ModelPath, NoModel> {
        let text = format!("[[path]]\nname = 'a'\nrate = '12 Mbit/s'\nrtt = '40 ms'\n{keys}\n");
        let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        ModelPath::new(&scenario, &scenario.paths[0])
    }

    #[test]
    fn each_loss_model_has_its_mean_and_its_kind() {
        use LossKind::{Bursts, Correlated, Independent, None};
        let in_turn = "transitions = [[0.0, 1.0], [1.0, 0.0]], loss = [0.0, 0.4]";
        for (keys, loss, p, kind) in [
            (String::new(), 0.0, 0.0, None),
            ("loss = 0.0".into(), 0.0, 0.0, None),
            ("loss = 0.01".into(), 0.01, 0.01, Independent),
            ("corrupt = 0.02".into(), 0.02, 0.02, Independent),
            ("loss = 0.5\ncorrupt = 0.5".into(), 0.75, 0.75, Independent),
            ("loss = { model = 'round', rate = 0.003 }".into(), 0.003, 0.003, Correlated),
            // A quarter of the time is bad, and each bad period is one loss: 0.75 times 0.1.
            (
                "loss = { model = 'gilbert-elliott', p = 0.1, r = 0.3, bad = 1.0 }".into(),
                0.25,
                0.075,
                Bursts,
            ),
            // Every second packet is certain to arrive, so each loss begins one.
            (format!("loss = {{ model = 'markov', {in_turn} }}"), 0.2, 0.2, Bursts),
        ] {
            let found = path(&keys).expect("a path that the models take");
            assert!((found.loss - loss).abs() < 1e-9, "{keys}: {}", found.loss);
            assert!((found.p - p).abs() < 1e-9, "{keys}: {}", found.p);
            assert_eq!((found.kind, found.lossy.is_some()), (kind, loss > 0.0), "{keys}");
        }
    }

    #[test]
    fn a_list_of_losses_has_no_rate() {
        let listed = path("loss = { model = 'trace', losses = [3, 5] }");
        assert_eq!(listed.unwrap_err(), NoModel::ListedLosses);
    }

    #[test]
    fn the_least_round_trip_is_that_of_the_flow_control_bound() {
        // 40 ms, 1500 bytes forward and 48 back.
        let found = path("rate_down = '1 Mbit/s'").expect("a path").round_trip_s();
        assert!((found - (0.040 + 0.001 + 0.000_384)).abs() < 1e-12, "{found}");
    }
}
