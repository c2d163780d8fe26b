//! One subflow: a TCP connection that carries part of the session's data.

pub(super) mod receiver;
pub(super) mod sent;

use ropewalk_base::{Duration, Time};

use self::receiver::Receiver;
use self::sent::{SegmentState, SentQueue};
use super::config::Config;
use crate::mptcp::reordering::SpuriousDetector;
use crate::multipath::TxPath;
use crate::path::{PathConfig, PathState, RttEstimator};

/// A SYN or SYN ACK that has not been answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Opening {
    /// When it is retransmitted.
    pub due: Time,
    /// Number of retransmissions.
    pub again: u32,
    /// When it was first sent.
    pub since: Time,
}

/// State of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing has been sent.
    Closed,
    /// Our SYN has not been answered yet.
    SynSent(Opening),
    /// Our SYN ACK has not been answered yet.
    SynReceived(Opening),
    /// Carries data.
    Open,
    /// The subflow has ended.
    Ended,
}

/// First sequence number of data: the SYN takes the one before.
const FIRST_SEQ: u64 = 1;

/// One subflow.
#[derive(Clone, Debug)]
pub(super) struct Subflow {
    /// The sending side, common to all protocols.
    pub tx: TxPath,
    pub phase: Phase,
    pub sent: SentQueue,
    pub received: Receiver,
    /// Detects spurious reductions.
    pub undo: SpuriousDetector,
    /// Whether the last reduction was caused by the timer.
    pub by_timer: bool,
    /// The retransmission timer.
    pub timer: Option<Time>,
    /// Consecutive duplicate acknowledgements, if selective ones are not used.
    pub duplicates: u32,
    /// End of the last segment that was shorter than a full one (`snd_sml`).
    pub short_end: u64,
    /// Piece to be retransmitted as a tail loss probe.
    pub probe: Option<u64>,
}

impl AsRef<TxPath> for Subflow {
    #[inline]
    fn as_ref(&self) -> &TxPath {
        &self.tx
    }
}

impl AsMut<TxPath> for Subflow {
    #[inline]
    fn as_mut(&mut self) -> &mut TxPath {
        &mut self.tx
    }
}

impl Subflow {
    pub fn new(path: &PathConfig, config: &Config) -> Self {
        let state = PathState::unconfirmed(config.failure);
        let rtt = RttEstimator::with_rule(config.rto, config.rto_rule);
        Self {
            tx: TxPath::new(*path, state, rtt),
            phase: Phase::Closed,
            sent: SentQueue::new(FIRST_SEQ),
            received: Receiver::default(),
            undo: config.undo(),
            by_timer: false,
            timer: None,
            duplicates: 0,
            short_end: 0,
            probe: None,
        }
    }

    /// Whether the subflow carries data.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the subflow is in recovery. Recovery ends here when its exit point has been acknowledged.
    pub fn in_recovery(&mut self) -> bool {
        self.tx.recovery_exit = self.tx.recovery_exit.filter(|exit| self.sent.una() < *exit);
        if self.tx.recovery_exit.is_none() {
            self.tx.inflation = 0;
        }
        self.tx.recovery_exit.is_some()
    }

    /// Restarts the timer, or stops it when nothing is in flight (RFC 6298, 5.2, 5.3).
    pub fn restart_timer(&mut self, now: Time, most: Duration) {
        let wait = self.tx.rtt.rto().min(most);
        self.timer = (!self.tx.flights.is_empty()).then(|| now + wait);
    }

    /// Ends the transmission of `piece` that is in flight, before it is retransmitted. Returns false if
    /// there was none.
    pub fn end_transmission(&mut self, piece: u64) -> bool {
        match self.sent.get(piece).map(|p| p.state) {
            Some(SegmentState::InFlight { number }) => self.tx.flights.end(number).is_some(),
            _ => false,
        }
    }

    /// Ends the subflow.
    pub fn end(&mut self) {
        self.phase = Phase::Ended;
        self.timer = None;
    }
}
