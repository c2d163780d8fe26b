//! Predictions of the closed-form models for a scenario, without running it.

mod slot;
mod throughput;
mod validity;

pub use crate::lossy::Formulas;
pub use crate::slot::{Planned, SlotFigures, SlotRow};
pub use slot::{SlotPathPrediction, SlotPrediction, SlotSchedulerPrediction, predict_slot};
pub use throughput::{MarkovThroughput, PathThroughput, Throughput};
pub use validity::Validity;

use ropewalk_models::slot::SlotPath;
use ropewalk_models::{
    PathNumbers, blocking_time_max_s, packets_per_period, receive_buffer_min_bytes,
};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use crate::bound::{bound_by, path_numbers, window_bytes};
use crate::wifi::rate_up;

/// Predictions of the models, `ropewalk.predict/1`. A value that a model cannot give is null;
/// [`notes`](Self::notes) has the reason.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Prediction {
    /// `ropewalk.predict/1`.
    pub schema: &'static str,
    /// The formulas used.
    pub formulas: Formulas,
    /// The longest time that a packet waits in the receive buffer for one sent at the same moment on another
    /// path, with empty queues, s (Kuhn et al. 2014, Eq 2).
    pub blocking_time_max_s: Option<f64>,
    /// The smallest receive buffer with which no path is ever blocked, bytes on the wire (Kuhn et al. 2014, Eq
    /// 3).
    pub receive_buffer_min_bytes: Option<f64>,
    /// The flow-control bound of the paths and the receive buffer, bit/s on the wire.
    pub flow_control_bound_bps: Option<f64>,
    /// The receive buffer used for that bound, bytes on the wire.
    pub receive_buffer_bytes: f64,
    /// The predictions for each path.
    pub paths: Vec<PathPrediction>,
    /// Throughput of all paths by each model, with the best split of the receive buffer among them.
    pub bundle: Throughput,
    /// The period of a delay-aware schedule (Sarwar et al. 2013, Eq 3 and 4).
    pub period: Option<PeriodPrediction>,
    /// Reasons for null values.
    pub notes: Vec<String>,
}

/// Predictions for one path.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct PathPrediction {
    /// Name.
    pub name: String,
    /// Rate, bit/s; of a trace, the mean.
    pub rate_bps: f64,
    /// Propagation delay in both directions, s.
    pub rtt_s: f64,
    /// Minimum RTT of a full packet, s: propagation, serialisation of the packet, and on the wire that of its
    /// SACK.
    pub round_trip_s: Option<f64>,
    /// Share of the path in the flow-control bound, bit/s on the wire.
    pub share_bps: Option<f64>,
    /// Window that this share requires, bytes on the wire.
    pub window_bytes: Option<f64>,
    /// Packets on this path in one period of a delay-aware schedule.
    pub packets_per_period: Option<u64>,
    /// Predictions of the throughput models.
    #[serde(flatten)]
    pub throughput: PathThroughput,
}

/// The period of a delay-aware schedule.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct PeriodPrediction {
    /// Length of the period, s.
    pub length_s: f64,
    /// Whether the least common multiple of the delays exceeded the limit, so that the period was cut.
    pub capped: bool,
    /// Packets of all paths in one period.
    pub packets: u64,
}

/// Evaluates the closed-form models.
///
/// The paths are taken as they are at the start, without later changes and cross traffic. Only the throughput
/// models account for losses.
pub fn predict(scenario: &Scenario) -> Prediction {
    predict_by(Formulas::OnTheWire, scenario)
}

/// As [`predict`], with the given formulas.
pub fn predict_by(formulas: Formulas, scenario: &Scenario) -> Prediction {
    let mut prediction = without_models(formulas, scenario);
    let Some(mut numbers) = path_numbers(scenario) else {
        let sharing =
            scenario.paths.iter().filter(|path| !path.via.is_empty() || path.wifi.is_some());
        let names: Vec<&str> = sharing.map(|path| path.name.as_str()).collect();
        let aired = scenario.paths.iter().any(|path| path.wifi.is_some());
        let medium = if aired { "shared links or the air" } else { "shared links" };
        prediction.notes.push(format!(
            "over {medium} ({}) the share of a path is not known, so neither are limit, \
             buffer, blocking time and windows: run the scenario",
            names.join(", ")
        ));
        return prediction;
    };
    if scenario.transfer.protocol.is_single_path() {
        numbers.truncate(1);
        if scenario.paths.len() > 1 {
            prediction.notes.push(format!(
                "plain {} sends on the first path only",
                scenario.transfer.protocol.to_string().to_uppercase()
            ));
        }
    }
    prediction.ask_blocking(scenario, &numbers);
    prediction.ask_bound(scenario, &numbers);
    prediction.ask_period(scenario, &numbers);
    prediction.ask_throughput(scenario, numbers.len());
    prediction
}

