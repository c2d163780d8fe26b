//! Lossy rounds with independent loss of each packet (Eq 6).
//!
//! Reachable windows lose few packets: a window of w survives with probability (1-p)^w, so w p is of the order
//! of one. The binomial distributions are truncated where they become negligible, so that a round costs the
//! square of a small number, regardless of the window.

use super::rounds::{NEGLIGIBLE, Outcome, TOO_FEW};

/// Binomial distributions of all rounds so far, each from 0 losses up to where it becomes negligible.
#[derive(Debug, Clone)]
pub(super) struct IndependentRounds {
    p: f64,
    /// Start of the distribution for each number of packets; one more entry than distributions.
    starts: Vec<usize>,
    masses: Vec<f64>,
}

impl IndependentRounds {
    pub(super) fn new(p: f64) -> Self {
        // Distribution for no packets: no loss.
        Self { p, starts: vec![0, 1], masses: vec![1.0] }
    }

    pub(super) fn grow(&mut self, sent: u32) {
        let known = self.starts.len() - 1;
        for packets in known..=sent as usize {
            self.push(packets as f64);
        }
    }

    /// Appends the distribution of the next number of packets.
    fn push(&mut self, packets: f64) {
        let odds = self.p / (1.0 - self.p);
        let mut mass = (packets * (-self.p).ln_1p()).exp();
        let mut lost = 0.0;
        while lost <= packets {
            self.masses.push(mass);
            mass *= odds * (packets - lost) / (lost + 1.0);
            lost += 1.0;
            if mass < NEGLIGIBLE && lost > packets * self.p {
                break;
            }
        }
        self.starts.push(self.masses.len());
    }

    /// Probability of each number of losses among `sent` packets, from 0 on.
    fn losses(&self, sent: usize) -> &[f64] {
        &self.masses[self.starts[sent]..self.starts[sent + 1]]
    }

    pub(super) fn first(&self, window: u32, missing: &mut Vec<f64>) {
        missing.clear();
        missing.extend_from_slice(self.losses(window as usize));
        missing.truncate(window as usize);
        missing[0] = 0.0;
    }

    pub(super) fn round(&self, window: u32, missing: &[f64], next: &mut Vec<f64>) -> Outcome {
        let half = window as usize / 2;
        let mut outcome = Outcome::default();
        next.clear();
        for (lost_before, &mass) in missing.iter().enumerate().skip(1) {
            if mass < NEGLIGIBLE {
                continue;
            }
            let sent = window as usize - lost_before;
            outcome.sent += mass * sent as f64;
            outcome.delivered += mass * sent as f64 * (1.0 - self.p);
            if sent <= TOO_FEW as usize {
                outcome.timeout += mass;
                continue;
            }
            // At most this many further losses leave four arrivals, and at least one packet to send afterwards.
            let most = (sent - TOO_FEW as usize - 1).min(half - 1);
            let losses = self.losses(sent);
            outcome.clean += mass * losses[0];
            let recovered = &losses[..losses.len().min(most + 1)];
            if next.len() < recovered.len() {
                next.resize(recovered.len(), 0.0);
            }
            for (into, chance) in next.iter_mut().zip(recovered).skip(1) {
                *into += mass * chance;
            }
            outcome.timeout += mass * losses.iter().skip(most + 1).sum::<f64>();
        }
        outcome.lossy = next.iter().sum();
        outcome
    }
}
