//! Congestion control: one object per connection with the path as argument, so that coupling
//! needs no tricks. It never sees packets, streams or timers.

mod balia;
mod chihani;
mod coupled;
mod cubic;
mod fully_coupled;
#[cfg(test)]
mod kit;
mod lia;
mod names;
mod newreno;
mod olia;
mod options;
mod path_window;
mod rfc9260;
mod round;
mod uncoupled;
mod wvegas;

pub use balia::Balia;
pub use chihani::{Chihani2011, ChihaniCoupling};
pub use coupled::{Coupled, Coupling, Windows};
pub use cubic::Cubic;
pub use fully_coupled::FullyCoupled;
pub use lia::Lia;
pub use names::{Congestion, UnknownCongestion};
pub use newreno::NewReno;
pub use olia::Olia;
pub use options::{CongestionFlavour, CongestionOptions};
pub use rfc9260::{IdleDecay, Rfc9260, Rfc9260Options, WindowRounding, initial_window};
pub use uncoupled::Uncoupled;
pub use wvegas::WVegas;

use ropewalk_base::{Duration, PathId, Rate, Time};

/// Totals of one acknowledgement on one path.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Round trip of the newest packet acknowledged; none where it was sent twice (Karn's rule).
    pub rtt: Option<Duration>,
    /// Smoothed round trip of the path, this sample included; none before the first.
    pub srtt: Option<Duration>,
    /// Least round trip of the path, without queueing as far as is known.
    pub least_rtt: Option<Duration>,
    /// The sender had less to send than the window allowed when the newest packet acknowledged left.
    pub app_limited: bool,
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
    /// The path keeps the peer's window shut: its window is halved (Raiciu et al., 2012, 4.2). An
    /// algorithm with a threshold halves that as well, lest the window grow back in a round trip.
    fn penalise(&mut self) {
        self.limit(self.window() / 2);
    }
    /// Chunks are so long from now on, bytes: the unit of every rule. Windows stay as they are.
    fn set_unit(&mut self, unit: u64);
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
    /// A connection got more paths: takes over those beyond its own from `fresh`, made for as many as there
    /// are now.
    fn grow(&mut self, fresh: Self)
    where
        Self: Sized;
    /// `path` leads through another network now: it starts over as it is in `fresh`, made for all paths (RFC 9260,
    /// 7.2.5).
    fn renew(&mut self, path: PathId, fresh: Self)
    where
        Self: Sized;
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
    /// The path keeps the peer's window shut ([`PathCongestion::penalise`]).
    fn penalise(&mut self, path: PathId) {
        self.limit(path, self.window(path) / 2);
    }
    /// Chunks are so long from now on, bytes: the unit of every rule. Windows stay as they are.
    fn set_unit(&mut self, unit: u64);
    /// The window, bytes.
    fn window(&self, path: PathId) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self, path: PathId) -> u64;
    /// The rate at which to send, if the algorithm paces.
    fn pacing_rate(&self, path: PathId) -> Option<Rate>;
}
