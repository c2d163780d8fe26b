//! `[[path]]` and `[[link]]`: the network.

use std::sync::Arc;

use ropewalk_base::{Duration, Rate, Time};

use super::{Trace, Wifi};

/// `[[path]]`: an interface of the sender, an interface of the receiver, and what lies between.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Unique among paths and links.
    pub name: String,
    /// From sender to receiver, without the shared links.
    pub up: LinkSide,
    /// From receiver to sender, without the shared links.
    pub down: LinkSide,
    /// Times in which nothing gets through in either direction; in order, disjoint.
    pub outages: Vec<Outage>,
    /// Lower is preferred by `backup`.
    pub cost: u32,
    /// Share under `weighted`.
    pub weight: f64,
    /// Limit of the congestion window under the window manager `static`, packets.
    pub window_limit: Option<u32>,
    /// Relative error put on the forward delay that the scheduler sees.
    pub delay_error: f64,
    /// Positions in [`Scenario::links`](super::Scenario::links) that data crosses after `up`, in
    /// order; acknowledgements cross them backwards before `down`.
    pub via: Vec<usize>,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// A hop over the air between one end and `up` and `down`.
    pub wifi: Option<Wifi>,
}

/// `[[link]]`: crossed by every path that names it in `via`.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique among paths and links.
    pub name: String,
    /// From sender to receiver.
    pub up: LinkSide,
    /// From receiver to sender.
    pub down: LinkSide,
    /// Times in which nothing gets through in either direction; in order, disjoint.
    pub outages: Vec<Outage>,
}

/// One direction of a path or link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSide {
    /// How fast packets leave.
    pub capacity: Capacity,
    /// Propagation, without queueing and serialisation.
    pub delay: Duration,
    /// What waits while the link is busy.
    pub queue: Queue,
    /// What gets lost on the way.
    pub loss: Loss,
    /// What is added to the delay.
    pub jitter: Option<Jitter>,
    /// Packets that fall behind.
    pub reorder: Option<Reorder>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives damaged (and fails its checksum).
    pub corrupt: f64,
    /// Changes while it runs; in ascending order of time, one per time.
    pub steps: Vec<Step>,
}

/// How fast packets leave.
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
    /// Who is dropped, and when.
    pub discipline: Discipline,
    /// How much fits in; a bandwidth-delay product has been worked out.
    pub limit: Limit,
}

/// What a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Everything.
    Unlimited,
    /// So many packets, at least one.
    Packets(u32),
    /// So many bytes, at least one packet.
    Bytes(u64),
}

/// Queue disciplines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// What comes when the queue is full is dropped.
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
        /// Packets of those who understand it are marked and not dropped (RFC 3168).
        ecn: bool,
    },
    /// Controlled delay (RFC 8289).
    CoDel {
        /// Acceptable standing delay.
        target: Duration,
        /// How long it may be exceeded.
        interval: Duration,
        /// Packets of those who understand it are marked and not dropped (RFC 3168).
        ecn: bool,
    },
}

/// Loss models. Probabilities are per packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Nothing is lost.
    None,
    /// Each packet by itself.
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
    /// Correlated within a round trip of the sender: after the first loss the rest of the round
    /// is lost too.
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
    /// Whether a packet waits for those before it (a first-in first-out link), or may overtake.
    pub keep_order: bool,
}

/// Distributions of jitter. The delay as a whole never falls below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterShape {
    /// Anything from zero to `max` alike.
    Uniform {
        /// The most.
        max: Duration,
    },
    /// Bell-shaped around `mean`.
    Normal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        deviation: Duration,
    },
    /// Many small, few large.
    Exponential {
        /// Mean.
        mean: Duration,
    },
}

/// Packets that fall behind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability per packet.
    pub probability: f64,
    /// How much later such a packet arrives.
    pub delay: Duration,
}

/// A change at an instant; `None` leaves a thing as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub at: Time,
    /// New rate.
    pub rate: Option<Rate>,
    /// New propagation delay.
    pub delay: Option<Duration>,
    /// New probability of independent loss.
    pub loss: Option<f64>,
}

/// A time in which nothing gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// First instant of it.
    pub from: Time,
    /// First instant after it; later than `from`.
    pub to: Time,
}
