//! What an association keeps per path.

use ropewalk_base::{Duration, Time};

use super::super::config::{Config, PathConfig};
use super::ecn::Ecn;
use crate::accounts::PathCounters;
use crate::path::{
    DeliveryRate, ForwardDelay, LossEstimate, MtuSearch, Pacer, PathState, PathStatus, RttEstimator,
};
use crate::recovery::{Flights, Rack, TailProbe};

/// Heartbeats of a path (RFC 9260, 8.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heartbeat {
    /// The nonce that waits for its answer, and when it counts as unanswered.
    pub pending: Option<(u64, Time)>,
    /// Nonces before that one: a path that has become longer than the patience with it answers late.
    pub earlier: [u64; 8],
    /// It is asked whatever else is on its way: all that was is lost, or the path leads elsewhere now. Until
    /// something is acknowledged here.
    pub forced: bool,
    /// T3 expired while it was pending: the silence has been counted.
    pub counted: bool,
    /// When the next one is due.
    pub due: Option<Time>,
    /// When the last one left.
    pub asked_at: Time,
}

/// One path. Laid out as written: first what every packet of data and every SACK looks at, last what
/// seldom matters.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Path {
    pub flights: Flights,
    /// Bytes that the peer holds of this path's data, beyond the cumulative acknowledgement.
    pub held: u64,
    pub rate: DeliveryRate,
    /// Highest transmission number acknowledged so far, plus one.
    pub acked_to: u64,
    /// Rounds of the sender on this path: one per window of data acknowledged, and one per timer that
    /// gave a window up.
    pub round: u64,
    pub round_ends: u64,
    /// T3-rtx.
    pub t3: Option<Time>,
    /// By the RFC's rules: the lowest TSN in flight here when T3 was started.
    pub t3_tsn: u64,
    /// The expected pseudo-cumulative TSN (CUC): the oldest that was outstanding here when it was
    /// looked for. It stays until it is acknowledged here, or something sent here cumulatively.
    pub pseudo_cumack: Option<u64>,
    /// Fast recovery until the transmission with this number has been acknowledged or given up.
    pub recovery_exit: Option<u64>,
    pub last_sent_at: Time,
    /// Up to when the window has decayed, if the path was idle since it was last used.
    pub decayed_at: Time,
    pub loss: LossEstimate,
    pub state: PathState,
    /// Packets that may still leave in answer to the current input.
    pub burst_left: u32,
    /// T3 expired, and nothing sent since has been acknowledged: one packet at a time is on its way here
    /// (RFC 9260, 7.2.3).
    pub one_packet: bool,
    /// A fast retransmit may leave though the window is full (RFC 9260, 7.2.4, 3).
    pub fast_credit: bool,
    /// The last drain left room in the window: not the path, but the data or the peer's window was
    /// the limit.
    pub limited: bool,
    pub tail: TailProbe,
    /// Loss by time.
    pub rack: Rack,
    pub rtt: RttEstimator,
    pub forward: ForwardDelay,
    pub pacer: Pacer,
    /// Marks instead of losses; none: not agreed upon.
    pub ecn: Option<Box<Ecn>>,
    /// What a leg of the handshake took here and back: all that is known of a path on which this end sends no
    /// data, until it is asked by a heartbeat.
    pub handshake_trip: Option<Duration>,
    /// Losses found so far; a timeout is one, whatever it gives up.
    pub losses: u64,
    pub config: PathConfig,
    pub counters: PathCounters,
    /// Looks for the largest packets that get through; none: all of `config.mtu` do.
    pub mtu: Option<Box<MtuSearch>>,
    /// No data goes there until something is known of it.
    pub narrow: bool,
    /// It was added while the association was being set up or was up: the user did not name its address.
    pub learned: bool,
    pub heartbeat: Heartbeat,
}

