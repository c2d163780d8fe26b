//! A hint after a run: a larger receive buffer would put an idle path to use.
//!
//! The hint is simulated, not computed. Its cost is bounded by a number of packets, so that it is the same on
//! every machine.

use ropewalk_base::Duration;
use ropewalk_scenario::{Application, Scenario};
use serde::Serialize;

use crate::compare::map_in_parallel;
use crate::predict::predict;
use crate::result::RunResult;
use crate::run::run;
use crate::setup::RunOptions;

/// Utilisation below which a path counts as idle.
const IDLE: f64 = 0.1;
/// Factor by which the goodput must increase for a hint.
const MIN_GAIN: f64 = 1.05;
/// A smaller buffer is preferred if it has this share of the best goodput.
const NEAR_BEST: f64 = 0.98;
/// Number of simulations in the first round, which finds a sufficient buffer, and in the second one, which
/// finds a smaller one.
const ROUNDS: [u32; 2] = [4, 3];
/// Limit on the packets of all simulations together, about a second of CPU time.
const MAX_PACKETS: f64 = 1e6;
/// Minimum length of a simulation, in round trips of the slowest path.
const MIN_ROUND_TRIPS: f64 = 40.0;

/// A receive buffer that puts an idle path to use.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct BufferHint {
    /// Name of the idle path.
    pub path: String,
    /// Its utilisation in the run.
    pub utilisation: f64,
    /// The receive buffer of the run, bytes.
    pub receive_buffer_bytes: u64,
    /// A sufficient receive buffer, bytes.
    pub sufficient_bytes: u64,
    /// Simulated goodput with the receive buffer of the run, bit/s.
    pub goodput_bps: f64,
    /// Simulated goodput with the sufficient one, bit/s.
    pub sufficient_bps: f64,
    /// Length of these simulations, s, if they are shorter than the run.
    pub shortened_s: Option<f64>,
}

/// Searches a receive buffer that puts an idle path of a finished run to use. Returns `None` if all paths are in
/// use, if no buffer that was tried helps, or if the simulation would take too long.
pub fn buffer_hint(scenario: &Scenario, result: &RunResult, threads: usize) -> Option<BufferHint> {
    let transfer = &scenario.transfer;
    if transfer.protocol.is_single_path()
        || transfer.application != Application::Bulk
        || !scenario.flows.is_empty()
        || !scenario.sources.is_empty()
        || scenario.world.associations > 1
        || scenario.scheduler.custom.is_some()
    {
        return None;
    }
    let idle = result.paths.iter().position(|path| path.utilisation < IDLE)?;
    let shortened = shortened(scenario, result)?;
    let trials = Trials { scenario: &shortened, idle, threads };
    let own = transfer.receive_buffer;
    let is_shorter = shortened.transfer.duration < transfer.duration;
    let before =
        if is_shorter { trials.run(&[own]).pop()??.goodput_bps } else { result.goodput_bps };
    let found = trials.search(own, largest(scenario)?)?;
    (found.goodput_bps >= MIN_GAIN * before && found.utilisation >= IDLE).then(|| BufferHint {
        path: result.paths[idle].name.clone(),
        utilisation: result.paths[idle].utilisation,
        receive_buffer_bytes: own,
        sufficient_bytes: found.bytes,
        goodput_bps: before,
        sufficient_bps: found.goodput_bps,
        shortened_s: is_shorter.then(|| shortened.transfer.duration.as_secs_f64()),
    })
}

/// The largest buffer to try: twice the one with which no path is blocked while queues are empty.
fn largest(scenario: &Scenario) -> Option<u64> {
    let own = scenario.transfer.receive_buffer;
    let enough = predict(scenario).receive_buffer_min_bytes.map(|bytes| 2.0 * bytes);
    let largest = (enough.unwrap_or(16.0 * own as f64) as u64).min(u64::from(u32::MAX));
    (largest > own).then_some(largest)
}

/// The scenario, shortened so that all simulations together keep to the limit. `None` if they would be
/// too short.
fn shortened(scenario: &Scenario, result: &RunResult) -> Option<Scenario> {
    let transfer = &scenario.transfer;
    let rates: f64 =
        scenario.paths.iter().map(|path| path.up.capacity.mean_rate().as_bps() as f64).sum();
    // A simulation has more packets than the run if it has a higher goodput.
    let packets = result.engine.packets as f64 * rates / result.goodput_wire_bps.max(1.0);
    let runs = f64::from(ROUNDS[0] + ROUNDS[1] + 1);
    let part = MAX_PACKETS / (packets * runs);
    if part >= 1.0 {
        return Some(scenario.clone());
    }
    let length_s = transfer.duration.as_secs_f64() * part;
    let round_trip = scenario.paths.iter().map(|path| path.up.delay + path.down.delay).max()?;
    if length_s < MIN_ROUND_TRIPS * round_trip.as_secs_f64() {
        return None;
    }
    let mut shortened = scenario.clone();
    shortened.transfer.duration = Duration::from_nanos((length_s * 1e9) as u64);
    shortened.transfer.warmup = Duration::from_nanos((length_s * 0.25e9) as u64);
    shortened.transfer.bytes = None;
    Some(shortened)
}

