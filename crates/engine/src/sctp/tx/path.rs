//! An association's state for sending data on one path.

use std::num::NonZeroU32;

use ropewalk_base::{Duration, Time};

use super::ecn::Ecn;
use super::rescue::Rescue;
use super::send_times::SendTimes;
use crate::multipath::TxPath;
use crate::path::{MtuSearch, PathState, RttEstimator};
use crate::sctp::config::{Config, PathConfig};

/// One path. `repr(C)` keeps the fields in this order, with those that every DATA packet and every SACK
/// reads first and rarely used ones last.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Path {
    /// T3-rtx.
    pub t3: Option<Time>,
    /// The expected pseudo-cumulative TSN (CUC): the oldest TSN that was outstanding here when it was
    /// determined. It stays until it is acknowledged on this path, or a TSN sent here is acknowledged
    /// cumulatively.
    pub pseudo_cumack: Option<u64>,
    /// Round-trip time of a handshake exchange. On a path where this end sends no data, it is the only
    /// estimate until a HEARTBEAT is answered.
    pub handshake_trip: Option<Duration>,
    /// The search for the path MTU. `None`: `config.mtu` is taken for granted.
    pub mtu: Option<Box<MtuSearch>>,
    /// The path MTU is unknown, so no data is sent here.
    pub mtu_unknown: bool,
    /// The path was added during or after the handshake: the user did not name its address.
    pub learned: bool,
    /// Its address was removed. The next path that is added takes its number.
    pub retired: bool,
    /// It starts at an address of this end that the peer does not know yet: only an ASCONF is sent there
    /// (RFC 5061, 5.3).
    pub announcing: bool,
    /// Number of packets sent on this path, which wraps around.
    pub(in crate::sctp) packets: u32,
    /// Records that most paths do not need, `None` until they are needed.
    pub records: Option<Box<PathRecords>>,
    /// The sending side, common to all protocols.
    pub tx: TxPath,
    /// Counting by TSN: the lowest TSN in flight here when T3 was started.
    pub t3_tsn: u64,
    /// Time up to which the window has decayed, if the path has been idle since it was last used.
    pub decayed_at: Time,
    /// ECN state, `None` if not negotiated.
    pub ecn: Option<Box<Ecn>>,
}

/// Records of a path that are allocated when they are needed. An idle association has none.
#[derive(Clone, Debug, Default)]
pub struct PathRecords {
    /// When packets with DATA were sent, if the peer echoes TSNs.
    pub times: SendTimes,
    /// Interactive messages that were sent again on another path.
    pub rescue: Rescue,
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
            mtu_unknown: false,
            learned: false,
            retired: false,
            announcing: false,
            records: None,
            packets: 0,
        }
    }

    /// The number of the next packet on this path.
    #[inline]
    pub fn next_packet_number(&mut self) -> NonZeroU32 {
        self.packets = self.packets.wrapping_add(1).max(1);
        NonZeroU32::new(self.packets).unwrap_or(NonZeroU32::MIN)
    }

    /// The smoothed RTT, else that of the handshake.
    #[inline]
    pub fn known_trip(&self) -> Option<Duration> {
        self.tx.rtt.srtt().or(self.handshake_trip)
    }

    /// Whether fast recovery is in progress. Ends it when its exit point is passed (RFC 9260, 7.2.4 (6)).
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

    /// Restarts T3, or stops it when nothing is in flight.
    #[inline]
    pub fn restart_t3(&mut self, now: Time) {
        self.t3 = (!self.tx.flights.is_empty()).then(|| now + self.tx.rtt.rto());
    }

    /// Restarts T3 after a copy on another path acknowledged the earliest outstanding chunk. It counts
    /// from the transmission of the next chunk, because nothing shows that this path still works.
    pub fn restart_t3_as_sent(&mut self, now: Time) {
        let oldest = self.tx.flights.oldest().map(|(_, flight)| flight.sent_at);
        self.t3 = oldest.map(|sent_at| (sent_at + self.tx.rtt.rto()).max(now));
    }
}