fn without_models(formulas: Formulas, scenario: &Scenario) -> Prediction {
    let path = |path: &ropewalk_scenario::Path| PathPrediction {
        name: path.name.clone(),
        rate_bps: rate_up(path, scenario.transfer.packet).as_bps() as f64,
        rtt_s: (path.up.delay + path.down.delay).as_secs_f64(),
        round_trip_s: None,
        share_bps: None,
        window_bytes: None,
        packets_per_period: None,
        throughput: PathThroughput::default(),
    };
    Prediction {
        schema: "ropewalk.predict/1",
        formulas,
        blocking_time_max_s: None,
        receive_buffer_min_bytes: None,
        flow_control_bound_bps: None,
        receive_buffer_bytes: window_bytes(formulas, scenario),
        paths: scenario.paths.iter().map(path).collect(),
        bundle: Throughput::default(),
        period: None,
        notes: Vec::new(),
    }
}

impl Prediction {
    fn ask_blocking(&mut self, scenario: &Scenario, numbers: &[PathNumbers]) {
        let packet = f64::from(scenario.transfer.packet);
        match blocking_time_max_s(numbers, packet) {
            Ok(seconds) => self.blocking_time_max_s = Some(seconds),
            // A single path does not block itself.
            Err(_) => self.blocking_time_max_s = Some(0.0),
        }
        self.receive_buffer_min_bytes = receive_buffer_min_bytes(numbers).ok();
    }

    fn ask_bound(&mut self, scenario: &Scenario, numbers: &[PathNumbers]) {
        let Some(bound) = bound_by(self.formulas, scenario, numbers) else { return };
        self.flow_control_bound_bps = Some(bound.bound_bps);
        for (path, share) in self.paths.iter_mut().zip(bound.shares) {
            path.round_trip_s = Some(share.round_trip_s);
            path.share_bps = Some(share.rate_bps);
            path.window_bytes = Some(share.window_bytes);
        }
    }

    fn ask_throughput(&mut self, scenario: &Scenario, count: usize) {
        let (paths, bundle, notes) = throughput::throughput(scenario, self.formulas, count);
        self.bundle = bundle;
        self.notes.extend(notes);
        for (path, throughput) in self.paths.iter_mut().zip(paths) {
            path.throughput = throughput;
        }
    }

