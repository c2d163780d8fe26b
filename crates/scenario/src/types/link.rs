//! `[[path]]` and `[[link]]`: the network.

use std::sync::Arc;

use ropewalk_base::{Duration, Rate, Time};

use super::{Trace, Wifi};

/// `[[path]]`: a sender interface, a receiver interface, and the links between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Name, unique among paths and links.
    pub name: String,
    /// From sender to receiver, without the shared links.
    pub up: LinkSide,
    /// From receiver to sender, without the shared links.
    pub down: LinkSide,
    /// Outages of both directions, in order, without overlap.
    pub outages: Vec<Outage>,
    /// Cost; the scheduler `backup` prefers lower ones.
    pub cost: u32,
    /// Weight for the scheduler `weighted`.
    pub weight: f64,
    /// Window limit for the window manager `static`, packets.
    pub window_limit: Option<u32>,
    /// Relative error of the forward delay that the scheduler sees.
    pub delay_error: f64,
    /// Positions in [`Scenario::links`](super::Scenario::links) that data crosses after `up`, in
    /// order; acknowledgements cross them backwards before `down`.
    pub via: Vec<usize>,
    /// Size of the largest packet, bytes.
    pub mtu: u32,
    /// A wireless hop between one end and the links `up` and `down`.
    pub wifi: Option<Wifi>,
}

/// `[[link]]`: crossed by every path that names it in `via`.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name, unique among paths and links.
    pub name: String,
    /// From sender to receiver.
    pub up: LinkSide,
    /// From receiver to sender.
    pub down: LinkSide,
    /// Outages of both directions, in order, without overlap.
    pub outages: Vec<Outage>,
}

/// One direction of a path or link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSide {
    /// Transmission capacity.
    pub capacity: Capacity,
    /// Propagation delay, without queueing and serialisation.
    pub delay: Duration,
    /// Queue in front of the link.
    pub queue: Queue,
    /// Loss model.
    pub loss: Loss,
    /// Random addition to the delay.
    pub jitter: Option<Jitter>,
    /// Additional delay of some packets.
    pub reorder: Option<Reorder>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives damaged (and fails its checksum).
    pub corrupt: f64,
    /// Changes during the run, in ascending order of time, at most one per time.
    pub steps: Vec<Step>,
}

/// Transmission capacity of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A constant rate above zero.
    Rate(Rate),
    /// Delivery opportunities read from a file.
    Trace(Arc<Trace>),
}

impl Capacity {
    /// The rate, or the mean rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Rate(rate) => *rate,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Queue management.
    pub discipline: Discipline,
    /// Capacity; a bandwidth-delay product has been converted.
    pub limit: Limit,
}

/// Capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Unlimited.
    Unlimited,
    /// This many packets, at least one.
    Packets(u32),
    /// This many bytes, at least one packet.
    Bytes(u64),
}

/// Queue disciplines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// A packet that does not fit is dropped.
    DropTail,
    /// Random early detection (Floyd and Jacobson, 1993), gentle.
    Red {
        /// Average queue, as a share of the limit, where drops begin.
        min: f64,
        /// Average queue, as a share of the limit, where the probability reaches `probability`.
        max: f64,
        /// Drop probability at `max`.
        probability: f64,
        /// Weight of the newest sample in the average.
        weight: f64,
        /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
        ecn: bool,
    },
    /// Controlled delay (RFC 8289).
    CoDel {
        /// Acceptable standing delay.
        target: Duration,
        /// Time for which the delay may exceed the target.
        interval: Duration,
        /// Whether ECN-capable packets are marked instead of dropped (RFC 3168).
        ecn: bool,
    },
}

/// Loss models. Probabilities are per packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// No loss.
    None,
    /// Independent loss of each packet.
    Bernoulli {
        /// Probability.
        rate: f64,
    },
    /// Two states (Gilbert, 1960; Elliott, 1963), one step per packet, beginning in the good one.
    GilbertElliott {
        /// From good to bad.
        p: f64,
        /// From bad to good.
        r: f64,
        /// Loss in the good state.
        good: f64,
        /// Loss in the bad state.
        bad: f64,
    },
    /// Any number of states, one step per packet, beginning in the first.
    Markov {
        /// Row i: probabilities from state i to each state; each row sums to 1.
        transitions: Vec<Vec<f64>>,
        /// Loss in each state.
        loss: Vec<f64>,
    },
    /// Loss correlated within a round trip of the sender: after the first loss, the rest of the round is also
    /// lost.
    Round {
        /// Probability of the first loss, per packet.
        rate: f64,
    },
    /// Exactly these packets, counted from 0 in order of arrival at the link; ascending.
    Trace {
        /// Their numbers.
        losses: Vec<u64>,
    },
}

/// Random addition to the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// How it is distributed.
    pub shape: JitterShape,
    /// Whether packets keep their order (a first-in first-out link) or may overtake.
    pub keep_order: bool,
}

/// Distributions of jitter. The delay as a whole never falls below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterShape {
    /// Uniform from zero to `max`.
    Uniform {
        /// Largest value.
        max: Duration,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        deviation: Duration,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Duration,
    },
}

/// Additional delay of some packets, which others may overtake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability per packet.
    pub probability: f64,
    /// Additional delay of such a packet.
    pub delay: Duration,
}

/// A change at a point in time; `None` keeps the previous value.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Time of the change.
    pub at: Time,
    /// New rate.
    pub rate: Option<Rate>,
    /// New propagation delay.
    pub delay: Option<Duration>,
    /// New probability of independent loss.
    pub loss: Option<f64>,
}

/// A period in which no packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Start of the outage.
    pub from: Time,
    /// End of the outage, not included; later than `from`.
    pub to: Time,
}