/// One simulated buffer.
#[derive(Clone, Copy)]
struct Trial {
    bytes: u64,
    goodput_bps: f64,
    /// Utilisation of the idle path.
    utilisation: f64,
}

struct Trials<'a> {
    scenario: &'a Scenario,
    idle: usize,
    threads: usize,
}

impl Trials<'_> {
    /// A small buffer with nearly the best goodput.
    fn search(&self, own: u64, largest: u64) -> Option<Trial> {
        let (mut low, mut high) = (own, largest);
        let mut known: Vec<Trial> = Vec::new();
        for count in ROUNDS {
            known.extend(self.run(&between(low, high, count)).into_iter().flatten());
            known.sort_by_key(|trial| trial.bytes);
            known.dedup_by_key(|trial| trial.bytes);
            let best = known.iter().map(|trial| trial.goodput_bps).fold(0.0, f64::max);
            let near = |trial: &Trial| trial.goodput_bps >= NEAR_BEST * best;
            let place = known.iter().position(near)?;
            high = known[place].bytes;
            low = if place > 0 { known[place - 1].bytes } else { own };
        }
        known.into_iter().find(|trial| trial.bytes == high)
    }

    /// Simulates each buffer. `None` for a failed run.
    fn run(&self, buffers: &[u64]) -> Vec<Option<Trial>> {
        map_in_parallel(buffers, self.threads, |bytes| {
            let mut scenario = self.scenario.clone();
            scenario.transfer.receive_buffer = *bytes;
            scenario.record.decisions = false;
            let result = run(&scenario, &RunOptions::default()).ok()?.result;
            let utilisation = result.paths[self.idle].utilisation;
            Some(Trial { bytes: *bytes, goodput_bps: result.goodput_bps, utilisation })
        })
    }
}

/// `count` buffers in geometric progression up to `high`, without `low`, with two digits each.
fn between(low: u64, high: u64, count: u32) -> Vec<u64> {
    let ratio = high as f64 / low as f64;
    let one = |i: u32| {
        let bytes = low as f64 * ratio.powf(f64::from(i) / f64::from(count));
        let unit = 10_f64.powf((bytes.log10().floor() - 1.0).max(0.0));
        ((bytes / unit).ceil() * unit) as u64
    };
    let mut all: Vec<u64> = (1..=count).map(one).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNEQUAL: &str = "[transfer]\nduration = '6 s'\nwarmup = '2 s'\n\
        [[path]]\nname = 'dsl'\nrate = '50 Mbit/s'\nrtt = '20 ms'\n\
        [[path]]\nname = 'lte'\nrate = '10 Mbit/s'\nrtt = '100 ms'\n";

    fn hint(text: &str) -> (Scenario, Option<BufferHint>) {
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let done = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let hint = buffer_hint(&scenario, &done.result, 2);
        (scenario, hint)
    }

    #[test]
    fn an_idle_path_is_named_with_a_buffer_that_gives_what_the_hint_says() {
        let (mut scenario, hint) = hint(UNEQUAL);
        let hint = hint.expect("the buffer of 128 KiB leaves a path idle");
        assert_eq!((hint.path.as_str(), hint.shortened_s), ("lte", None));
        assert!(hint.utilisation < 0.1, "{hint:?}");
        scenario.transfer.receive_buffer = hint.sufficient_bytes;
        let again = run(&scenario, &RunOptions::default()).expect("a run").result;
        assert_eq!(again.goodput_bps, hint.sufficient_bps);
        assert!(again.goodput_bps > 1.1 * hint.goodput_bps && again.paths[1].utilisation > 0.8);
    }

    #[test]
    fn a_long_run_gets_a_hint_from_a_shorter_one() {
        let (_, hint) = hint(&UNEQUAL.replace("'6 s'", "'60 s'"));
        let hint = hint.expect("the buffer of 128 KiB leaves a path idle");
        let shortened_s = hint.shortened_s.expect("all runs together exceed the limit");
        assert!((4.0..60.0).contains(&shortened_s), "{hint:?}");
        assert!(hint.sufficient_bps > 1.1 * hint.goodput_bps, "{hint:?}");
    }

    #[test]
    fn there_is_no_hint_where_the_buffer_is_not_the_reason() {
        for (reason, text) in [
            (
                "all paths are in use",
                UNEQUAL.replace("[transfer]", "[transfer]\nreceive_buffer = '1 MB'"),
            ),
            (
                "one path",
                UNEQUAL.split_once("[[path]]\nname = 'lte'").expect("two paths").0.to_owned(),
            ),
            ("losses", UNEQUAL.replace("'100 ms'", "'100 ms'\nloss = 0.3")),
            ("sctp uses one path", UNEQUAL.replace("[transfer]", "[transfer]\nprotocol = 'sctp'")),
            (
                "the application sends little",
                UNEQUAL.replace("[transfer]", "[transfer]\napplication = { rate = '1 Mbit/s' }"),
            ),
        ] {
            assert_eq!(hint(&text).1, None, "{reason}");
        }
    }

    #[test]
    fn buffers_ascend_to_the_largest_with_two_digits() {
        assert_eq!(between(100_000, 1_600_000, 4), [200_000, 400_000, 800_000, 1_600_000]);
        assert_eq!(between(131_072, 1_500_000, 4).last(), Some(&1_500_000));
        assert_eq!(between(1500, 1501, 3), [1600]);
    }
}