    fn ask_period(&mut self, scenario: &Scenario, numbers: &[PathNumbers]) {
        let packet = f64::from(scenario.transfer.packet);
        let quantum_s = scenario.scheduler.quantum.as_secs_f64();
        let mut slots = Vec::with_capacity(numbers.len());
        for (path, numbers) in scenario.paths.iter().zip(numbers) {
            match SlotPath::from_numbers(numbers, packet, quantum_s) {
                Ok(slot) => slots.push(slot),
                Err(_) => {
                    self.notes.push(format!(
                        "no period of a delay-aware schedule: path {} carries less than one \
                         packet of {packet} B per forward delay",
                        path.name
                    ));
                    return;
                }
            }
        }
        let delays: Vec<u64> = slots.iter().map(|slot| slot.delay_ticks).collect();
        let capacities: Vec<u64> = slots.iter().map(|slot| slot.capacity_packets).collect();
        let longest = delays.iter().copied().max().unwrap_or(1);
        let cap = longest.saturating_mul(u64::from(scenario.scheduler.period_cap));
        match packets_per_period(&delays, &capacities, Some(cap)) {
            Ok(plan) => {
                self.period = Some(PeriodPrediction {
                    length_s: plan.period.ticks as f64 * quantum_s,
                    capped: plan.period.capped,
                    packets: plan.total,
                });
                for (path, packets) in self.paths.iter_mut().zip(plan.per_path) {
                    path.packets_per_period = Some(packets);
                }
            }
            Err(why) => self.notes.push(format!("no period of a delay-aware schedule: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse(text, "test.toml").expect("a sound scenario")
    }

    const SARWAR: &str = r#"
        [transfer]
        packet = "1000 B"
        receive_buffer = "10 packets"
        preset = "paper-2013"
        [[path]]
        name = "fast"
        rate = "1.6 Mbit/s"
        rtt = "20 ms"
        [[path]]
        name = "slow"
        rate = "0.4 Mbit/s"
        rtt = "200 ms"
    "#;

    #[test]
    fn the_case_of_sarwar_2013_has_its_printed_numbers() {
        let prediction = predict(&scenario(SARWAR));
        assert_eq!(prediction.receive_buffer_min_bytes, Some(50_000.0));
        let period = prediction.period.expect("a period");
        assert_eq!((period.packets, period.length_s), (25, 0.1));
        let packets: Vec<_> = prediction.paths.iter().map(|p| p.packets_per_period).collect();
        assert_eq!(packets, [Some(20), Some(5)]);
        // 100 ms + 20 ms of serialisation, minus 10 ms + 5 ms.
        let blocking = prediction.blocking_time_max_s.expect("two paths");
        assert!((blocking - 0.105).abs() < 1e-12, "{blocking}");
        assert_eq!(prediction.notes, [""; 0]);
    }

    #[test]
    fn the_limit_is_the_one_that_a_run_is_measured_by() {
        let scenario = scenario(SARWAR);
        let run = crate::run(&scenario, &crate::RunOptions::default()).expect("a run");
        let prediction = predict(&scenario);
        assert_eq!(prediction.flow_control_bound_bps, run.result.flow_control_bound_bps);
        let shares: f64 = prediction.paths.iter().filter_map(|p| p.share_bps).sum();
        assert_eq!(Some(shares), prediction.flow_control_bound_bps);
    }

    #[test]
    fn one_path_cannot_block_itself() {
        let prediction = predict(&scenario("[[path]]\nrate = '1 Mbit/s'\nrtt = '20 ms'\n"));
        assert_eq!(prediction.blocking_time_max_s, Some(0.0));
    }

    #[test]
    fn what_no_model_can_say_is_null_with_a_reason() {
        let shared = scenario(
            "[[path]]\nvia = ['dumbbell']\n[[link]]\nname = 'dumbbell'\nrate = '1 Mbit/s'\n",
        );
        let prediction = predict(&shared);
        assert_eq!(prediction.flow_control_bound_bps, None);
        assert!(prediction.notes[0].contains("shared links"), "{:?}", prediction.notes);
        let aired = predict(&scenario("[[path]]\nrate = '1 Gbit/s'\nwifi = {}\n"));
        assert!(aired.notes[0].contains("the air (path1)"), "{:?}", aired.notes);
        assert!((28e6..31e6).contains(&aired.paths[0].rate_bps), "{}", aired.paths[0].rate_bps);
        let slow = predict(&scenario("[[path]]\nrate = '1 kbit/s'\nrtt = '20 ms'\n"));
        assert!(
            slow.period.is_none() && slow.notes[0].contains("less than one packet"),
            "{:?}",
            slow.notes
        );
    }

    #[test]
    fn the_formulas_as_printed_are_those_of_the_papers_to_a_thousandth() {
        // Reference values of the Markov chain and the renewal model, Mbit/s: 21 Mbit/s, 40 ms, floor(128 KiB /
        // 1500 B) packets, longest RTO 60 s.
        for (loss, correlated, independent, renewal) in [
            (1e-4, 19.791, 20.023, 18.946),
            (1e-3, 10.966, 11.767, 10.728),
            (1e-2, 2.725, 3.477, 2.737),
            (1e-1, 0.462, 0.627, 0.456),
        ] {
            let scenario = scenario(&format!(
                "[transfer]\nreceive_buffer = '128 KiB'\npacket = '1500 B'\n\
                 [[path]]\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = {loss}\n"
            ));
            let found = predict_by(Formulas::AsPrinted, &scenario);
            let path = &found.paths[0].throughput;
            assert_eq!(path.window_packets, Some(87));
            let markov = &path.throughput.markov_bps;
            for (bps, mbps) in [
                (markov.correlated, correlated),
                (markov.independent, independent),
                (path.throughput.renewal_bps, renewal),
            ] {
                let off = bps.expect("a figure") / 1e6 / mbps - 1.0;
                assert!(off.abs() < 1e-3, "loss {loss}: {off}");
            }
        }
        // Kuhn et al. 2014, the case with 45 kB: bound with a round trip of r + 8 L / c.
        let kuhn = scenario(
            "[transfer]\nreceive_buffer = '45 kB'\npacket = '1500 B'\n\
             [[path]]\nrate = '1 Mbit/s'\nrtt = '20 ms'\n[[path]]\nrate = '2 Mbit/s'\nrtt = '200 ms'\n",
        );
        let found = predict_by(Formulas::AsPrinted, &kuhn);
        let by_hand = 1e6 + (45e3 * 8.0 - 1e6 * 0.032) / 0.206;
        let limit = found.flow_control_bound_bps.expect("a limit");
        assert!((limit / by_hand - 1.0).abs() < 1e-12, "{limit} {by_hand}");
        assert_eq!(found.receive_buffer_min_bytes, Some(75e3));
        let blocking = found.blocking_time_max_s.expect("two paths");
        assert!((blocking - (0.1 + 0.006 - 0.01 - 0.012)).abs() < 1e-12, "{blocking}");
    }

    #[test]
    fn a_sack_makes_the_round_trip_on_the_wire_longer_and_nothing_else() {
        let scenario = scenario(SARWAR);
        let (wire, printed) = (predict(&scenario), predict_by(Formulas::AsPrinted, &scenario));
        assert_eq!((wire.formulas, printed.formulas), (Formulas::OnTheWire, Formulas::AsPrinted));
        for (a, b) in wire.paths.iter().zip(&printed.paths) {
            let sack_s = a.round_trip_s.expect("one") - b.round_trip_s.expect("one");
            assert!((sack_s - 48.0 * 8.0 / a.rate_bps).abs() < 1e-12, "{sack_s}");
        }
        assert_eq!(wire.period, printed.period);
    }
}
