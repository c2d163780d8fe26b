//! Advice for a bundle of links: which links to use, with which scheduler, congestion control and receive buffer.
//!
//! The answer comes from simulations. The search compares all choices on the same seeds. The figures of the
//! answer come from other seeds than those of the search, because the best of many noisy candidates looks better
//! than it is.

mod candidate;
mod exhaustive;
mod rating;
mod reason;
mod search;
mod sensitivity;
mod trials;
mod tunnel;
mod write;

use core::fmt;
use core::str::FromStr;
use std::ops::Range;

use ropewalk_scenario::{FlowKind, Scenario};
use serde::Serialize;

pub use exhaustive::{Exhaustive, exhaustive};
pub use sensitivity::{Case, Quantity};
pub use write::written;

use crate::compare::{Estimate, mean};
use candidate::Candidate;
pub use candidate::on_paths;
pub use rating::AUDIBLE;
use rating::opinions;
use search::search;
use trials::{Outcome, Span, Trials};

/// First seed of the figures, relative to the scenario's. The search uses lower ones.
const FRESH: u64 = 1000;

/// The quantity to optimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The highest goodput.
    #[default]
    Throughput,
    /// The highest ratio of goodput to the 99th percentile of delay (the power of Kleinrock, 1979).
    Latency,
    /// The lowest 99th percentile of delay of a video call, among settings that deliver at least 98 % of it.
    /// Through a tunnel: the highest mean opinion score of the worst call. If scores differ by less than
    /// [`AUDIBLE`], the highest goodput of the other flows decides.
    Calls,
}

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Latency, Self::Calls];

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Calls => "calls",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|goal| goal.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is no goal: give throughput, latency or calls"))
    }
}

/// Options of the advice.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// The goal.
    pub goal: Goal,
    /// Seeds of the figures in the answer. At least 2.
    pub seeds: u64,
    /// Number of threads; the answer does not depend on it. At least 1.
    pub threads: usize,
}

/// Why there is no advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdviseError {
    /// Plain SCTP and TCP use one path at a time.
    #[error("this transfer.protocol sends on one path at a time")]
    OneAtATime,
    /// The goal is calls, and none of the flows through the tunnel is one.
    #[error("the scenario has flows, and none of them is a call")]
    NoCall,
    /// No data arrived in any simulation.
    #[error("no data arrived in any simulation")]
    NothingArrives,
}

impl AdviseError {
    /// A hint: what can be done.
    pub const fn help(self) -> &'static str {
        match self {
            Self::OneAtATime => "set transfer.protocol = \"cmt-sctp\" or \"mptcp\"",
            Self::NoCall => "add a [[flow]] with kind = \"call\", or take another goal",
            Self::NothingArrives => "see the loss, the outages and the duration of the scenario",
        }
    }
}

/// Advice, `ropewalk.advise/1`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Advice {
    schema: &'static str,
    /// The goal.
    pub goal: Goal,
    /// What to do.
    pub advice: Choice,
    /// The choice of the scenario as it is.
    pub current: Choice,
    /// The best choice with another scheduler, congestion control or set of links.
    pub rival: Option<Choice>,
    /// The best single link. It is the advice itself if one link is best.
    pub best_single: Choice,
    /// Flow-control bound of the advice, bit/s on the wire; null with shared links.
    pub flow_control_bound_bps: Option<f64>,
    /// Each link of the scenario.
    pub paths: Vec<Link>,
    /// The advice with other receive buffers, in ascending order.
    pub buffers: Vec<Choice>,
    /// What changes if a rate or an RTT is 20 % off.
    pub sensitivity: Vec<Case>,
    /// The reason in a sentence.
    pub reason: String,
    /// Number of runs behind each figure.
    pub seeds: u64,
    /// Measured interval of each of these runs, s.
    pub measured_s: f64,
    /// Number of simulations in total.
    pub simulations: usize,
    #[serde(skip)]
    chosen: Candidate,
}

/// A choice with its simulated figures.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Choice {
    /// Names of the links.
    pub paths: Vec<String>,
    /// Scheduler; it has no effect on a single link.
    pub scheduler: String,
    /// Congestion control.
    pub congestion: String,
    /// Receive buffer, bytes.
    pub receive_buffer_bytes: u64,
    /// Changes of the tunnel: of `redundancy`, `latency_budget` and the use of links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tunnel: Vec<String>,
    /// Mean opinion score of the worst call through a tunnel; left out for other goals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<Estimate>,
    /// Goodput, at most the user data that the links carried, bit/s.
    pub goodput_bps: Estimate,
    /// 99th percentile of the delay between the applications, for calls through a tunnel that of the worst call, s; null
    /// if a run failed.
    pub app_delay_p99_s: Option<Estimate>,
    /// The least and the most of these percentiles among the runs, s: where a single real run may lie.
    pub app_delay_p99_range_s: Option<[f64; 2]>,
    /// Figure of the goal divided by that of the advice, seed by seed; for calls through a tunnel, the goodput of the other
    /// flows.
    pub ratio: Estimate,
}

