//! What an association keeps per path.

use ropewalk_base::{Duration, Time};

use super::super::config::{Config, PathConfig};
use super::ecn::Ecn;
use crate::multipath::TxPath;
use crate::path::{MtuSearch, PathState, PathStatus, RttEstimator};

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
    /// T3-rtx.
    pub t3: Option<Time>,
    /// By the RFC's rules: the lowest TSN in flight here when T3 was started.
    pub t3_tsn: u64,
    /// The expected pseudo-cumulative TSN (CUC): the oldest that was outstanding here when it was
    /// looked for. It stays until it is acknowledged here, or something sent here cumulatively.
    pub pseudo_cumack: Option<u64>,
    /// The sending side, as in every protocol.
    pub tx: TxPath,
    /// Up to when the window has decayed, if the path was idle since it was last used.
    pub decayed_at: Time,
    /// Marks instead of losses; none: not agreed upon.
    pub ecn: Option<Box<Ecn>>,
    /// What a leg of the handshake took here and back: all that is known of a path on which this end sends no
    /// data, until it is asked by a heartbeat.
    pub handshake_trip: Option<Duration>,
    /// Looks for the largest packets that get through; none: all of `config.mtu` do.
    pub mtu: Option<Box<MtuSearch>>,
    /// No data goes there until something is known of it.
    pub narrow: bool,
    /// It was added while the association was being set up or was up: the user did not name its address.
    pub learned: bool,
    pub heartbeat: Heartbeat,
}

impl AsRef<TxPath> for Path {
    #[inline]
    fn as_ref(&self) -> &TxPath {
        &self.tx
    }
}

impl AsMut<TxPath> for Path {
    #[inline]
    fn as_mut(&mut self) -> &mut TxPath {
        &mut self.tx
    }
}

impl Path {
    pub fn new(path: &PathConfig, config: &Config) -> Self {
        let own = match &config.mtu_discovery {
            None => *path,
            Some(range) => PathConfig { mtu: range.base, ..*path },
        };
        let state = PathState::unconfirmed(path.failure(config.failure));
        Self {
            t3: None,
            t3_tsn: 0,
            pseudo_cumack: None,
            tx: TxPath::new(own, state, RttEstimator::new(config.rto)),
            decayed_at: Time::ZERO,
            ecn: None,
            handshake_trip: None,
            mtu: config.mtu_discovery.map(|range| Box::new(MtuSearch::new(range))),
            narrow: false,
            learned: false,
            heartbeat: Heartbeat::default(),
        }
    }

    /// Whether the next HEARTBEAT is one of those that go to idle addresses at the user's interval.
    pub fn is_asked_at_interval(&self) -> bool {
        let idle = matches!(self.tx.state.status(), PathStatus::Active | PathStatus::Inactive);
        idle && !self.heartbeat.forced
    }

    /// Whether no HEARTBEATs go to its address while it is idle: the user wants none.
    pub fn is_left_alone(&self) -> bool {
        self.is_asked_at_interval() && !self.tx.config.heartbeats
    }

    /// Round trip as far as anything is known of it.
    #[inline]
    pub fn known_trip(&self) -> Option<Duration> {
        self.tx.rtt.srtt().or(self.handshake_trip)
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
        if let Some(exit) = self.tx.recovery_exit {
            let oldest = self.tx.flights.oldest().map_or(self.tx.flights.next_number(), |(n, _)| n);
            if oldest >= exit {
                self.tx.recovery_exit = None;
            }
        }
        self.tx.recovery_exit.is_some()
    }

    /// Starts T3 anew, or stops it when nothing is in flight.
    #[inline]
    pub fn restart_t3(&mut self, now: Time) {
        self.t3 = (!self.tx.flights.is_empty()).then(|| now + self.tx.rtt.rto());
    }

    /// The earliest outstanding chunk was acknowledged by a copy that came another way: the next one
    /// has waited since it left, for nothing shows that the path still works.
    pub fn restart_t3_as_sent(&mut self, now: Time) {
        let oldest = self.tx.flights.oldest().map(|(_, flight)| flight.sent_at);
        self.t3 = oldest.map(|sent_at| (sent_at + self.tx.rtt.rto()).max(now));
    }
}
