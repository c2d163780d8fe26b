//! Congestion control: one object per connection with the path as argument, so that coupled algorithms see
//! all paths. It never sees packets, streams or timers.

mod balia;
mod bbr;
mod bbr_v1;
#[cfg(test)]
mod bottleneck;
mod chihani;
#[cfg(test)]
mod conformance;
mod coupled;
mod cubic;
mod fully_coupled;
mod hystart;
mod hystart_linux;
mod lia;
mod newreno;
mod olia;
mod options;
mod path_window;
mod registry;
mod rfc9260;
mod round;
mod uncoupled;
mod window_use;
mod wvegas;

pub use balia::Balia;
pub use bbr::{Bbr, BbrState};
pub use bbr_v1::{BbrV1, BbrV1State};
pub use chihani::{Chihani2011, ChihaniCoupling};
pub use coupled::{Coupled, Coupling, Windows};
pub use cubic::Cubic;
pub use fully_coupled::FullyCoupled;
pub use lia::Lia;
pub use newreno::NewReno;
pub use olia::Olia;
pub use options::{CongestionFlavour, CongestionOptions, CongestionVariants, Rules};
pub use registry::{Congestion, UnknownCongestion};
pub use rfc9260::{IdleDecay, Rfc9260, Rfc9260Options, WindowRounding, initial_window};
pub use uncoupled::Uncoupled;
pub use wvegas::WVegas;

use ropewalk_base::{Duration, PathId, Rate, Time};

use crate::path::Pace;

/// Totals of one acknowledgement on one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Bytes in flight before the acknowledgement.
    pub in_flight_before: u64,
    /// Whether the path's (pseudo-)cumulative acknowledgement advanced (CUC; RFC 9260, 7.2.1).
    pub advanced: bool,
    /// Whether the path is in fast recovery.
    pub in_recovery: bool,
    /// Whether nothing is left in flight.
    pub flight_empty: bool,
    /// Round trip of the newest acknowledged packet; none if it was retransmitted (Karn's algorithm).
    pub rtt: Option<Duration>,
    /// Smoothed round trip of the path, including this sample; none before the first.
    pub srtt: Option<Duration>,
    /// Least round trip of the path, the best estimate without queueing.
    pub least_rtt: Option<Duration>,
    /// Whether the sender had less to send than the window allowed when the newest acknowledged packet was
    /// sent.
    pub app_limited: bool,
    /// What it says about the delivery rate.
    pub delivery: Delivery,
}

/// Delivery of data on one path, as an acknowledgement shows it (draft-ietf-ccwg-bbr, 4.1). A packet is a
/// transmission of a chunk or a segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Number of the newest acknowledged packet; none if it may have arrived as a copy on another path.
    pub newest: Option<u64>,
    /// Number of the oldest packet in flight, or of the next one to be sent.
    pub oldest: u64,
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Bytes that had been delivered when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// The delivery rate since then; none if it cannot be measured.
    pub rate: Option<Rate>,
    /// Bytes in flight after the acknowledgement.
    pub in_flight: u64,
}

/// A data packet that is sent on one path.
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// Its number among the packets of the path.
    pub number: u64,
    /// Its size, as windows count it.
    pub bytes: u64,
    /// Bytes in flight before it.
    pub in_flight_before: u64,
    /// Whether the application or the receive window, not the path, is the limit.
    pub app_limited: bool,
    /// Whether the application alone is the limit: it had no more data.
    pub out_of_data: bool,
}

/// A data packet that counts as lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Its number among the packets of the path.
    pub number: u64,
    /// Its size, as windows count it.
    pub bytes: u64,
}

