//! States and transitions as Section 4.3.1 to 4.3.3 list them.

use std::collections::BTreeMap;

use crate::lossy::LossyPath;
use crate::markov::loss::LossModel;
use crate::markov::rounds::TOO_FEW;

/// A state of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Congestion avoidance: the window, and the packets sent in this round (Eq 12).
    Avoidance {
        /// Window, packets.
        window: u32,
        /// Packets sent; fewer than the window after a round with losses.
        sent: u32,
    },
    /// Slow start: the window, which is sent completely, and the threshold at which slow start ends (Eq
    /// 15).
    SlowStart {
        /// Window, packets.
        window: u32,
        /// Slow start threshold, packets.
        threshold: u32,
    },
    /// Back-off: consecutive timeouts, and the threshold of the next slow start (Eq 17).
    BackOff {
        /// Timeouts so far.
        timeouts: u32,
        /// Slow start threshold, packets.
        threshold: u32,
    },
}

impl State {
    /// The window, packets.
    pub fn window(self) -> u32 {
        match self {
            Self::Avoidance { window, .. } | Self::SlowStart { window, .. } => window,
            Self::BackOff { .. } => 1,
        }
    }

    /// Packets sent in the round.
    pub fn sent(self) -> u32 {
        match self {
            Self::Avoidance { sent, .. } => sent,
            Self::SlowStart { window, .. } => window,
            Self::BackOff { .. } => 1,
        }
    }

    /// Whether the previous round lost packets that a fast recovery may repair.
    pub fn awaits_recovery(self) -> bool {
        matches!(self, Self::Avoidance { window, sent } if sent < window)
    }
}

/// A transition from one state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// Index of the next state.
    pub to: usize,
    /// Probability of the transition.
    pub probability: f64,
    /// Duration of the transition, seconds.
    pub duration_s: f64,
}

/// All reachable states and the transitions between them.
#[derive(Debug, Clone)]
pub struct Chain {
    path: LossyPath,
    loss_model: LossModel,
    window_max: u32,
    /// The states.
    pub states: Vec<State>,
    /// Transitions from each state; their probabilities add up to 1.
    pub transitions: Vec<Vec<Transition>>,
    positions: BTreeMap<State, usize>,
}

/// Transitions from one state during construction: next state, probability, seconds.
type Ways = Vec<(State, f64, f64)>;

impl Chain {
    /// Lists the states that can be reached from the smallest window.
    pub(super) fn explore(path: LossyPath, window_max: u32, loss_model: LossModel) -> Self {
        let mut chain = Self {
            path,
            loss_model,
            window_max,
            states: Vec::new(),
            transitions: Vec::new(),
            positions: BTreeMap::new(),
        };
        chain.position(chain.avoidance(2, 2));
        while chain.transitions.len() < chain.states.len() {
            let ways = chain.ways(chain.states[chain.transitions.len()]);
            let row = ways.into_iter().filter(|(_, probability, _)| *probability > 0.0);
            let row: Vec<_> = row
                .map(|(to, probability, duration_s)| Transition {
                    to: chain.position(to),
                    probability,
                    duration_s,
                })
                .collect();
            chain.transitions.push(row);
        }
        chain
    }

