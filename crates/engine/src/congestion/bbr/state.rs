//! The state machine, the rounds, and the rate sample of an acknowledgement (draft-ietf-ccwg-bbr, 2 and
//! 5.1).

use ropewalk_base::{Duration, Rate};

use super::sent_log::PacketState;
use crate::congestion::AckSample;

/// State of the state machine (draft, 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BbrState {
    /// Doubles the rate each round until the path is full.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// `ProbeBW_DOWN`: drains the queue of the last probe.
    ProbeBwDown,
    /// `ProbeBW_CRUISE`: sends at the estimated rate.
    ProbeBwCruise,
    /// `ProbeBW_REFILL`: fills the path before a probe.
    ProbeBwRefill,
    /// `ProbeBW_UP`: probes for more bandwidth.
    ProbeBwUp,
    /// Reduces the data in flight to measure the minimum round trip.
    ProbeRtt,
}

impl BbrState {
    /// `BBR.pacing_gain`.
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::ProbeBwDown => 0.9,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => 1.0,
            Self::ProbeBwUp => 1.25,
        }
    }

    /// `BBR.cwnd_gain`.
    pub(super) const fn cwnd_gain(self) -> f64 {
        match self {
            Self::ProbeBwUp => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// `IsInAProbeBWState()`.
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(
            self,
            Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp
        )
    }

    /// `IsProbingBW()`: whether losses are caused by a probe rather than by other traffic.
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
}

/// `RS`: rate sample of one acknowledgement (draft, 2.3).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct RateSample {
    /// `RS.delivery_rate`, bits per second; 0 without a reliable sample.
    pub delivery_rate: u64,
    /// `RS.delivered`, bytes.
    pub delivered: u64,
    /// `RS.prior_delivered`, bytes.
    pub prior_delivered: u64,
    /// `RS.newly_acked`, bytes.
    pub newly_acked: u64,
    /// `RS.tx_in_flight`, bytes.
    pub tx_in_flight: u64,
    /// `RS.lost`, bytes.
    pub lost: u64,
    /// `RS.is_app_limited`.
    pub app_limited: bool,
    /// `RS.rtt`.
    pub rtt: Option<Duration>,
}

impl RateSample {
    /// `GenerateRateSample()`. A sample over less than the minimum round trip is not reliable (draft,
    /// 4.1.2.3). `packet`: the state when the newest acknowledged packet was sent. `lost`: bytes lost so
    /// far.
    pub fn new(ack: &AckSample, packet: PacketState, lost: u64, min_rtt: Option<Duration>) -> Self {
        let delivery = &ack.delivery;
        let delivered = delivery.delivered - delivery.prior_delivered;
        let reliable = |rate: &u64| {
            let interval = delivered as f64 * 8e9 / *rate as f64;
            min_rtt.is_none_or(|least| interval >= least.as_nanos() as f64 * 0.99)
        };
        let measured = delivery.rate.map(Rate::as_bps).filter(reliable);
        Self {
            delivery_rate: measured.unwrap_or(0),
            delivered,
            prior_delivered: delivery.prior_delivered,
            newly_acked: ack.acked_bytes,
            tx_in_flight: packet.tx_in_flight,
            lost: lost - packet.lost,
            app_limited: packet.app_limited,
            rtt: ack.rtt,
        }
    }
}

/// Packet-timed round trips (draft, 5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rounds {
    /// `BBR.round_count`.
    pub count: u64,
    /// `BBR.round_start`: whether this acknowledgement begins a round.
    pub start: bool,
    /// `BBR.next_round_delivered`.
    pub next_delivered: u64,
}

/// Data in flight that fills a path if queueing delays are not measured, as a multiple of the
/// bandwidth-delay product.
const FULL_PATH: f64 = 1.25;
/// Queueing delay of a full path, as a part of the minimum round trip.
const FULL_QUEUE: f64 = 1.0 / 8.0;

/// Detects that the path is full (draft, 5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    /// `BBR.full_bw_reached`: whether the path has ever been full.
    pub reached: bool,
    /// `BBR.full_bw_now`.
    pub now: bool,
    /// `BBR.full_bw`, bits per second.
    pub bw: u64,
    /// `BBR.full_bw_count`: rounds without growth.
    pub count: u32,
    /// Whether the last packet waited in a queue on the way to the peer, as on a full path. `None` if
    /// that is not measured.
    has_waited: Option<bool>,
}

impl FullBw {
    /// `ResetFullBW()`, with `bw` as the new baseline.
    pub const fn reset(&mut self, bw: u64) {
        self.bw = bw;
        self.count = 0;
        self.now = false;
    }

    /// Records how long the newest acknowledged packet waited on its way to the peer. `None` if that is
    /// not measured.
    pub fn note_wait(&mut self, queueing: Option<Duration>, least_rtt: Option<Duration>) {
        let is_long =
            |(queueing, least): (Duration, Duration)| queueing >= least.mul_f64(FULL_QUEUE);
        self.has_waited = queueing.zip(least_rtt).map(is_long);
    }

    /// Whether this much data in flight fills a path with this bandwidth-delay product, bytes. A queue on
    /// the way back also lengthens the round trip, so data in flight may exceed that product although the
    /// path to the peer is empty.
    pub fn is_full(&self, tx_in_flight: u64, bdp: u64) -> bool {
        match self.has_waited {
            Some(has_waited) => has_waited && tx_in_flight >= bdp,
            None => tx_in_flight as f64 >= FULL_PATH * bdp as f64,
        }
    }

    /// `CheckFullBWReached()`.
    pub fn check(&mut self, round_start: bool, sample: &RateSample) {
        if self.now || !round_start || sample.app_limited {
            return;
        }
        if sample.delivery_rate as f64 >= self.bw as f64 * 1.25 {
            self.reset(sample.delivery_rate);
            return;
        }
        self.count += 1;
        self.now = self.count >= 3;
        self.reached |= self.now;
    }
}
