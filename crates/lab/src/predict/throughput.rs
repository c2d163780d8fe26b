//! Predictions of the throughput models for each path, with the window that the receive buffer allows, and for
//! the bundle.

use ropewalk_models::lossy::loss_free_pps;
use ropewalk_models::markov::{self, LossModel};
use ropewalk_models::optimise::{Members, PathTable, allocate};
use ropewalk_models::reference_formulas::{PftkForm, mathis_pps, pftk_pps};
use ropewalk_models::renewal::{self, PeriodLosses};
use ropewalk_models::{LossyPath, OutOfRange};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use super::validity::Validity;
use crate::loss::LossKind;
use crate::lossy::{Formulas, ModelPath, NoModel, packet_bytes};

/// Receive buffer, in packets, above which the best split takes too long to compute.
const SPLIT_MAX: u32 = 16_384;
/// Limit on the number of sums of two throughputs; this many take about a second.
const WORK_MAX: u64 = 1_000_000_000;

/// Throughput by each model, bit/s on the wire; null if the model does not apply.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct Throughput {
    /// By the Markov chain (Wallace and Shami 2014, Section 4.3).
    pub markov_bps: MarkovThroughput,
    /// By the renewal model (Section 4.4).
    pub renewal_bps: Option<f64>,
    /// By the full model of Padhye et al. 2000.
    pub pftk_bps: Option<f64>,
    /// By Mathis et al. 1997.
    pub mathis_bps: Option<f64>,
}

/// Throughput by the Markov chain, bit/s on the wire.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct MarkovThroughput {
    /// With independent loss of each packet (Eq 6).
    pub independent: Option<f64>,
    /// With loss of the rest of the round after a first loss (Eq 7).
    pub correlated: Option<f64>,
}

/// Predictions for one path, with their input.
#[derive(Clone, Debug, Default, Serialize, PartialEq)]
pub struct PathThroughput {
    /// The window that the receive buffer allows, packets.
    pub window_packets: Option<u32>,
    /// Share of lost packets.
    pub loss: Option<f64>,
    /// Kind of loss.
    pub loss_kind: Option<LossKind>,
    /// Throughput by each model. Without loss all equal one window per round trip, which every model
    /// approaches.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Validity of each figure.
    pub validity: Option<Validity>,
}

/// The models as functions of one path and its window.
#[derive(Clone, Copy)]
enum Model {
    Markov(LossModel),
    Renewal,
    Pftk,
    Mathis,
}

impl Model {
    const ALL: [Self; 5] = [
        Self::Markov(LossModel::Independent),
        Self::Markov(LossModel::Correlated),
        Self::Renewal,
        Self::Pftk,
        Self::Mathis,
    ];

    fn pps(self, path: &LossyPath, window: u32) -> Result<f64, OutOfRange> {
        match self {
            Self::Markov(losses) => markov::throughput_pps(path, window, losses),
            Self::Renewal => renewal::solve(path, window, PeriodLosses::HalfWindow)
                .map(|found| found.throughput_pps),
            Self::Pftk => pftk_pps(path, window, 1.0, PftkForm::Full),
            Self::Mathis => mathis_pps(path, window, 1.0),
        }
    }

    /// Throughput of a path with this window.
    fn of_path(self, path: &ModelPath, window: u32) -> Option<f64> {
        match &path.lossy {
            None => Some(loss_free_pps(path.rate_pps, path.delay_s, window)),
            Some(lossy) => self.pps(lossy, window).ok(),
        }
    }

    /// Throughput for every window up to `packets`.
    fn table(self, path: &ModelPath, packets: u32) -> Option<PathTable> {
        let each = |one: &dyn Fn(u32) -> Option<f64>| (1..=packets).map(one).collect();
        let entries: Option<Vec<f64>> = match (&path.lossy, self) {
            (Some(lossy), Self::Markov(losses)) => markov::table(lossy, packets, losses).ok(),
            _ => each(&|window| self.of_path(path, window)),
        };
        PathTable::new(&entries?).ok()
    }

    /// Throughput of all paths with the best split of the buffer among them.
    fn of_bundle(self, paths: &[ModelPath], packets: u32) -> Option<f64> {
        let tables: Option<Vec<PathTable>> =
            paths.iter().map(|path| self.table(path, packets)).collect();
        allocate(&tables?, packets, Members::Paying).ok().map(|best| best.throughput_pps)
    }
}

impl Throughput {
    fn by(figure: impl Fn(Model) -> Option<f64>) -> Self {
        let [independent, correlated, renewal_bps, pftk_bps, mathis_bps] = Model::ALL.map(figure);
        let markov_bps = MarkovThroughput { independent, correlated };
        Self { markov_bps, renewal_bps, pftk_bps, mathis_bps }
    }
}

/// Predictions for the first `count` paths and their bundle, and the reasons for missing values.
pub(super) fn throughput(
    scenario: &Scenario,
    formulas: Formulas,
    count: usize,
) -> (Vec<PathThroughput>, Throughput, Vec<String>) {
    let packets = formulas.buffer_packets(scenario);
    let bps = 8.0 * packet_bytes(scenario);
    let mut notes = Vec::new();
    let mut paths = Vec::new();
    for path in scenario.paths.iter().take(count) {
        match ModelPath::by(formulas, scenario, path) {
            Ok(found) => paths.push(Some(found)),
            Err(why) => {
                paths.push(None);
                notes.push(format!("no throughput of path {}: {}", path.name, words(&why)));
            }
        }
    }
    let each = paths.iter().map(|path| {
        path.as_ref().map_or_else(PathThroughput::default, |path| one(path, packets, bps))
    });
    let each = each.collect();
    let whole: Option<Vec<ModelPath>> = paths.into_iter().collect();
    let bundle = match whole {
        None => Throughput::default(),
        Some(paths) if !is_quick(paths.len(), packets) => {
            notes.push(format!(
                "no throughput of the bundle: the best split of {packets} packets takes too long here"
            ));
            Throughput::default()
        }
        Some(paths) => Throughput::by(|m| m.of_bundle(&paths, packets).map(|pps| pps * bps)),
    };
    (each, bundle, notes)
}

