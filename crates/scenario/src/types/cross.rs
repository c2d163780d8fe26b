//! `[[cross]]`: other people's traffic.

use ropewalk_base::{Duration, Rate, Time};

use super::Side;

/// `[[cross]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cross {
    /// How it sends.
    pub kind: CrossKind,
    /// What it crosses.
    pub on: Target,
    /// In which direction.
    pub side: Side,
    /// Bytes per packet on the wire.
    pub packet: u32,
    /// Number of such flows, each with its own luck.
    pub flows: u32,
    /// When it begins.
    pub start: Time,
    /// When it ends; `None` for the end of the run.
    pub stop: Option<Time>,
}

/// What cross traffic runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The path at this position, its own link only.
    Path(usize),
    /// The shared link at this position.
    Link(usize),
}

/// How cross traffic sends; rates are per flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossKind {
    /// One packet after equal times.
    Cbr {
        /// Bits per second on the wire.
        rate: Rate,
    },
    /// Constant rate during exponentially distributed on-times, silence in between.
    OnOff {
        /// Bits per second while on.
        rate: Rate,
        /// Mean on-time.
        on_time: Duration,
        /// Mean off-time.
        off_time: Duration,
    },
    /// Packets at exponentially distributed distances.
    Poisson {
        /// Mean bits per second.
        rate: Rate,
    },
    /// A bulk transfer with additive increase and multiplicative decrease.
    Greedy {
        /// Its round trip without queueing on this link.
        rtt: Duration,
    },
}
