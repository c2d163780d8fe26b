//! The smallest receive buffer for a share of the rates, found by simulation.
//!
//! A buffer *reaches* a share if the mean of [`Trial::share`] over the seeds is at least that share. The seeds
//! are the same for each buffer, so the result for a buffer is deterministic in spite of the noise. Bisection
//! keeps two buffers: a larger one that reaches the share and a smaller one that does not. It ends with a
//! buffer that reaches the share while 5 % less does not.

use ropewalk_scenario::Scenario;
use serde::Serialize;

use super::robust::{RobustReach, robust_reach};
use super::{CheckOptions, Tuning};
use crate::compare::{Compared, Estimate, Variant, compare, estimate};
use crate::predict::predict;

/// The answer is within this factor of a buffer that does not reach the share.
const STEP: f64 = 0.95;
/// Upper end of the search, as a multiple of the buffer with which no path is ever blocked while queues are
/// empty. The excess is for queues and retransmissions.
const LARGEST: f64 = 16.0;
/// Number of larger buffers that are tried to find the upper end of the interval.
const STEPS_UP: u32 = 4;
/// Maximum number of refinements around the best buffer, if none of the others reaches the share.
const REFINEMENTS: usize = 4;
/// Typical number of buffers that a search simulates. Only the progress report depends on it.
const USUAL_TRIALS: f64 = 16.0;
/// Fraction of the work for the search with exactly the scenario's links, if a search with other
/// links follows.
const EXACT_PART: f64 = 0.3;

/// The smallest receive buffer by simulation, for [`super::Reach`].
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SimulatedReach {
    /// Runs of each buffer, with consecutive seeds that begin at the scenario's.
    pub seeds: u64,
    /// The smallest buffer that reaches the share; null if none does.
    pub least: Option<Trial>,
    /// 5 % less than that, which does not reach the share; null if it would be less than a packet.
    pub less: Option<Trial>,
    /// Smallest and largest buffer whose confidence interval contains the share, among those that were tried.
    /// The upper end is null if no buffer was tried whose whole interval reaches the share.
    pub interval_bytes: Option<(u64, Option<u64>)>,
    /// The buffer of the models; null if they have none.
    pub model: Option<Trial>,
    /// All buffers tried, in ascending order.
    pub trials: Vec<Trial>,
    /// The same for links that differ a little; null without a tolerance, or if no buffer reaches the share.
    pub robust: Option<RobustReach>,
}

/// One receive buffer, simulated.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Trial {
    /// The receive buffer, bytes.
    pub receive_buffer_bytes: u64,
    /// Goodput with headers divided by the sum of the rates; a failed run counts as 0.
    pub share: Estimate,
    /// Goodput, bit/s of user data.
    pub goodput_bps: Estimate,
}

impl Trial {
    fn low(&self) -> f64 {
        self.share.mean - self.share.half_width.unwrap_or(0.0)
    }

    fn high(&self) -> f64 {
        self.share.mean + self.share.half_width.unwrap_or(0.0)
    }
}

/// Finds the smallest receive buffer that reaches `share` of the sum of the rates in simulation. `model` is the
/// buffer that the models name, which is simulated as well. With a `tolerance` above zero, also finds the smallest
/// one for links whose rates and round trips differ by up to that share. `on_progress` is called from any thread
/// with the estimated completed fraction of the work, 0 to 1.
pub fn simulate_reach(
    scenario: &Scenario,
    tuning: &Tuning,
    tolerance: f64,
    options: &CheckOptions,
    on_progress: &(dyn Fn(f64) + Sync),
) -> Option<SimulatedReach> {
    let reach = tuning.reach.as_ref()?;
    let model = reach.least.as_ref().map(|least| least.receive_buffer_bytes);
    let model = model.filter(|bytes| *bytes <= u64::from(u32::MAX));
    let is_exact = tolerance <= 0.0;
    let first = |share: f64| on_progress(if is_exact { share } else { share * EXACT_PART });
    let second = |share: f64| on_progress(EXACT_PART + (1.0 - EXACT_PART) * share);
    let mut search = Search {
        scenario,
        rates_bps: tuning.rates_bps,
        target: reach.share,
        options,
        on_progress: &first,
        trials: Vec::new(),
    };
    let model = model.map(|bytes| search.trial(bytes));
    let least = search.bisect(model);
    let less = least.and_then(|least| search.less(least.receive_buffer_bytes));
    let interval_bytes = least.map(|least| search.interval(&least));
    let largest = search.largest();
    let mut trials = search.trials;
    trials.sort_by_key(|trial| trial.receive_buffer_bytes);
    let robust = least.filter(|_| !is_exact).map(|least| {
        let exact = least.receive_buffer_bytes;
        robust_reach(scenario, reach.share, tolerance, exact, largest, options, &second)
    });
    on_progress(1.0);
    Some(SimulatedReach {
        seeds: options.seeds,
        least,
        less,
        interval_bytes,
        model,
        trials,
        robust,
    })
}