/// Share of the data below which a link carries nothing: a link in reserve may carry the handshake and a few copies.
const CARRIES: f64 = 1e-3;

impl Link {
    /// Whether the advice uses the link and it carries data then.
    pub fn carries(&self) -> bool {
        self.used && self.carried_share >= CARRIES
    }
}

/// A link of the scenario.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Link {
    /// Name.
    pub name: String,
    /// Whether the advice uses it.
    pub used: bool,
    /// Share of the data that the link carries with the advice; 0 if the advice does not use it.
    pub carried_share: f64,
    /// Goodput of the link alone, bit/s.
    pub alone_bps: Estimate,
    /// Goodput of the advice with this link less that without it, seed by seed, bit/s. Null if it is the only
    /// link.
    pub adds_bps: Option<Estimate>,
    /// Mean opinion score of the worst call with this link less that without it; left out for other goals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adds_mos: Option<Estimate>,
    /// The advice's figure of the goal with this link divided by that without it; for calls through a tunnel, the goodput of
    /// the other flows.
    pub gain: Option<Estimate>,
}

/// Simulates and advises. `on_progress` is called from any thread with the completed share, 0 to 1.
///
/// # Errors
/// [`AdviseError`].
pub fn advise(
    scenario: &Scenario,
    options: &AdviseOptions,
    on_progress: &(dyn Fn(f64) + Sync),
) -> Result<Advice, AdviseError> {
    if scenario.transfer.protocol.is_single_path() {
        return Err(AdviseError::OneAtATime);
    }
    let calls = scenario.flows.iter().filter(|flow| flow.kind == FlowKind::Call).count();
    if options.goal == Goal::Calls && !scenario.flows.is_empty() && calls == 0 {
        return Err(AdviseError::NoCall);
    }
    let mut trials = Trials::new(scenario, options, on_progress);
    let found = search(&mut trials, options.goal);
    let report = Report::new(&mut trials, &found, options.seeds);
    if report.goodput(&found.best) <= 0.0 {
        return Err(AdviseError::NothingArrives);
    }
    let links = report.links();
    let buffers: Vec<Choice> = found.buffers.iter().rev().map(|one| report.choice(one)).collect();
    let advice = report.choice(&found.best);
    let best_single = report.best_single();
    let outcomes = report.trials.outcomes(&found.best, report.seeds(), Span::Full);
    let (rival, current) = (report.rival.as_ref().map(|one| report.choice(one)), report.current());
    let reason = reason::sentence(options.goal, &advice, &best_single, &links, &buffers);
    let (flow_control_bound_bps, measured_s) =
        (outcomes[0].bound_bps, report.trials.measured_s(Span::Full));
    trials.stage(1.0);
    let (sensitivity, more) = sensitivity::cases(&trials, &found);
    Ok(Advice {
        schema: "ropewalk.advise/1",
        goal: options.goal,
        advice,
        current,
        rival,
        best_single,
        flow_control_bound_bps,
        paths: links,
        buffers,
        sensitivity,
        reason,
        seeds: options.seeds,
        measured_s,
        simulations: trials.count() + more,
        chosen: found.best,
    })
}

impl Advice {
    /// The scenario with this advice.
    pub fn applied_to(&self, scenario: &Scenario) -> Scenario {
        let mut chosen = self.chosen.applied_to(scenario);
        chosen.record.decisions = scenario.record.decisions;
        chosen
    }
}

/// Figures of choices with seeds that the search did not use.
struct Report<'a, 'b> {
    trials: &'a Trials<'b>,
    best: Candidate,
    rival: Option<Candidate>,
    current: Candidate,
    count: u64,
}

impl<'a, 'b> Report<'a, 'b> {
    fn new(trials: &'a mut Trials<'b>, found: &search::Found, count: u64) -> Self {
        let scenario = trials.scenario().clone();
        let best = found.best.clone();
        let rival = found.finalists.iter().find(|one| !one.resembles(&best)).cloned();
        let current = Candidate::of(&scenario, scenario.transfer.receive_buffer);
        let mut all = vec![best.clone(), current.clone()];
        all.extend(rival.clone());
        for path in 0..scenario.paths.len() {
            all.push(best.on(vec![path]));
            all.push(best.on(toggled(&best.paths, path)));
        }
        all.extend(found.buffers.iter().cloned());
        all.retain(|one| !one.paths.is_empty());
        trials.stage(0.95);
        trials.run(&all, FRESH..FRESH + count, Span::Full);
        Self { trials, best, rival, current, count }
    }

