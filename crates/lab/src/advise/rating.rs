//! Rating of choices, and their order.

use ropewalk_base::statistics::mean;
use ropewalk_scenario::{FlowKind, Scenario};

use super::Goal;
use super::trials::Outcome;
use crate::result::RunResult;

/// Smallest audible difference of mean opinion scores. Smaller differences are ignored. It is a sixth of the step
/// between neighbouring classes of users in table B.1 of ITU-T G.107 (satisfied, 4.03, and very satisfied, 4.34).
pub const AUDIBLE: f64 = 0.05;
/// Score of a call that has failed.
const WORST_MOS: f64 = 1.0;

/// Means over the runs of a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Mean opinion score of the worst call through a tunnel, if the goal is calls. It takes
    /// precedence.
    mos: Option<f64>,
    /// Logarithm of the figure of the goal.
    score: f64,
}

impl Rating {
    /// The rating of these runs.
    pub fn of(outcomes: &[Outcome]) -> Self {
        Self {
            mos: opinions(outcomes).map(|scores| mean(&scores)),
            score: mean(outcomes.iter().map(|outcome| outcome.score)),
        }
    }

    /// How much worse this is than `better`: 0.03 means 97 % of the other's figure. If the other's calls sound
    /// audibly better, the score above the lowest counts instead of the figure.
    pub fn lacks(self, better: Self) -> f64 {
        match self.mos.zip(better.mos) {
            Some((own, best)) if best - own >= AUDIBLE => (best - own) / (best - WORST_MOS),
            _ => -(self.score - better.score).exp_m1(),
        }
    }

    /// Logarithm of the figure of the goal.
    pub const fn score(self) -> f64 {
        self.score
    }

    /// Whether this is better: by an audible difference or, without one, by more than `by` in the logarithm of the
    /// figure.
    pub fn beats(self, other: Self, by: f64) -> bool {
        match self.mos.zip(other.mos) {
            Some((own, others)) if (own - others).abs() >= AUDIBLE => own > others,
            _ => self.score > other.score + by,
        }
    }
}

/// The mean opinion scores of all runs. `None` for other goals.
pub fn opinions(outcomes: &[Outcome]) -> Option<Vec<f64>> {
    outcomes.iter().map(|outcome| outcome.mos).collect()
}

/// Sorts by rating, the best first. Choices without an audible difference from the best score are ordered by the
/// figure of the goal. The others follow, ordered by their score. The sort is stable.
pub fn sort_by_rating<T>(all: &mut [T], rating: impl Fn(&T) -> Rating) {
    let scores = all.iter().filter_map(|one| rating(one).mos);
    let top = scores.fold(WORST_MOS, f64::max);
    let key = |one: &T| {
        let Rating { mos, score } = rating(one);
        match mos {
            Some(mos) if mos <= top - AUDIBLE => (false, mos, score),
            _ => (true, score, 0.0),
        }
    };
    all.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        let by_figures = || b.1.total_cmp(&a.1).then(b.2.total_cmp(&a.2));
        b.0.cmp(&a.0).then_with(by_figures)
    });
}

/// Whether the goal is the quality of calls through a tunnel.
pub fn rates_calls(goal: Goal, scenario: &Scenario) -> bool {
    goal == Goal::Calls && !scenario.flows.is_empty()
}

/// The calls of a run through a tunnel, and the goodput of the other flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calls {
    /// Mean opinion score of the worst call.
    pub mos: f64,
    /// The longest 99th percentile of delay, s.
    pub p99_s: f64,
    /// Goodput of the other flows, bit/s. `None` if all flows are calls.
    pub others_bps: Option<f64>,
}

impl Calls {
    /// The calls of a result.
    pub fn of(result: &RunResult) -> Self {
        let (calls, others): (Vec<_>, Vec<_>) =
            result.flows.iter().partition(|flow| flow.kind == FlowKind::Call.name());
        let delay = |call: &&crate::FlowResult| call.delay_p99_s.unwrap_or(f64::INFINITY);
        let mos = |call: &&crate::FlowResult| call.mos.unwrap_or(WORST_MOS);
        Self {
            mos: calls.iter().map(mos).fold(f64::INFINITY, f64::min),
            p99_s: calls.iter().map(delay).fold(0.0, f64::max),
            others_bps: (!others.is_empty())
                .then(|| others.iter().map(|flow| flow.goodput_bps).sum()),
        }
    }

    /// The value for a failed run.
    pub const FAILED: Self = Self { mos: WORST_MOS, p99_s: f64::INFINITY, others_bps: Some(0.0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rating(mos: f64, score: f64) -> Rating {
        Rating { mos: Some(mos), score }
    }

    #[test]
    fn what_nobody_hears_does_not_outweigh_goodput_and_what_is_heard_does() {
        assert!(rating(4.30, 2.0).beats(rating(4.34, 1.0), 0.005));
        assert!(!rating(4.34, 1.0).beats(rating(4.30, 2.0), 0.005));
        assert!(rating(4.30, 1.0).beats(rating(4.20, 9.0), 0.005));
        assert!(!rating(4.30, 1.004).beats(rating(4.30, 1.0), 0.005));
        assert!((rating(3.4, 2.0).lacks(rating(4.0, 1.0)) - 0.2).abs() < 1e-9);
        assert!((rating(4.0, 0.0).lacks(rating(4.01, 2.0_f64.ln())) - 0.5).abs() < 1e-9);
        let plain = |score| Rating { mos: None, score };
        assert!(plain(1.0).beats(plain(0.9), 0.005) && !plain(0.9).beats(plain(1.0), 0.005));
    }

    #[test]
    fn the_order_has_those_that_sound_as_the_best_by_goodput_and_then_the_others() {
        let mut all = [
            rating(4.10, 9.0),
            rating(4.36, 1.0),
            rating(4.32, 3.0),
            rating(4.34, 2.0),
            rating(3.00, 9.0),
        ];
        sort_by_rating(&mut all, |one| *one);
        assert_eq!(all.map(|one| one.score), [3.0, 2.0, 1.0, 9.0, 9.0]);
        assert_eq!(all[3].mos, Some(4.10));
    }
}