/// The interface of a single-path algorithm; [`Uncoupled`] extends it to a connection.
pub trait PathCongestion {
    /// Processes a packet that is sent.
    fn on_sent(&mut self, _now: Time, _packet: &SentPacket) {}
    /// Processes an acknowledgement.
    fn on_ack(&mut self, now: Time, sample: &AckSample);
    /// Processes the loss of one packet, before the call of `on_loss` or `on_timeout` that it may lead to.
    fn on_lost(&mut self, _now: Time, _packet: &LostPacket) {}
    /// Processes a loss detected by acknowledgements; at most once per window of data.
    fn on_loss(&mut self, now: Time);
    /// Processes an expiry of the retransmission timer.
    fn on_timeout(&mut self, now: Time);
    /// Undoes the last `on_loss` or `on_timeout`, because the loss was spurious.
    fn on_spurious(&mut self, now: Time);
    /// Processes a mark by the network (ECN).
    fn on_ecn(&mut self, now: Time) {
        self.on_loss(now);
    }
    /// Processes idle time: one call per retransmission timeout without data sent.
    fn on_idle(&mut self, _now: Time) {}
    /// Processes the return of the path from failure.
    fn on_return(&mut self, now: Time);
    /// Limits the window for now, because other paths make better use of the receive buffer. The window may
    /// grow again.
    fn limit(&mut self, most: u64);
    /// Halves the window, because data of the path keeps the receive window closed (Raiciu et al., 2012,
    /// 4.2). An algorithm with a slow-start threshold halves that as well; otherwise the window would grow
    /// back in a round trip.
    fn penalise(&mut self) {
        self.limit(self.window() / 2);
    }
    /// Sets the chunk size in bytes, the unit of every rule. Windows stay as they are.
    fn set_unit(&mut self, unit: u64);
    /// The window, bytes.
    fn window(&self) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self) -> u64;
    /// The rate and the burst at which to send, if the algorithm paces.
    fn pace(&self) -> Option<Pace> {
        None
    }
}

/// The interface of an algorithm for a connection.
pub trait CongestionControl {
    /// Adds paths to a connection: takes those beyond its own from `fresh`, which was made for the new number
    /// of paths.
    fn grow(&mut self, fresh: Self)
    where
        Self: Sized;
    /// Resets `path`, which leads through another network now, to its state in `fresh`, made for all paths
    /// (RFC 9260, 7.2.5).
    fn renew(&mut self, path: PathId, fresh: Self)
    where
        Self: Sized;
    /// Processes a packet that is sent on `path`.
    fn on_sent(&mut self, _path: PathId, _now: Time, _packet: &SentPacket) {}
    /// Processes an acknowledgement.
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample);
    /// Processes the loss of one packet, before the call of `on_loss` or `on_timeout` that it may lead to.
    fn on_lost(&mut self, _path: PathId, _now: Time, _packet: &LostPacket) {}
    /// Processes a loss detected by acknowledgements; at most once per window of data.
    fn on_loss(&mut self, path: PathId, now: Time);
    /// Processes an expiry of the retransmission timer.
    fn on_timeout(&mut self, path: PathId, now: Time);
    /// Undoes the last reduction, because the loss was spurious.
    fn on_spurious(&mut self, path: PathId, now: Time);
    /// Processes a mark by the network (ECN).
    fn on_ecn(&mut self, path: PathId, now: Time);
    /// Processes one retransmission timeout of idle time.
    fn on_idle(&mut self, path: PathId, now: Time);
    /// Processes the return of the path from failure.
    fn on_return(&mut self, path: PathId, now: Time);
    /// Limits the window for now.
    fn limit(&mut self, path: PathId, most: u64);
    /// Halves the window, because data of the path keeps the receive window closed
    /// ([`PathCongestion::penalise`]).
    fn penalise(&mut self, path: PathId) {
        self.limit(path, self.window(path) / 2);
    }
    /// Sets the chunk size in bytes, the unit of every rule. Windows stay as they are.
    fn set_unit(&mut self, unit: u64);
    /// The window, bytes.
    fn window(&self, path: PathId) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self, path: PathId) -> u64;
    /// The rate and the burst at which to send, if the algorithm paces.
    fn pace(&self, _path: PathId) -> Option<Pace> {
        None
    }
}
