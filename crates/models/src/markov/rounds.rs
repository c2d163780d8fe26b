//! What follows a round with losses, until the chain is back in a round without.
//!
//! After a loss in a window of w the chain is in a state (w, xi) with xi < w. It stays there for one
//! round and then either halves, to (w/2, w/2) or (w/2, w/2 - gamma), or waits for a timer
//! (Section 4.3.1). So an excursion visits the windows w, w/2, w/4, ... once each, and what is
//! needed of each is how likely each number of missing packets is. That distribution is carried
//! down; no state below is ever solved for.

use super::correlated::CorrelatedRounds;
use super::independent::IndependentRounds;
use super::loss::LossModel;
use super::totals::Totals;
use crate::lossy::LossyPath;

/// Acknowledgements that report a packet missing before it counts as lost, less one: with so many
/// or fewer packets arriving, only the timer can help.
pub(super) const TOO_FEW: u32 = 3;

/// What is less likely than this, per round, is left out. A timeout can cost 10^4 round trips; even so,
/// what is left out moves the throughput by less than one part in 10^20.
pub(super) const NEGLIGIBLE: f64 = 1e-24;

/// What came of the states (w, xi) with xi < w, per unit of what the excursion began with.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Outcome {
    /// Packets sent.
    pub(super) sent: f64,
    /// Packets that arrived.
    pub(super) delivered: f64,
    /// Halved without a further loss: on to (w/2, w/2).
    pub(super) clean: f64,
    /// Halved with further losses: on to (w/2, w/2 - gamma).
    pub(super) lossy: f64,
    /// Had to wait for the timer.
    pub(super) timeout: f64,
}

impl Outcome {
    /// What the round costs and brings, with a window of `window`.
    pub(super) fn totals(&self, path: &LossyPath, window: u32) -> Totals {
        let packets = f64::from(window);
        let recoveries = self.clean + self.lossy;
        let counts =
            Totals { sent: self.sent, delivered: self.delivered, recoveries, ..Totals::default() };
        counts
            + Totals::round(recoveries, path.rtt_s(packets), packets)
            + Totals::timeout(self.timeout, path.rto_s(packets), packets)
    }
}

/// Losses within rounds, of either model. Slices are indexed by the number of packets that are
/// missing, from 0 (which is always empty: nothing missing is no lossy state).
#[derive(Debug, Clone)]
pub(super) enum Rounds {
    Independent(IndependentRounds),
    Correlated(CorrelatedRounds),
}

impl Rounds {
    pub(super) fn new(model: LossModel, p: f64) -> Self {
        match model {
            LossModel::Independent => Self::Independent(IndependentRounds::new(p)),
            LossModel::Correlated => Self::Correlated(CorrelatedRounds::new(p)),
        }
    }

    /// Prepares rounds of up to `sent` packets.
    pub(super) fn grow(&mut self, sent: u32) {
        match self {
            Self::Independent(rounds) => rounds.grow(sent),
            Self::Correlated(rounds) => rounds.grow(sent),
        }
    }

    /// How likely a round of `window` packets loses 1 to `window - 1` of them.
    pub(super) fn first(&self, window: u32, missing: &mut Vec<f64>) {
        match self {
            Self::Independent(rounds) => rounds.first(window, missing),
            Self::Correlated(rounds) => rounds.first(window, missing),
        }
    }

    /// One round out of the states (window, window - i), which hold `missing[i]` each; what halves
    /// with further losses goes to `next`, counted by the packets missing there.
    fn round(&self, window: u32, missing: &[f64], next: &mut Vec<f64>) -> Outcome {
        match self {
            Self::Independent(rounds) => rounds.round(window, missing, next),
            Self::Correlated(rounds) => rounds.round(window, missing, next),
        }
    }
}

/// Room for the distributions of an excursion, kept between excursions.
#[derive(Debug, Clone, Default)]
pub(super) struct Excursion {
    /// What each number of missing packets holds in the current window. Filled by the caller.
    pub(super) missing: Vec<f64>,
    next: Vec<f64>,
}

impl Excursion {
    /// Follows what `missing` holds down the halvings of `window`, and reports each round: the
    /// window, what came of it, and the states it began in.
    pub(super) fn follow(
        &mut self,
        rounds: &Rounds,
        mut window: u32,
        mut report: impl FnMut(u32, Outcome, &[f64]),
    ) {
        loop {
            let outcome = rounds.round(window, &self.missing, &mut self.next);
            report(window, outcome, &self.missing);
            if outcome.lossy <= NEGLIGIBLE {
                break;
            }
            window /= 2;
            core::mem::swap(&mut self.missing, &mut self.next);
        }
    }

    /// Makes `packets` packets missing the only case, with weight `mass`.
    pub(super) fn only(&mut self, packets: u32, mass: f64) {
        self.missing.clear();
        self.missing.resize(packets as usize, 0.0);
        self.missing.push(mass);
    }
}