/// A search, with the buffers simulated so far.
struct Search<'a> {
    scenario: &'a Scenario,
    rates_bps: f64,
    target: f64,
    options: &'a CheckOptions,
    on_progress: &'a (dyn Fn(f64) + Sync),
    trials: Vec<Trial>,
}

impl Search<'_> {
    fn packet(&self) -> u64 {
        u64::from(self.scenario.transfer.packet)
    }

    /// The largest buffer of the search.
    fn largest(&self) -> u64 {
        let enough = predict(self.scenario).receive_buffer_min_bytes.unwrap_or(0.0) * LARGEST;
        (enough as u64).clamp(64 * self.packet(), u64::from(u32::MAX))
    }

    fn reaches(&self, trial: &Trial) -> bool {
        trial.share.mean >= self.target
    }

    /// The smallest buffer that reaches the target, if one does.
    fn bisect(&mut self, model: Option<Trial>) -> Option<Trial> {
        let mut low = self.packet();
        let mut high = match model.filter(|trial| self.reaches(trial)) {
            Some(trial) => trial,
            None => self.any()?,
        };
        let fails = model.filter(|trial| !self.reaches(trial)).map(|t| t.receive_buffer_bytes);
        if let Some(bytes) = fails.filter(|bytes| *bytes < high.receive_buffer_bytes) {
            low = bytes;
        }
        while let Some(middle) = between(low, high.receive_buffer_bytes) {
            let trial = self.trial(middle);
            if self.reaches(&trial) {
                high = trial;
            } else {
                low = middle;
            }
        }
        // With noise, or because a buffer holds whole packets, 5 % less can reach the target as well.
        while let Some(less) = self.less(high.receive_buffer_bytes).filter(|t| self.reaches(t)) {
            high = less;
        }
        Some(high)
    }

    /// The first buffer found that reaches the target. Goodput does not always grow with the buffer, because a
    /// large one permits long queues. Buffers are therefore tried in steps of a factor of four, from the
    /// largest one down, then between those, and then around the best one.
    fn any(&mut self) -> Option<Trial> {
        let (largest, packet) = (self.largest(), self.packet());
        let down = |first: u64| {
            std::iter::successors(Some(first), |bytes| Some(bytes / 4))
                .take_while(|bytes| *bytes >= packet)
        };
        for bytes in down(largest).chain(down(largest / 2)) {
            let trial = self.trial(bytes);
            if self.reaches(&trial) {
                return Some(trial);
            }
        }
        (0..REFINEMENTS).find_map(|_| {
            self.around_best().into_iter().find_map(|bytes| {
                let trial = self.trial(bytes);
                self.reaches(&trial).then_some(trial)
            })
        })
    }

    /// Geometric means of the best buffer so far and its neighbours.
    fn around_best(&mut self) -> Vec<u64> {
        self.trials.sort_by_key(|trial| trial.receive_buffer_bytes);
        let share = |place: &usize| self.trials[*place].share.mean;
        let best = (0..self.trials.len()).max_by(|a, b| share(a).total_cmp(&share(b)));
        let Some(best) = best else { return Vec::new() };
        let bytes = |place: usize| self.trials[place].receive_buffer_bytes as f64;
        let neighbours = [best.checked_sub(1), Some(best + 1)].into_iter().flatten();
        neighbours
            .filter(|place| *place < self.trials.len())
            .map(|place| rounded((bytes(place) * bytes(best)).sqrt()))
            .collect()
    }

    /// The trial of 5 % less than `bytes`, if that is at least one packet.
    fn less(&mut self, bytes: u64) -> Option<Trial> {
        let less = (STEP * bytes as f64) as u64;
        (less >= self.packet()).then(|| self.trial(less))
    }

    /// The range of buffers in which the confidence interval contains the target.
    fn interval(&mut self, least: &Trial) -> (u64, Option<u64>) {
        let mut larger = least.receive_buffer_bytes;
        for _ in 0..STEPS_UP {
            let known = self.trials.iter().find(|t| t.receive_buffer_bytes == larger).copied();
            let trial = known.unwrap_or_else(|| self.trial(larger));
            if trial.low() >= self.target {
                break;
            }
            larger = rounded(larger as f64 / STEP);
        }
        let bytes = |trial: &Trial| trial.receive_buffer_bytes;
        let below = self.trials.iter().filter(|t| bytes(t) < bytes(least));
        let fails = below.filter(|t| t.high() < self.target).map(bytes).max();
        let above = self.trials.iter().filter(|t| bytes(t) >= bytes(least));
        let holds = above.filter(|t| t.low() >= self.target).map(bytes).min();
        (fails.unwrap_or_else(|| self.packet()), holds)
    }

    /// Simulates a buffer, or returns the earlier result.
    fn trial(&mut self, bytes: u64) -> Trial {
        let known = self.trials.iter().find(|trial| trial.receive_buffer_bytes == bytes);
        if let Some(trial) = known {
            return *trial;
        }
        let mut scenario = self.scenario.clone();
        scenario.transfer.receive_buffer = bytes;
        let variant = Variant { label: String::new(), scenario };
        let options = self.options.with_seeds(self.options.seeds);
        let before = self.trials.len() as f64;
        let tell = |share: f64| (self.on_progress)(progress(before + share));
        let runs = compare(&[variant], &options, &tell);
        let mean = |figure: fn(&crate::RunResult) -> f64| {
            let value =
                |run: &Compared| run.outcome.as_ref().map_or(0.0, |run| figure(&run.result));
            let values: Vec<f64> = runs.iter().map(value).collect();
            estimate(&values).unwrap_or(Estimate { mean: 0.0, half_width: None })
        };
        let wire = mean(|result| result.goodput_wire_bps);
        let part = |bps: f64| bps / self.rates_bps;
        let share = Estimate { mean: part(wire.mean), half_width: wire.half_width.map(part) };
        let goodput_bps = mean(|result| result.goodput_bps);
        let trial = Trial { receive_buffer_bytes: bytes, share, goodput_bps };
        self.trials.push(trial);
        trial
    }
}