    const fn seeds(&self) -> Range<u64> {
        FRESH..FRESH + self.count
    }

    fn outcomes(&self, of: &Candidate) -> Vec<Outcome> {
        self.trials.outcomes(of, self.seeds(), Span::Full)
    }

    fn goodput(&self, of: &Candidate) -> f64 {
        self.outcomes(of).iter().map(|outcome| outcome.goodput_bps).sum()
    }

    fn current(&self) -> Choice {
        self.choice(&self.current)
    }

    fn choice(&self, of: &Candidate) -> Choice {
        let outcomes = self.outcomes(of);
        let scenario = self.trials.scenario();
        let delays: Option<Vec<f64>> =
            outcomes.iter().map(|one| one.p99_s.is_finite().then_some(one.p99_s)).collect();
        let name = |path: &usize| scenario.paths[*path].name.clone();
        Choice {
            paths: of.paths.iter().map(name).collect(),
            scheduler: of.scheduler.to_string(),
            congestion: of.congestion.to_string(),
            receive_buffer_bytes: of.receive_buffer,
            tunnel: of.tunnel.texts(scenario),
            mos: opinions(&outcomes).map(|all| mean(all.into_iter())),
            goodput_bps: mean(outcomes.iter().map(|one| one.goodput_bps)),
            app_delay_p99_range_s: delays.as_deref().map(range),
            app_delay_p99_s: delays.map(|all| mean(all.into_iter())),
            ratio: self.ratio(of, &self.best),
        }
    }

    /// Ratio of the figures of the goal, seed by seed.
    fn ratio(&self, of: &Candidate, reference: &Candidate) -> Estimate {
        let pairs = self.outcomes(of).into_iter().zip(self.outcomes(reference));
        mean(pairs.map(|(own, other)| (own.score - other.score).exp()))
    }

    fn best_single(&self) -> Choice {
        let singles = (0..self.trials.scenario().paths.len()).map(|path| self.best.on(vec![path]));
        let mut singles: Vec<Candidate> = singles.collect();
        self.trials.rank(&mut singles, self.seeds(), Span::Full);
        self.choice(singles.first().unwrap_or(&self.best))
    }

    /// The share of the data that a path carries with the advice.
    fn carried_share(&self, path: usize) -> f64 {
        let Some(place) = self.best.paths.iter().position(|used| *used == path) else { return 0.0 };
        mean(self.outcomes(&self.best).iter().map(|one| one.shares[place])).mean
    }

    fn links(&self) -> Vec<Link> {
        let link = |(path, of): (usize, &ropewalk_scenario::Path)| {
            let used = self.best.paths.contains(&path);
            let other = self.best.on(toggled(&self.best.paths, path));
            let (with, without) = if used { (&self.best, &other) } else { (&other, &self.best) };
            let compared = !without.paths.is_empty();
            let adds = || {
                let pairs = self.outcomes(with).into_iter().zip(self.outcomes(without));
                mean(pairs.map(|(with, without)| with.goodput_bps - without.goodput_bps))
            };
            let adds_mos = || {
                let [with, without] = [with, without].map(|one| opinions(&self.outcomes(one)));
                let pairs = with?.into_iter().zip(without?);
                Some(mean(pairs.map(|(with, without)| with - without)))
            };
            let alone = self.outcomes(&self.best.on(vec![path]));
            Link {
                name: of.name.clone(),
                used,
                carried_share: self.carried_share(path),
                alone_bps: mean(alone.iter().map(|one| one.goodput_bps)),
                adds_bps: compared.then(adds),
                adds_mos: compared.then(adds_mos).flatten(),
                gain: compared.then(|| self.ratio(with, without)),
            }
        };
        self.trials.scenario().paths.iter().enumerate().map(link).collect()
    }
}

/// The set without the path if it contains it, otherwise with it.
fn toggled(set: &[usize], path: usize) -> Vec<usize> {
    let mut other: Vec<usize> = set.iter().copied().filter(|member| *member != path).collect();
    if other.len() == set.len() {
        other.push(path);
        other.sort_unstable();
    }
    other
}

/// Minimum and maximum.
fn range(values: &[f64]) -> [f64; 2] {
    let fold = |first: f64, choose: fn(f64, f64) -> f64| values.iter().copied().fold(first, choose);
    [fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max)]
}

#[cfg(test)]
mod tests;
