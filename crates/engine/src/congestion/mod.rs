//! Congestion control: one object per connection with the path as argument, so that coupled algorithms
//! see all paths. It has no access to packets, streams or timers.

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
mod flow_group;
mod fully_coupled;
mod hystart;
mod hystart_linux;
mod lia;
mod newreno;
mod olia;
mod options;
mod path_window;
mod prague;
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
pub use flow_group::Signals;
pub use fully_coupled::FullyCoupled;
pub use lia::Lia;
pub use newreno::NewReno;
pub use olia::Olia;
pub use options::{
    BottleneckCoupling, CongestionFlavour, CongestionOptions, CongestionVariants, Rules,
};
pub use prague::Prague;
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
    /// Round trip of the newest acknowledged packet, `None` if it was retransmitted (Karn's algorithm).
    pub rtt: Option<Duration>,
    /// Smoothed round trip of the path, including this sample; `None` before the first.
    pub srtt: Option<Duration>,
    /// Minimum round trip of the path, the best estimate without queueing.
    pub least_rtt: Option<Duration>,
    /// Queueing delay of the newest acknowledged packet on its way to the peer, `None` if it is not
    /// measured.
    pub forward_queueing: Option<Duration>,
    /// Whether the sender had less to send than the window allowed when the newest acknowledged packet was
    /// sent.
    pub app_limited: bool,
    /// The delivery rate according to this acknowledgement.
    pub delivery: Delivery,
    /// Bytes that arrived marked since the last acknowledgement; 0 if the peer does not count them.
    pub marked_bytes: u64,
}

/// Delivery of data on one path according to an acknowledgement (draft-ietf-ccwg-bbr, 4.1). A packet is a
/// transmission of a chunk or a segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Number of the newest acknowledged packet, `None` if it may have arrived as a copy on another path.
    pub newest: Option<u64>,
    /// Number of the oldest packet in flight, or of the next one to be sent.
    pub oldest: u64,
    /// Bytes delivered on the path so far.
    pub delivered: u64,
    /// Bytes that had been delivered when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// The delivery rate since then, `None` if it cannot be measured.
    pub rate: Option<Rate>,
    /// Bytes in flight after the acknowledgement.
    pub in_flight: u64,
}

/// A data packet that is sent on one path.
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// Its number among the packets of the path.
    pub number: u64,
    /// Its size, as counted in windows.
    pub bytes: u64,
    /// Bytes in flight before it.
    pub in_flight_before: u64,
    /// Whether the application or the receive window, not the path, is the limit.
    pub app_limited: bool,
    /// Whether the application is the only limit: it had no more data.
    pub out_of_data: bool,
}

/// A data packet that counts as lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Its number among the packets of the path.
    pub number: u64,
    /// Its size, as counted in windows.
    pub bytes: u64,
}

/// The interface of a single-path algorithm; [`Uncoupled`] extends it to a connection.
pub trait PathCongestion {
    /// Whether the algorithm responds to the share of marked data, and thus expects the marks of L4S (RFC
    /// 9331, 4.3).
    const SCALABLE: bool = false;
    /// Processes a packet that is sent.
    fn on_sent(&mut self, _now: Time, _packet: &SentPacket) {}
    /// Processes an acknowledgement.
    fn on_ack(&mut self, now: Time, sample: &AckSample);
    /// Processes the loss of one packet, before the call of `on_loss` or `on_timeout` that may follow.
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
    /// Processes idle time: one call per retransmission timeout without transmissions.
    fn on_idle(&mut self, _now: Time) {}
    /// Processes the return of the path from failure.
    fn on_return(&mut self, now: Time);
    /// Limits the window temporarily, because other paths make better use of the receive buffer. The
    /// window may grow again.
    fn limit(&mut self, most: u64);
    /// Halves the window, because data of the path keeps the receive window closed (Raiciu et al., 2012,
    /// 4.2). An algorithm with a slow-start threshold halves that as well; otherwise the window would grow
    /// back in a round trip.
    fn penalise(&mut self) {
        self.limit(self.window() / 2);
    }
    /// Sets the chunk size in bytes, the unit of every rule. Windows do not change.
    fn set_unit(&mut self, unit: u64);
    /// The window, bytes.
    fn window(&self) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self) -> u64;
    /// The rate and the burst at which to send, if the algorithm paces.
    fn pace(&self) -> Option<Pace> {
        None
    }

    /// Sets this path's part of the growth of one flow: below 1 if other paths share its bottleneck and
    /// act together with it like one flow.
    fn set_flow_share(&mut self, _share: f64) {}
    /// Signals to the other paths of the bottleneck since the last call. Algorithms that only follow
    /// losses have none: [`Uncoupled`] passes their reductions on.
    fn take_signals(&mut self) -> Signals {
        Signals::default()
    }
    /// Follows the signals of another path of the bottleneck.
    fn join(&mut self, _now: Time, _signals: Signals) {}
    /// Whether a reduction by one path of a bottleneck is applied to all of them, through
    /// [`on_loss`](Self::on_loss).
    fn reduces_by_loss(&self) -> bool {
        true
    }
    /// Current effect of the algorithm on the queue of the path.
    fn disturbance(&self) -> Disturbance {
        if self.window() < self.ssthresh() { Disturbance::InStep } else { Disturbance::None }
    }
}