/// The number of trials is not known in advance, so the estimate approaches 1 more and more slowly.
fn progress(trials: f64) -> f64 {
    if trials < 0.8 * USUAL_TRIALS {
        return trials / USUAL_TRIALS;
    }
    let over = trials / USUAL_TRIALS - 0.8;
    0.8 + 0.2 * over / (over + 0.2)
}

/// The buffer to try next between one that does not reach the share and one that does. `None` if they are within 5 %.
pub(super) fn between(low: u64, high: u64) -> Option<u64> {
    // The buffer spans powers of ten, so the geometric mean halves the interval.
    let middle = rounded((low as f64 * high as f64).sqrt());
    let is_wide = (low as f64) < STEP * high as f64;
    (is_wide && low < middle && middle < high).then_some(middle)
}

/// Three digits, rounded up: `501000` instead of `500123`.
pub(super) fn rounded(bytes: f64) -> u64 {
    let unit = 10_f64.powf((bytes.log10().floor() - 2.0).max(0.0));
    ((bytes / unit).ceil() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custom_schedulers::CustomSchedulers;
    use crate::tune::tune;

    fn found(text: &str, share: f64, seeds: u64) -> SimulatedReach {
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let tuning = tune(&scenario, Some(share)).expect("two paths");
        let custom_schedulers = CustomSchedulers::default();
        let options = CheckOptions { seeds, threads: 2, custom_schedulers };
        simulate_reach(&scenario, &tuning, 0.0, &options, &|_| ()).expect("a share is requested")
    }

    const UNEQUAL: &str = "[transfer]\nduration = '6 s'\nwarmup = '2 s'\n\
        [[path]]\nname = 'dsl'\nrate = '50 Mbit/s'\nrtt = '20 ms'\n\
        [[path]]\nname = 'lte'\nrate = '10 Mbit/s'\nrtt = '100 ms'\n";

    #[test]
    fn a_slow_path_needs_more_buffer_than_the_models_say() {
        let found = found(UNEQUAL, 0.95, 1);
        let (least, less) = (found.least.expect("in reach"), found.less.expect("5 % less"));
        let model = found.model.expect("the models have an answer");
        assert!(least.share.mean >= 0.95, "{found:?}");
        assert!(less.share.mean < 0.95, "{found:?}");
        let ratio = less.receive_buffer_bytes as f64 / least.receive_buffer_bytes as f64;
        assert!((ratio - 0.95).abs() < 1e-4, "{ratio}");
        assert!(model.share.mean < 0.9, "the slow path idles: {model:?}");
        assert!(least.receive_buffer_bytes > model.receive_buffer_bytes);
        let (low, high) = found.interval_bytes.expect("one");
        assert!(low <= least.receive_buffer_bytes && high.is_some(), "{low} {high:?}");
    }

    #[test]
    fn a_buffer_with_a_margin_reaches_the_share_on_links_that_it_was_not_tried_on() {
        let scenario = Scenario::parse(UNEQUAL, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let tuning = tune(&scenario, Some(0.95)).expect("two paths");
        let custom_schedulers = CustomSchedulers::default();
        let options = CheckOptions { seeds: 1, threads: 2, custom_schedulers };
        let found = simulate_reach(&scenario, &tuning, 0.05, &options, &|_| ()).expect("a share");
        let (exact, robust) = (found.least.expect("in reach"), found.robust.expect("a tolerance"));
        let least = robust.least.expect("in reach");
        assert!(least.receive_buffer_bytes > exact.receive_buffer_bytes, "{robust:?}");
        assert!(robust.trials[0].reached < robust.variations, "the exact buffer is at a cliff");
        // Other draws of the same tolerance.
        let mut reached = [0; 2];
        for (place, bytes) in
            [exact.receive_buffer_bytes, least.receive_buffer_bytes].into_iter().enumerate()
        {
            for seed in 100..140 {
                let mut other = scenario.clone();
                other.transfer.seed = seed;
                other.transfer.receive_buffer = bytes;
                let mut rng = ropewalk_base::Seed::root(seed).rng();
                let mut rates = 0.0;
                for path in &mut other.paths {
                    let _ = crate::other_links::scale_rate(path, 0.95 + 0.1 * rng.unit());
                    crate::other_links::scale_round_trip(path, 0.95 + 0.1 * rng.unit());
                    rates += path.up.capacity.mean_rate().as_bps() as f64;
                }
                let run = crate::run(&other, &crate::RunOptions::default()).expect("it runs");
                reached[place] += usize::from(run.result.goodput_wire_bps >= 0.95 * rates);
            }
        }
        assert!(reached[1] >= 38, "{reached:?} of 40");
        assert!(reached[0] < 38, "{reached:?} of 40: this test shows nothing");
    }

    #[test]
    fn with_losses_the_mean_of_the_seeds_decides_and_the_interval_says_how_sure_it_is() {
        let text = UNEQUAL.replace("'20 ms'", "'20 ms'\nloss = 2e-4");
        let found = found(&text, 0.6, 3);
        let (least, less) = (found.least.expect("in reach"), found.less.expect("5 % less"));
        assert!(least.share.mean >= 0.6 && less.share.mean < 0.6, "{found:?}");
        assert!(least.share.half_width.expect("three seeds") > 0.0);
        let (low, high) = found.interval_bytes.expect("one");
        assert!(low < least.receive_buffer_bytes, "{low}");
        assert!(high.is_none_or(|high| high >= least.receive_buffer_bytes), "{high:?}");
    }

    #[test]
    fn what_losses_leave_out_of_reach_has_no_buffer() {
        let text = UNEQUAL.replace("'20 ms'", "'20 ms'\nloss = 0.02");
        let found = found(&text, 0.9, 1);
        assert_eq!((found.least, found.less, found.interval_bytes), (None, None, None));
        assert!(found.trials.iter().all(|trial| trial.share.mean < 0.9));
    }

    #[test]
    fn buffers_are_rounded_up_to_three_digits_and_progress_never_falls() {
        for (bytes, expected) in [(500_123.0, 501_000), (1500.0, 1500), (777.0, 777), (99.2, 100)] {
            assert_eq!(rounded(bytes), expected, "{bytes}");
        }
        let shares: Vec<f64> = (0..100).map(|trials| progress(f64::from(trials))).collect();
        assert!(shares.is_sorted() && shares[99] < 1.0, "{shares:?}");
    }
}