    /// Rounds after losses come first, in order of rising windows: they only lead downwards, so eliminating one
    /// reroutes few transitions. The others follow in order of falling windows: the last state must not be so
    /// rare that the probability of reaching it underflows.
    pub(super) fn elimination_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.states.len()).collect();
        order.sort_by_key(|&at| {
            let (state, window) = (self.states[at], i64::from(self.states[at].window()));
            let lossy = state.awaits_recovery();
            (!lossy, if lossy { window } else { -window }, state)
        });
        order
    }

    /// Expected arrivals of a round in this state.
    pub(super) fn delivered(&self, state: State) -> f64 {
        let losses = self.losses(state.sent());
        let arrivals = losses.iter().zip((0..=state.sent()).rev());
        arrivals.map(|(chance, arrived)| chance * f64::from(arrived)).sum()
    }

    fn position(&mut self, state: State) -> usize {
        let next = self.states.len();
        let position = *self.positions.entry(state).or_insert(next);
        if position == next {
            self.states.push(state);
        }
        position
    }

    fn avoidance(&self, window: u32, sent: u32) -> State {
        State::Avoidance { window: window.min(self.window_max), sent: sent.min(self.window_max) }
    }

    fn ways(&self, state: State) -> Ways {
        match state {
            State::Avoidance { window, sent } if sent == window => self.after_clean(window),
            State::Avoidance { window, sent } => self.after_losses(window, sent),
            State::SlowStart { window, threshold } => self.after_slow_start(window, threshold),
            State::BackOff { timeouts, threshold } => self.after_back_off(timeouts, threshold),
        }
    }

    fn after_clean(&self, window: u32) -> Ways {
        let losses = self.losses(window);
        let rtt_s = self.path.rtt_s(f64::from(window));
        let mut ways = vec![(self.avoidance(window + 1, window + 1), losses[0], rtt_s)];
        for lost in 1..window {
            let to = self.avoidance(window, window - lost);
            ways.push((to, losses[lost as usize], rtt_s));
        }
        ways.push(self.timeout(window, losses[window as usize]));
        ways
    }

    fn after_losses(&self, window: u32, sent: u32) -> Ways {
        if sent <= TOO_FEW {
            return vec![self.timeout(window, 1.0)];
        }
        let rtt_s = self.path.rtt_s(f64::from(window));
        let half = window / 2;
        let (mut ways, mut stuck) = (Vec::new(), 0.0);
        for (lost, &chance) in (0..=sent).zip(&self.losses(sent)) {
            if sent - lost > TOO_FEW && half > lost {
                ways.push((self.avoidance(half, half - lost), chance, rtt_s));
            } else {
                stuck += chance;
            }
        }
        ways.push(self.timeout(window, stuck));
        ways
    }

    fn after_slow_start(&self, window: u32, threshold: u32) -> Ways {
        let losses = self.losses(window);
        let rtt_s = self.path.rtt_s(f64::from(window));
        let doubled = if threshold > 2 * window {
            State::SlowStart { window: 2 * window, threshold }
        } else {
            self.avoidance(2 * window, 2 * window)
        };
        let mut ways = vec![(doubled, losses[0], rtt_s)];
        for lost in 1..window {
            let to = self.avoidance(2 * window - lost, 2 * (window - lost));
            ways.push((to, losses[lost as usize], rtt_s));
        }
        ways.push(self.timeout(window, losses[window as usize]));
        ways
    }

    fn after_back_off(&self, timeouts: u32, threshold: u32) -> Ways {
        let p = self.path.loss();
        let start = if threshold > 1 {
            State::SlowStart { window: 2, threshold }
        } else {
            self.avoidance(2, 2)
        };
        let states = self.path.doublings(self.path.rto_s(1.0));
        let (timeouts, wait_s) = if states > timeouts + 1 {
            (timeouts + 1, self.path.rto_s(1.0) * f64::from(1_u32 << timeouts))
        } else {
            (states, self.path.rto_max_s())
        };
        let again = State::BackOff { timeouts, threshold: 1 };
        vec![(start, 1.0 - p, self.path.rtt_s(1.0)), (again, p, wait_s)]
    }

    fn timeout(&self, window: u32, probability: f64) -> (State, f64, f64) {
        let half = f64::from(window) / 2.0;
        let threshold = 2_u32.pow(half.log2().floor().max(0.0) as u32);
        let state = State::BackOff { timeouts: 1, threshold };
        (state, probability, self.path.rto_s(f64::from(window)))
    }

    /// Probability of each number of losses among `sent` packets, from 0 on (Eq 6, 7).
    fn losses(&self, sent: u32) -> Vec<f64> {
        let p = self.path.loss();
        let none = (1.0 - p).powi(sent.cast_signed());
        let mut losses = vec![none];
        for lost in 1..=sent {
            let chance = match self.loss_model {
                LossModel::Independent => {
                    let ways = f64::from(sent - lost + 1) / f64::from(lost);
                    losses[lost as usize - 1] * ways * p / (1.0 - p)
                }
                LossModel::Correlated => p * (1.0 - p).powi((sent - lost).cast_signed()),
            };
            losses.push(chance);
        }
        losses
    }
}