/// Effect of congestion control on the queue of a path, other than sending at the rate of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Disturbance {
    /// Nothing.
    #[default]
    None,
    /// It sends faster than the path delivers, to find more bandwidth, or has just done so. The resulting
    /// queue drains without further action.
    Probe,
    /// The same, and other paths probe at the same time.
    ProbeInStep,
    /// Another action that other paths may perform at the same time: starting, draining the queue to
    /// measure the round trip, or a reduction of the window together with theirs.
    InStep,
}

impl Disturbance {
    /// Whether the queue is that of a probe.
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::Probe | Self::ProbeInStep)
    }

    /// Whether several paths may act at the same time, so that their queues vary together in any case.
    pub const fn is_in_step(self) -> bool {
        matches!(self, Self::ProbeInStep | Self::InStep)
    }
}

/// The interface of an algorithm for a connection.
pub trait CongestionControl {
    /// Adds paths to a connection: takes the additional paths from `fresh`, which was made for the new
    /// number of paths.
    fn grow(&mut self, fresh: Self)
    where
        Self: Sized;
    /// Resets `path`, which now leads through another network, to its state in `fresh`, made for all
    /// paths (RFC 9260, 7.2.5).
    fn renew(&mut self, path: PathId, fresh: Self)
    where
        Self: Sized;
    /// Processes a packet that is sent on `path`.
    fn on_sent(&mut self, _path: PathId, _now: Time, _packet: &SentPacket) {}
    /// Processes an acknowledgement.
    fn on_ack(&mut self, path: PathId, now: Time, sample: &AckSample);
    /// Processes the loss of one packet, before the call of `on_loss` or `on_timeout` that may follow.
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
    /// Limits the window temporarily.
    fn limit(&mut self, path: PathId, most: u64);
    /// Halves the window, because data of the path keeps the receive window closed
    /// ([`PathCongestion::penalise`]).
    fn penalise(&mut self, path: PathId) {
        self.limit(path, self.window(path) / 2);
    }
    /// Sets the chunk size in bytes, the unit of every rule. Windows do not change.
    fn set_unit(&mut self, unit: u64);
    /// Whether the algorithm responds to the share of marked data ([`PathCongestion::SCALABLE`]).
    fn is_scalable(&self) -> bool {
        false
    }
    /// The window, bytes.
    fn window(&self, path: PathId) -> u64;
    /// The slow-start threshold, bytes.
    fn ssthresh(&self, path: PathId) -> u64;
    /// The rate and the burst at which to send, if the algorithm paces.
    fn pace(&self, _path: PathId) -> Option<Pace> {
        None
    }
    /// Sets the groups of paths that share a bottleneck: for each path, the lowest path of its group. An
    /// algorithm that controls each path separately then lets a group act like one flow.
    fn set_bottlenecks(&mut self, _groups: &[PathId]) {}
    /// Current effect of the algorithm on the queue of the path.
    fn disturbance(&self, _path: PathId) -> Disturbance {
        Disturbance::None
    }
}
