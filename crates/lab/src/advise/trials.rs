//! Simulations of candidates. Results are remembered.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_base::Duration;
use ropewalk_scenario::{Application, Scenario, Steady};

use super::rating::{Calls, Rating, rates_calls, sort_by_rating};
use super::{AdviseOptions, Candidate, Goal};
use crate::compare::map_in_parallel;
use crate::run::run;
use crate::setup::RunOptions;

/// Warm-up of a short simulation, in round trips of the slowest path.
const WARMUP_ROUND_TRIPS: f64 = 20.0;
/// Minimum warm-up of a short simulation, s.
const WARMUP_MIN_S: f64 = 2.0;
/// Limits on the packets of a short and of a full simulation, which bound the time of an answer.
const PACKETS: [f64; 2] = [80e3, 300e3];
/// Share of a simulated call's data that must arrive.
const CALL_DELIVERED: f64 = 0.98;
/// Logarithm of the score of a failed run.
const FAILED: f64 = -1e6;

/// Length of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// A few round trips after a warm-up.
    Short,
    /// The duration of the scenario, unless that takes too long.
    Full,
}

/// The figures of one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Goodput, at most the user data that the paths carried, bit/s.
    pub goodput_bps: f64,
    /// 99th percentile of the delay between the applications, s; for calls through a tunnel, that of the worst call.
    pub p99_s: f64,
    /// Flow-control bound, bit/s.
    pub bound_bps: Option<f64>,
    /// Mean opinion score of the worst call through a tunnel, if the goal is calls.
    pub mos: Option<f64>,
    /// Shares of the data that the candidate's paths carry, in their order.
    pub shares: Vec<f64>,
    /// Logarithm of the figure of the goal: a difference of 0.01 is 1 %. For calls through a tunnel, the goodput of the
    /// other flows, which counts after the mean opinion score.
    pub score: f64,
}

/// Runs candidates on all cores and remembers their figures.
pub struct Trials<'a> {
    scenario: Scenario,
    options: &'a AdviseOptions,
    spans: [(Duration, Duration); 2],
    known: BTreeMap<(String, u64, Span), Outcome>,
    on_progress: &'a (dyn Fn(f64) + Sync),
    /// Fractions of the total work at which the current stage begins and ends.
    stage: [f64; 2],
}

impl<'a> Trials<'a> {
    /// Starts without any results.
    pub fn new(
        scenario: &Scenario,
        options: &'a AdviseOptions,
        on_progress: &'a (dyn Fn(f64) + Sync),
    ) -> Self {
        let mut scenario = scenario.clone();
        if options.goal == Goal::Calls {
            make_call(&mut scenario);
        }
        let spans = [short(&scenario), full(&scenario)];
        Self { scenario, options, spans, known: BTreeMap::new(), on_progress, stage: [0.0; 2] }
    }

    /// The scenario that is simulated.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Replaces the scenario, for changed links. Only short simulations can be compared afterwards.
    pub fn for_scenario(&self, scenario: Scenario) -> Self {
        Self { scenario, known: BTreeMap::new(), ..*self }
    }

    /// Number of simulations so far.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Length of the measured interval, s.
    pub fn measured_s(&self, span: Span) -> f64 {
        let (warmup, duration) = self.spans[span as usize];
        (duration - warmup).as_secs_f64()
    }

    /// Starts a stage that ends at this fraction of the total work.
    pub const fn stage(&mut self, end: f64) {
        self.stage = [self.stage[1], end];
    }