impl Path {
    pub fn new(path: &PathConfig, config: &Config) -> Self {
        Self {
            config: match &config.mtu_discovery {
                None => *path,
                Some(range) => PathConfig { mtu: range.base, ..*path },
            },
            state: PathState::unconfirmed(path.failure(config.failure)),
            rtt: RttEstimator::new(config.rto),
            handshake_trip: None,
            rate: DeliveryRate::default(),
            forward: ForwardDelay::default(),
            flights: Flights::default(),
            rack: Rack::default(),
            tail: TailProbe::default(),
            t3: None,
            t3_tsn: 0,
            heartbeat: Heartbeat::default(),
            recovery_exit: None,
            one_packet: false,
            fast_credit: false,
            acked_to: 0,
            pseudo_cumack: None,
            last_sent_at: Time::ZERO,
            decayed_at: Time::ZERO,
            limited: false,
            pacer: Pacer::default(),
            burst_left: u32::MAX,
            loss: LossEstimate::default(),
            round: 0,
            round_ends: 0,
            held: 0,
            losses: 0,
            counters: PathCounters::default(),
            mtu: config.mtu_discovery.map(|range| Box::new(MtuSearch::new(range))),
            narrow: false,
            learned: false,
            ecn: None,
        }
    }

    /// Whether the next HEARTBEAT is one of those that go to idle addresses at the user's interval.
    pub fn is_asked_at_interval(&self) -> bool {
        let idle = matches!(self.state.status(), PathStatus::Active | PathStatus::Inactive);
        idle && !self.heartbeat.forced
    }

    /// Whether no HEARTBEATs go to its address while it is idle: the user wants none.
    pub fn is_left_alone(&self) -> bool {
        self.is_asked_at_interval() && !self.config.heartbeats
    }

    /// Bytes that Max.Burst and pacing let go now, in packets of `full` bytes.
    #[inline]
    pub fn burst_room(&self, now: Time, full: u64) -> u64 {
        (self.burst_left as u64 * full).min(self.pacer.room(now))
    }

    /// Round trip as far as anything is known of it.
    #[inline]
    pub fn known_trip(&self) -> Option<Duration> {
        self.rtt.srtt().or(self.handshake_trip)
    }

    /// No more timers.
    pub fn stop(&mut self) {
        self.t3 = None;
        self.heartbeat = Heartbeat::default();
        if let Some(search) = &mut self.mtu {
            search.pause();
        }
    }

    /// Whether fast recovery lasts; ends it when its exit point is passed (RFC 9260, 7.2.4, 5).
    #[inline]
    pub fn in_recovery(&mut self) -> bool {
        if let Some(exit) = self.recovery_exit {
            let oldest = self.flights.oldest().map_or(self.flights.next_number(), |(n, _)| n);
            if oldest >= exit {
                self.recovery_exit = None;
            }
        }
        self.recovery_exit.is_some()
    }

    /// Another round begins with the next packet: one of the last was acknowledged, or a timer tells
    /// that none will be.
    #[inline]
    pub fn begin_round(&mut self) {
        self.round += 1;
        self.round_ends = self.flights.next_number();
    }

    /// `window`, or what is in flight if no more may be.
    #[inline]
    pub fn limited(&self, window: u64) -> u64 {
        let flying = self.flights.bytes();
        if self.one_packet && flying > 0 { window.min(flying) } else { window }
    }

    /// Starts T3 anew, or stops it when nothing is in flight.
    #[inline]
    pub fn restart_t3(&mut self, now: Time) {
        self.t3 = (!self.flights.is_empty()).then(|| now + self.rtt.rto());
    }

    /// The earliest outstanding chunk was acknowledged by a copy that came another way: the next one
    /// has waited since it left, for nothing shows that the path still works.
    pub fn restart_t3_as_sent(&mut self, now: Time) {
        let oldest = self.flights.oldest().map(|(_, flight)| flight.sent_at);
        self.t3 = oldest.map(|sent_at| (sent_at + self.rtt.rto()).max(now));
    }

    /// Time since a packet with data left.
    pub fn idle(&self, now: Time) -> Duration {
        now.since(self.last_sent_at)
    }
}
