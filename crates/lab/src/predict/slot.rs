//! Predictions of the slot model for a scenario (Sarwar et al. 2013), for both schedulers.

use ropewalk_models::period;
use ropewalk_models::slot::{Plan, SlotPath, SlotScheduler, SlotTrace};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use crate::bound::path_numbers;
use crate::lossy::Formulas;
use crate::slot::{Planned, SlotFigures, SlotRow, SlotSetup};

/// Maximum number of rows of the table: the paper's tables have ten.
const ROWS_MAX: usize = 100;

/// Result of the slot model, `ropewalk.slot/1`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SlotPrediction {
    /// `ropewalk.slot/1`.
    pub schema: &'static str,
    /// Length of a tick, s.
    pub quantum_s: f64,
    /// Packet size, bytes.
    pub packet_bytes: f64,
    /// Receive buffer, packets.
    pub buffer_packets: u64,
    /// Length of the run, s.
    pub duration_s: f64,
    /// Initial part of the run that the figures leave out, s.
    pub warmup_s: f64,
    /// Sum of the path rates, rounded down to whole packets per forward delay, bit/s.
    pub capacity_bps: f64,
    /// The quantity that the planner keeps when its assumed delay is wrong.
    pub planned: Planned,
    /// Each path.
    pub paths: Vec<SlotPathPrediction>,
    /// Round robin, then delay-aware.
    pub schedulers: Vec<SlotSchedulerPrediction>,
}

/// One path of the slot model.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SlotPathPrediction {
    /// Name.
    pub name: String,
    /// Forward delay, ticks.
    pub delay_ticks: u64,
    /// Packets per forward delay.
    pub capacity_packets: u64,
    /// Relative error of the delay that the planner assumes: `path.delay_error`.
    pub delay_error: f64,
}

/// One scheduler of the slot model.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SlotSchedulerPrediction {
    /// `round-robin` or `delay-aware`.
    pub name: &'static str,
    /// Measurements after the warm-up.
    #[serde(flatten)]
    pub figures: SlotFigures,
    /// The first period packet by packet, in the form of Tables I and II.
    pub table: Vec<SlotRow>,
}

/// Runs the slot model with the paths, packets, buffer, duration and delay errors of a scenario. The model
/// ignores losses, queues and changes of a path.
///
/// # Errors
/// A message if there are shared links, if a path carries less than a packet per forward delay, or if the run
/// is too long.
pub fn predict_slot(scenario: &Scenario, planned: Planned) -> Result<SlotPrediction, String> {
    let (setup, paths) = setup(scenario)?;
    let plan = Plan {
        delay_errors: paths.iter().map(|path| path.delay_error).collect(),
        capacity: planned.into(),
        period_cap_ticks: None,
    };
    let rows = rows(&setup);
    let one = |name, scheduler| {
        let trace = setup.run(scheduler).map_err(|e| e.to_string())?;
        let (figures, table) = (setup.figures(&trace), table(&trace, rows));
        Ok::<_, String>(SlotSchedulerPrediction { name, figures, table })
    };
    Ok(SlotPrediction {
        schema: "ropewalk.slot/1",
        quantum_s: setup.quantum_s,
        packet_bytes: setup.packet_bytes,
        buffer_packets: setup.buffer_packets,
        duration_s: setup.duration_s,
        warmup_s: setup.warmup_s,
        capacity_bps: setup.capacity_bps(),
        planned,
        schedulers: vec![
            one("round-robin", SlotScheduler::RoundRobin)?,
            one("delay-aware", SlotScheduler::DelayAware(plan))?,
        ],
        paths,
    })
}