    /// Simulates each candidate with each seed, unless this was done before. Seeds count from the scenario's.
    pub fn run(&mut self, candidates: &[Candidate], seeds: Range<u64>, span: Span) {
        let mut jobs: Vec<((String, u64, Span), &Candidate)> = Vec::new();
        // All candidates of a seed precede the next seed, because they take part in the same round.
        for seed in seeds {
            for candidate in candidates {
                let key = (candidate.key(), seed, span);
                if !self.known.contains_key(&key) && jobs.iter().all(|(other, _)| *other != key) {
                    jobs.push((key, candidate));
                }
            }
        }
        let done = AtomicUsize::new(0);
        let [start, end] = self.stage;
        let outcomes = map_in_parallel(&jobs, self.options.threads, |((_, seed, span), of)| {
            let outcome = self.simulate(of, *seed, *span);
            let share = (done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / jobs.len() as f64;
            (self.on_progress)(start + (end - start) * share);
            outcome
        });
        let found: Vec<_> = jobs.into_iter().map(|(key, _)| key).zip(outcomes).collect();
        self.known.extend(found);
    }

    /// The figures of a candidate, one for each seed.
    ///
    /// # Panics
    /// If [`Self::run`] has not run it.
    pub fn outcomes(&self, candidate: &Candidate, seeds: Range<u64>, span: Span) -> Vec<Outcome> {
        let key = candidate.key();
        seeds.map(|seed| self.known[&(key.clone(), seed, span)].clone()).collect()
    }

    /// The mean figures that decide about a candidate.
    pub fn rating(&self, candidate: &Candidate, seeds: Range<u64>, span: Span) -> Rating {
        Rating::of(&self.outcomes(candidate, seeds, span))
    }

    /// Sorts candidates by rating, the best first. Equal ones keep their order.
    pub fn rank(&self, candidates: &mut [Candidate], seeds: Range<u64>, span: Span) {
        sort_by_rating(candidates, |candidate| self.rating(candidate, seeds.clone(), span));
    }

    fn simulate(&self, candidate: &Candidate, seed: u64, span: Span) -> Outcome {
        let mut scenario = candidate.applied_to(&self.scenario);
        (scenario.transfer.warmup, scenario.transfer.duration) = self.spans[span as usize];
        scenario.transfer.bytes = None;
        scenario.transfer.seed = scenario.transfer.seed.wrapping_add(seed);
        let goal = self.options.goal;
        let with_calls = rates_calls(goal, &scenario);
        let Ok(done) = run(&scenario, &RunOptions::default()) else {
            return Outcome {
                goodput_bps: 0.0,
                p99_s: f64::INFINITY,
                bound_bps: None,
                mos: with_calls.then_some(Calls::FAILED.mos),
                shares: vec![0.0; scenario.paths.len()],
                score: FAILED,
            };
        };
        let result = done.result;
        // Data that waits out of order at the start of the measured interval is delivered in it, although it was
        // carried earlier. With a large buffer and a short interval, it would make the goodput exceed the capacity
        // of the links.
        let carried_bps: f64 = result.paths.iter().map(|path| path.throughput_bps).sum();
        let goodput_bps = result.goodput_bps.min(carried_bps);
        let all: u64 = result.paths.iter().map(|path| path.delivered_bytes).sum();
        let share = |bytes: u64| bytes as f64 / all.max(1) as f64;
        let outcome = Outcome {
            goodput_bps,
            p99_s: result.app_delay_s.p99,
            bound_bps: result.flow_control_bound_bps,
            mos: None,
            shares: result.paths.iter().map(|path| share(path.delivered_bytes)).collect(),
            score: FAILED,
        };
        if with_calls {
            let calls = Calls::of(&result);
            let score = calls.others_bps.map_or(0.0, |others| others.max(1.0).ln());
            return Outcome { p99_s: calls.p99_s, mos: Some(calls.mos), score, ..outcome };
        }
        let delivered = goodput_bps / sent_bps(&scenario, goodput_bps);
        let score = goal.score(goodput_bps, outcome.p99_s, delivered);
        Outcome { score, ..outcome }
    }
}

impl Goal {
    /// Logarithm of the figure that this goal maximises. `delivered`: share of the application's data that has arrived.
    fn score(self, goodput_bps: f64, p99_s: f64, delivered: f64) -> f64 {
        if goodput_bps <= 0.0 || !p99_s.is_finite() {
            return FAILED;
        }
        let delay = p99_s.max(1e-6).ln();
        match self {
            Self::Throughput => goodput_bps.ln(),
            Self::Latency => goodput_bps.ln() - delay,
            // Each lost percent weighs more than any delay.
            Self::Calls => -delay - 1e3 * (CALL_DELIVERED - delivered).max(0.0),
        }
    }
}

/// The rate at which the application sends, bit/s. Bulk data is sent as fast as it is delivered.
fn sent_bps(scenario: &Scenario, goodput_bps: f64) -> f64 {
    match scenario.transfer.application {
        Application::Steady(steady) => steady.rate.as_bps() as f64,
        Application::Bulk => goodput_bps,
    }
}

/// Replaces bulk data by a video call: 2 Mbit/s, or half of the fastest path's rate if that is less. The flows through a
/// tunnel remain.
fn make_call(scenario: &mut Scenario) {
    if scenario.transfer.application != Application::Bulk
        || !(scenario.flows.is_empty() && scenario.sources.is_empty())
    {
        return;
    }
    let fastest = scenario.paths.iter().map(|path| path.up.capacity.mean_rate().as_bps()).max();
    let rate = ropewalk_base::Rate::from_bps((fastest.unwrap_or(0) / 2).clamp(64_000, 2_000_000));
    scenario.transfer.application = Application::Steady(Steady { rate, message: 1000 });
}

/// Packets per second if all paths are full.
fn packets_per_second(scenario: &Scenario) -> f64 {
    let rates = scenario.paths.iter().map(|path| path.up.capacity.mean_rate().as_bps() as f64);
    let bps: f64 = match scenario.transfer.application {
        Application::Bulk => rates.sum(),
        // A scheduler may send a copy on each path.
        Application::Steady(steady) => steady.rate.as_bps() as f64 * scenario.paths.len() as f64,
    };
    bps / (8.0 * f64::from(scenario.transfer.packet)) * f64::from(scenario.world.associations)
}

/// Warm-up and duration of a short simulation.
fn short(scenario: &Scenario) -> (Duration, Duration) {
    let round_trips =
        scenario.paths.iter().map(|path| (path.up.delay + path.down.delay).as_secs_f64());
    let round_trip_s = round_trips.fold(0.0, f64::max);
    let wanted_s = (WARMUP_ROUND_TRIPS * round_trip_s).max(WARMUP_MIN_S);
    let limit_s = PACKETS[0] / packets_per_second(scenario) / 3.0;
    let warmup_s = wanted_s.min(limit_s).max(0.5 * WARMUP_ROUND_TRIPS * round_trip_s).max(0.5);
    (seconds(warmup_s), seconds(3.0 * warmup_s))
}

/// Warm-up and duration of a full simulation: those of the scenario, within the limit on packets.
fn full(scenario: &Scenario) -> (Duration, Duration) {
    let (short_warmup, short) = short(scenario);
    let transfer = &scenario.transfer;
    let limit = seconds(PACKETS[1] / packets_per_second(scenario)).max(short);
    let duration = transfer.duration.min(limit).max(short);
    (transfer.warmup.max(short_warmup).min(seconds(duration.as_secs_f64() / 3.0)), duration)
}

fn seconds(s: f64) -> Duration {
    Duration::from_nanos((s * 1e9) as u64)
}
