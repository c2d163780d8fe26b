//! Consequences of a round with losses, until the chain is in a round without losses again.
//!
//! After a loss in a window of w the chain is in a state (w, xi) with xi < w. It stays there for one round and
//! then either halves the window, to (w/2, w/2) or (w/2, w/2 - gamma), or waits for a timer (Section 4.3.1). An
//! excursion thus visits the windows w, w/2, w/4, ... once each, and each requires only the distribution of the
//! number of missing packets. That distribution is passed down; no lower state has to be solved.

use super::correlated::CorrelatedRounds;
use super::independent::IndependentRounds;
use super::loss::LossModel;
use super::totals::Totals;
use crate::lossy::LossyPath;

/// One less than the number of reports after which a packet counts as lost. If only this many packets or fewer
/// arrive, only the timer can repair the loss.
pub(super) const TOO_FEW: u32 = 3;

/// Probability per round below which events are left out. A timeout can cost 10^4 round trips; even so, the
/// omission changes the throughput by less than one part in 10^20.
pub(super) const NEGLIGIBLE: f64 = 1e-24;

/// Outcome of the states (w, xi) with xi < w, relative to the weight at the start of the excursion.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Outcome {
    /// Packets sent.
    pub(super) sent: f64,
    /// Packets that arrived.
    pub(super) delivered: f64,
    /// Window halved without a further loss: next state (w/2, w/2).
    pub(super) clean: f64,
    /// Window halved with further losses: next state (w/2, w/2 - gamma).
    pub(super) lossy: f64,
    /// Wait for the timer.
    pub(super) timeout: f64,
}

impl Outcome {
    /// Costs and gains of the round with a window of `window`.
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

/// Losses within rounds, by either model. Slices are indexed by the number of missing packets; entry 0 is
/// always zero, because a state without missing packets is not lossy.
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

    /// Probabilities that a round of `window` packets loses 1 to `window - 1` of them.
    pub(super) fn first(&self, window: u32, missing: &mut Vec<f64>) {
        match self {
            Self::Independent(rounds) => rounds.first(window, missing),
            Self::Correlated(rounds) => rounds.first(window, missing),
        }
    }

    /// One round from the states (window, window - i), which have the weights `missing[i]`. The weights of
    /// halvings with further losses are added to `next`, indexed by the number of packets missing there.
    fn round(&self, window: u32, missing: &[f64], next: &mut Vec<f64>) -> Outcome {
        match self {
            Self::Independent(rounds) => rounds.round(window, missing, next),
            Self::Correlated(rounds) => rounds.round(window, missing, next),
        }
    }
}

/// Buffers for the distributions of an excursion, kept for reuse.
#[derive(Debug, Clone, Default)]
pub(super) struct Excursion {
    /// Weight of each number of missing packets in the current window. The caller fills it.
    pub(super) missing: Vec<f64>,
    next: Vec<f64>,
}

impl Excursion {
    /// Follows the weights in `missing` through the halvings of `window`. Reports each round: the window, its
    /// outcome, and the states at its start.
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

    /// Sets `missing` to `packets` packets with weight `mass`.
    pub(super) fn only(&mut self, packets: u32, mass: f64) {
        self.missing.clear();
        self.missing.resize(packets as usize, 0.0);
        self.missing.push(mass);
    }
}
