//! The loss models of a scenario, converted for the simulated network and for the throughput models.

use ropewalk_models as models;
use ropewalk_netsim::LossModel;
use ropewalk_netsim::link::{Bernoulli, GilbertElliott, LossTrace, Markov, Round};
use ropewalk_scenario::Loss;
use serde::Serialize;

/// How a path loses packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// No loss.
    None,
    /// Independent loss of each packet.
    Independent,
    /// Loss from the first lost packet to the end of its round.
    Correlated,
    /// Bursts with their own length distribution. The models count a burst as a single loss, because the
    /// window is halved once for it.
    Bursts,
}

impl LossKind {
    /// The kind of a scenario's loss on a link that also corrupts this share of packets.
    pub(crate) fn of(loss: &Loss, corrupt: f64) -> Self {
        match loss {
            Loss::None if corrupt == 0.0 => Self::None,
            Loss::None | Loss::Bernoulli { .. } => Self::Independent,
            Loss::Round { .. } => Self::Correlated,
            Loss::GilbertElliott { .. } | Loss::Markov { .. } | Loss::Trace { .. } => Self::Bursts,
        }
    }

    /// The closest loss model of the Markov chain.
    pub const fn model(self) -> models::LossModel {
        match self {
            Self::Correlated => models::LossModel::Correlated,
            Self::None | Self::Independent | Self::Bursts => models::LossModel::Independent,
        }
    }
}

/// The loss model of the simulated network.
pub(crate) fn loss_model(loss: &Loss) -> Result<LossModel, Box<dyn core::error::Error>> {
    Ok(match loss {
        Loss::None => LossModel::None,
        Loss::Bernoulli { rate } => LossModel::Bernoulli(Bernoulli::new(*rate)?),
        Loss::GilbertElliott { p, r, good, bad } => {
            LossModel::GilbertElliott(GilbertElliott::new(*p, *r, *good, *bad)?)
        }
        Loss::Markov { transitions, loss } => LossModel::Markov(Markov::new(transitions, loss)?),
        Loss::Round { rate, .. } => LossModel::Round(Round::new(*rate)?),
        Loss::Trace { losses } => {
            let last = losses.last().copied().unwrap_or(0) as usize;
            let indices: Vec<usize> = losses.iter().map(|i| *i as usize).collect();
            LossModel::Trace(LossTrace::once(&indices, last + 1)?)
        }
    })
}

/// Long-run share of lost packets, and share of packets that begin a loss (lost, but the previous one was not).
/// Both are equal for independent loss. `None` for a list.
pub(crate) fn loss_rates(loss: &Loss) -> Option<(f64, f64)> {
    match loss {
        Loss::None => Some((0.0, 0.0)),
        Loss::Bernoulli { rate } | Loss::Round { rate } => Some((*rate, *rate)),
        Loss::GilbertElliott { p, r, good, bad } => {
            Some(chain_rates(&[vec![1.0 - p, *p], vec![*r, 1.0 - r]], &[*good, *bad]))
        }
        Loss::Markov { transitions, loss } => Some(chain_rates(transitions, loss)),
        Loss::Trace { .. } => None,
    }
}

/// As [`loss_rates`], for a Markov chain of states.
fn chain_rates(transitions: &[Vec<f64>], loss: &[f64]) -> (f64, f64) {
    let shares = stationary(transitions);
    let mean = shares.iter().zip(loss).map(|(share, loss)| share * loss).sum();
    let from = shares.iter().zip(loss).zip(transitions);
    let begins = from.map(|((share, kept), row)| {
        let next: f64 = row.iter().zip(loss).map(|(chance, loss)| chance * loss).sum();
        share * (1.0 - kept) * next
    });
    (mean, begins.sum())
}

/// Stationary distribution, starting in the first state.
fn stationary(transitions: &[Vec<f64>]) -> Vec<f64> {
    const ENOUGH: f64 = 1e-14;
    const STEPS: usize = 1_000_000;
    let mut shares = vec![0.0; transitions.len()];
    shares[0] = 1.0;
    for _ in 0..STEPS {
        // A lazy chain, which stays with probability 1/2, has the same stationary distribution and converges
        // even if the original is periodic.
        let mut next: Vec<f64> = shares.iter().map(|share| share / 2.0).collect();
        for (share, row) in shares.iter().zip(transitions) {
            next.iter_mut().zip(row).for_each(|(next, chance)| *next += share * chance / 2.0);
        }
        let moved: f64 = next.iter().zip(&shares).map(|(new, old)| (new - old).abs()).sum();
        shares = next;
        if moved < ENOUGH {
            break;
        }
    }
    shares
}
