//! Lossy rounds in which the first loss also loses all later packets of the round (Eq 7).
//!
//! Any number of packets may be missing, with similar probabilities, so the distribution cannot be truncated.
//! But the probability of gamma losses among xi packets is p times a power of 1 - p. The sums over xi thus
//! become one running sum, and a round costs time proportional to its window, not to its square.

use super::rounds::{Outcome, TOO_FEW};

const TOO_FEW_PACKETS: usize = TOO_FEW as usize;
/// Number of arrivals that a fast recovery requires.
const ENOUGH: usize = TOO_FEW_PACKETS + 1;

/// Powers of 1 - p, and sums of them.
#[derive(Debug, Clone)]
pub(super) struct CorrelatedRounds {
    p: f64,
    /// Probability that all of this many packets arrive.
    arrive: Vec<f64>,
    /// Probability that at least one of this many packets is lost.
    lose: Vec<f64>,
}

impl CorrelatedRounds {
    pub(super) fn new(p: f64) -> Self {
        let mut rounds = Self { p, arrive: Vec::new(), lose: Vec::new() };
        rounds.grow(TOO_FEW + 1);
        rounds
    }

    pub(super) fn grow(&mut self, sent: u32) {
        let ln_q = (-self.p).ln_1p();
        for packets in self.arrive.len()..=sent as usize {
            let ln_arrive = packets as f64 * ln_q;
            self.arrive.push(ln_arrive.exp());
            self.lose.push(-ln_arrive.exp_m1());
        }
    }

    pub(super) fn first(&self, window: u32, missing: &mut Vec<f64>) {
        missing.clear();
        missing.push(0.0);
        // All packets before the first missing one arrived.
        let arrive = &self.arrive[1..window as usize];
        missing.extend(arrive.iter().rev().map(|arrive| self.p * arrive));
    }

    pub(super) fn round(&self, window: u32, missing: &[f64], next: &mut Vec<f64>) -> Outcome {
        let (window, half) = (window as usize, window as usize / 2);
        let mut outcome = Outcome::default();
        next.clear();
        // Further losses must leave enough arrivals, and at least one packet to send afterwards.
        next.resize(half.min(window.saturating_sub(ENOUGH)).max(1), 0.0);
        let to_lossy = self.p * self.arrive[ENOUGH];
        let mut some_lost = 0.0;
        // The sum over xi from `sent` on of mass(xi) (1 - p)^(xi - sent).
        let mut running = 0.0;
        for sent in (ENOUGH..window).rev() {
            let mass = missing.get(window - sent).copied().unwrap_or(0.0);
            running = mass + (1.0 - self.p) * running;
            outcome.sent += mass * sent as f64;
            some_lost += mass * self.lose[sent];
            let lost_most = (sent - ENOUGH).min(half - 1);
            // An earlier first loss leaves too few arrivals.
            outcome.timeout += mass * self.lose[sent - lost_most];
            if let Some(into @ 1..) = Some(sent - ENOUGH).filter(|lost| *lost < next.len()) {
                next[into] = to_lossy * running;
                outcome.lossy += next[into];
            }
        }
        outcome.clean = running * self.arrive[ENOUGH];
        for sent in 1..ENOUGH.min(window) {
            let mass = missing.get(window - sent).copied().unwrap_or(0.0);
            outcome.sent += mass * sent as f64;
            some_lost += mass * self.lose[sent];
            outcome.timeout += mass;
        }
        // q + q^2 + ... + q^xi = (1 - q^xi) q / p arrive of xi.
        outcome.delivered = some_lost * (1.0 - self.p) / self.p;
        outcome
    }
}
