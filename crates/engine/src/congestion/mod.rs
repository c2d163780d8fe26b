//! Congestion control: one object per connection with the path as argument, so that coupling
//! needs no tricks. It never sees packets, streams or timers.

mod rfc9260;
mod uncoupled;

pub use rfc9260::{Rfc9260, Rfc9260Options, WindowRounding};
pub use uncoupled::Uncoupled;

use ropewalk_base::{PathId, Rate, Time};

/// Totals of one acknowledgement on one path.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Bytes in flight before the acknowledgement.
    pub in_flight_before: u64,
    /// Whether the path's (pseudo-)cumulative acknowledgement moved (CUC; RFC 9260, 7.2.1).
    pub advanced: bool,
    /// Whether the path is in fast recovery.
    pub in_recovery: bool,
    /// Whether nothing is in flight any more.
    pub flight_empty: bool,
}

/// The contract of a single-path algorithm; [`Uncoupled`] lifts it to a connection.
pub trait PathCongestion {
    /// Acknowledgement.
    fn on_ack(&mut self, now: Time, sample: &AckSample);
    /// A loss was found by reports; at most once per window of data.
    fn on_loss(&mut self, now: Time);
    /// The retransmission timer expired.
    fn on_timeout(&mut self, now: Time);
    /// The loss was none: what `on_loss` or `on_timeout` did last is taken back.
    fn on_spurious(&mut self, now: Time);
    /// The network marked packets.
    fn on_ecn(&mut self, now: Time) {
        self.on_loss(now);
    }
    /// Nothing was sent for a while: one call per idle retransmission timeout.
    fn on_idle(&mut self, _now: Time) {}
    /// The path came back from failure.
    fn on_return(&mut self, now: Time);
    /// The window may be at most so large for now: other paths have the better use for the receive
    /// buffer. It may grow again.
    fn limit(&mut self, most: u64);
    /// The window, bytes.
    fn window(&self) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self) -> u64;
    /// The rate at which to send, if the algorithm paces.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// The contract of an algorithm for a connection.
pub trait CongestionControl {
    /// Bytes left on `path`.
    fn on_sent(&mut self, _path: PathId, _now: Time, _bytes: u64) {}
    /// Acknowledgement.
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample);
    /// A loss was found by reports; at most once per window of data.
    fn on_loss(&mut self, path: PathId, now: Time);
    /// The retransmission timer expired.
    fn on_timeout(&mut self, path: PathId, now: Time);
    /// The loss was none.
    fn on_spurious(&mut self, path: PathId, now: Time);
    /// The network marked packets.
    fn on_ecn(&mut self, path: PathId, now: Time);
    /// One idle retransmission timeout went by.
    fn on_idle(&mut self, path: PathId, now: Time);
    /// The path came back from failure.
    fn on_return(&mut self, path: PathId, now: Time);
    /// The window may be at most so large for now.
    fn limit(&mut self, path: PathId, most: u64);
    /// The window, bytes.
    fn window(&self, path: PathId) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self, path: PathId) -> u64;
    /// The rate at which to send, if the algorithm paces.
    fn pacing_rate(&self, path: PathId) -> Option<Rate>;
}