fn one(path: &ModelPath, packets: u32, bps: f64) -> PathThroughput {
    let throughput = Throughput::by(|m| m.of_path(path, packets).map(|pps| pps * bps));
    PathThroughput {
        window_packets: Some(packets),
        loss: Some(path.loss),
        loss_kind: Some(path.kind),
        validity: Some(Validity::of(path, throughput.renewal_bps.is_some())),
        throughput,
    }
}

/// Whether the best split is fast to compute. The last path of a bundle costs nothing.
fn is_quick(paths: usize, packets: u32) -> bool {
    let packets = u64::from(packets);
    let middle = paths.saturating_sub(2) as u64;
    packets <= u64::from(SPLIT_MAX) && middle * packets * packets <= WORK_MAX
}

fn words(why: &NoModel) -> String {
    match why {
        NoModel::ListedLosses => "a list of lost packets has no rate".to_owned(),
        NoModel::Number(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::predict;
    use super::*;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_printed_table_of_models_comes_out_of_a_scenario() {
        // docs/concepts/models.md: 21 Mbit/s, 40 ms, 128 KiB, p = 1e-3; here with the serialisation time of a
        // SACK.
        let scenario = scenario(
            "[transfer]\nreceive_buffer = '87 packets'\n\
             [[path]]\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = 1e-3\n",
        );
        let prediction = predict(&scenario);
        let path = &prediction.paths[0].throughput;
        let found = &path.throughput;
        for (bps, printed) in [
            (found.markov_bps.independent, 11.77),
            (found.markov_bps.correlated, 10.97),
            (found.renewal_bps, 10.73),
            (found.pftk_bps, 11.31),
            (found.mathis_bps, 11.46),
        ] {
            let mbps = bps.expect("a figure") / 1e6;
            assert!((mbps / printed - 1.0).abs() < 2e-3, "{mbps} for {printed}");
        }
        // The bundle has one path. The chain halves even windows without a loss, so that a window smaller by
        // one packet can give slightly more.
        let more = [
            (prediction.bundle.markov_bps.correlated, found.markov_bps.correlated),
            (prediction.bundle.mathis_bps, found.mathis_bps),
        ];
        for (bundle, path) in more.map(|(a, b)| (a.expect("a figure"), b.expect("a figure"))) {
            assert!(bundle >= path && bundle < path * 1.0001, "{bundle} for {path}");
        }
        assert_eq!(path.loss_kind, Some(LossKind::Independent));
    }

    #[test]
    fn without_loss_every_model_is_a_window_per_round_trip_and_the_bundle_the_flow_control_bound() {
        let prediction = predict(&scenario(
            "[transfer]\nreceive_buffer = '45 kB'\n[[path]]\nrate = '1 Mbit/s'\nrtt = '20 ms'\n\
             [[path]]\nrate = '2 Mbit/s'\nrtt = '200 ms'\n",
        ));
        let limit = prediction.flow_control_bound_bps.expect("a limit");
        let bundle = &prediction.bundle;
        let figures =
            [bundle.markov_bps.independent, bundle.markov_bps.correlated, bundle.pftk_bps];
        for bps in figures.map(|bps| bps.expect("a figure")) {
            assert!(bps <= limit * (1.0 + 1e-9) && bps > 0.97 * limit, "{bps} of {limit}");
        }
        let slow = &prediction.paths[1].throughput.throughput;
        let alone = 30.0 * 12_000.0 / prediction.paths[1].round_trip_s.expect("a round trip");
        assert!((slow.renewal_bps.expect("a figure") / alone - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_bundle_is_no_more_than_its_paths_and_no_less_than_the_best_of_them() {
        let prediction = predict(&scenario(
            "[transfer]\nreceive_buffer = '90 kB'\n\
             [[path]]\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = 1e-3\n\
             [[path]]\nrate = '8 Mbit/s'\nrtt = '80 ms'\nloss = 1e-2\n",
        ));
        let of = |t: &Throughput| t.markov_bps.independent.expect("a figure");
        let paths: Vec<f64> =
            prediction.paths.iter().map(|path| of(&path.throughput.throughput)).collect();
        let bundle = of(&prediction.bundle);
        assert!(bundle <= (paths[0] + paths[1]) * (1.0 + 1e-12), "{bundle} of {paths:?}");
        assert!(bundle >= paths[0].max(paths[1]), "{bundle} of {paths:?}");
    }

    #[test]
    fn what_has_no_throughput_says_why() {
        for (loss, said) in [("{ model = 'trace', losses = [3] }", "has no rate"), ("1.0", "loss")]
        {
            let prediction = predict(&scenario(&format!(
                "[[path]]\nname = 'x'\nrate = '1 Mbit/s'\nrtt = '20 ms'\nloss = {loss}\n"
            )));
            assert_eq!(prediction.paths[0].throughput, PathThroughput::default());
            let found = prediction.notes.iter().any(|n| n.contains("path x") && n.contains(said));
            assert!(found, "{:?}", prediction.notes);
        }
    }
}