fn setup(scenario: &Scenario) -> Result<(SlotSetup, Vec<SlotPathPrediction>), String> {
    let numbers = path_numbers(scenario).ok_or("the slot model does not support shared links")?;
    let packet_bytes = f64::from(scenario.transfer.packet);
    let quantum_s = scenario.scheduler.quantum.as_secs_f64();
    let mut paths = Vec::with_capacity(numbers.len());
    for (path, numbers) in scenario.paths.iter().zip(&numbers) {
        let slot = SlotPath::from_numbers(numbers, packet_bytes, quantum_s)
            .map_err(|e| format!("path {}: {e}", path.name))?;
        paths.push(SlotPathPrediction {
            name: path.name.clone(),
            delay_ticks: slot.delay_ticks,
            capacity_packets: slot.capacity_packets,
            delay_error: path.delay_error,
        });
    }
    let setup = SlotSetup {
        quantum_s,
        packet_bytes,
        buffer_packets: u64::from(Formulas::AsPrinted.buffer_packets(scenario)),
        duration_s: scenario.transfer.duration.as_secs_f64(),
        warmup_s: scenario.transfer.warmup.as_secs_f64(),
        delay_ticks: paths.iter().map(|path| path.delay_ticks).collect(),
        capacity_packets: paths.iter().map(|path| path.capacity_packets).collect(),
    };
    Ok((setup, paths))
}

/// Number of rows that covers the period of the true delays.
fn rows(setup: &SlotSetup) -> usize {
    let step = setup.delay_ticks.iter().copied().min().unwrap_or(1);
    let period = period(&setup.delay_ticks, None).map_or(step, |period| period.ticks);
    usize::try_from(period / step).unwrap_or(ROWS_MAX).clamp(1, ROWS_MAX)
}

fn table(trace: &SlotTrace, rows: usize) -> Vec<SlotRow> {
    trace.table().iter().take(rows).map(SlotRow::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_run(changes: &[&str]) -> SlotPrediction {
        let file = include_str!("../../../../papers/sarwar2013/long-run.toml");
        let scenario = Scenario::parse_with(file, "long-run.toml", changes);
        predict_slot(&scenario.expect("a sound scenario"), Planned::PerWindow)
            .expect("a slot model")
    }

    #[test]
    fn the_paper_s_scenario_has_the_paper_s_setup_and_tables() {
        let found = long_run(&[]);
        assert_eq!((found.buffer_packets, found.capacity_bps), (10, 2e6));
        let [robin, aware] = found.schedulers.as_slice() else { panic!("two schedulers") };
        assert_eq!((robin.table.len(), aware.table.len()), (10, 10));
        let last = &robin.table[9];
        assert_eq!((last.received[1].as_str(), last.delivered.as_str()), ("3-7", "3-17"));
        assert_eq!(aware.table[0].sent, ["1-2", "21-25"]);
        assert!((aware.figures.goodput_bps - 2e6).abs() < 1e3, "{:?}", aware.figures);
        assert!(robin.figures.goodput_bps < 1.4e6, "{:?}", robin.figures);
        assert_eq!(robin.figures.max_in_buffer_packets, 10);
    }

    #[test]
    fn an_error_of_the_delay_reaches_the_plan() {
        let wrong = long_run(&["path.3g.delay_error=1.0"]);
        assert_eq!(wrong.paths[1].delay_error, 1.0);
        let bps = |found: &SlotPrediction| found.schedulers[1].figures.goodput_bps;
        assert!(bps(&wrong) < 0.95 * bps(&long_run(&[])), "{}", bps(&wrong));
    }

    #[test]
    fn what_the_model_does_not_know_is_said() {
        let thin = "[[path]]\nname = 'thin'\nrate = '1 kbit/s'\nrtt = '20 ms'\n";
        let shared = "[[path]]\nvia = ['x']\n[[link]]\nname = 'x'\nrate = '1 Mbit/s'\n";
        for (text, word) in [(thin, "path thin"), (shared, "shared links")] {
            let scenario = Scenario::parse(text, "t.toml").expect("a sound scenario");
            let why = predict_slot(&scenario, Planned::PerWindow).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
