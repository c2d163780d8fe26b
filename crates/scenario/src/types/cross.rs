//! `[[cross]]`: cross traffic.

use ropewalk_base::{Duration, Rate, Time};

use super::Side;

/// `[[cross]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cross {
    /// Sending pattern.
    pub kind: CrossKind,
    /// The path or link that the traffic crosses.
    pub on: Target,
    /// Direction of the traffic.
    pub side: Side,
    /// Packet size on the wire, bytes.
    pub packet: u32,
    /// Number of such flows, each with its own random stream.
    pub flows: u32,
    /// Time at which the traffic starts.
    pub start: Time,
    /// Time at which it stops; `None` for the end of the run.
    pub stop: Option<Time>,
}

/// The path or link that cross traffic uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The path at this position, without shared links.
    Path(usize),
    /// The shared link at this position.
    Link(usize),
}

/// Sending pattern of cross traffic; rates are per flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossKind {
    /// Packets at a constant interval.
    Cbr {
        /// Bits per second on the wire.
        rate: Rate,
    },
    /// Constant rate during on periods of exponential length, separated by off periods of exponential length.
    OnOff {
        /// Rate during an on period, bit/s on the wire.
        rate: Rate,
        /// Mean length of an on period.
        on_time: Duration,
        /// Mean length of an off period.
        off_time: Duration,
    },
    /// Packets with exponentially distributed intervals.
    Poisson {
        /// Mean bits per second.
        rate: Rate,
    },
    /// A bulk transfer with additive increase and multiplicative decrease.
    Greedy {
        /// Round-trip time without queueing on this link.
        rtt: Duration,
    },
}
