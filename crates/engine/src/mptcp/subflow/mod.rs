//! One subflow: a TCP connection that carries part of the session's data.

pub(super) mod receiver;
pub(super) mod sent;

use ropewalk_base::{Duration, Time};

use self::receiver::Receiver;
use self::sent::{SentQueue, Standing};
use super::config::Config;
use crate::accounts::PathCounters;
use crate::path::{DeliveryRate, ForwardDelay, LossEstimate, PathConfig, PathState, RttEstimator};
use crate::recovery::{Flights, Rack, TailProbe, Undo};

/// A SYN, or SYN ACK, that waits for its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Opening {
    /// When it is sent again.
    pub due: Time,
    /// How often it was.
    pub again: u32,
    /// When it was sent first.
    pub since: Time,
}

/// How far a subflow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing has been sent.
    Closed,
    /// Our SYN waits for its answer.
    SynSent(Opening),
    /// Our SYN ACK does.
    SynReceived(Opening),
    /// Carries data.
    Open,
    /// It is no more.
    Ended,
}

/// First sequence number of data: the SYN takes the one before.
const FIRST_SEQ: u64 = 1;

/// One subflow.
#[derive(Clone, Debug)]
pub(super) struct Subflow {
    pub config: PathConfig,
    pub phase: Phase,
    pub state: PathState,
    pub rtt: RttEstimator,
    pub rate: DeliveryRate,
    pub forward: ForwardDelay,
    pub sent: SentQueue,
    pub flights: Flights,
    pub received: Receiver,
    pub rack: Rack,
    pub tail: TailProbe,
    /// Finds out that a reduction was needless.
    pub undo: Undo,
    /// The last reduction came of the timer.
    pub by_timer: bool,
    /// The retransmission timer.
    pub timer: Option<Time>,
    /// Recovery until this sequence number has been acknowledged (RFC 6582, `recover`).
    pub recovery_exit: Option<u64>,
    /// A retransmission may leave though the window is full (RFC 6675, 5, step 4.3).
    pub fast_credit: bool,
    /// Duplicate acknowledgements in a row, where there are no selective ones.
    pub duplicates: u32,
    /// Bytes that duplicate acknowledgements show to have left (RFC 6582, 3.2).
    pub inflation: u64,
    /// Piece to be sent once more as a probe of the tail.
    pub probe: Option<u64>,
    pub last_sent_at: Time,
    /// The last drain left room in the window.
    pub limited: bool,
    pub loss: LossEstimate,
    /// Highest transmission number acknowledged so far, plus one.
    pub acked_to: u64,
    /// Rounds of the sender: one per window of data acknowledged.
    pub round: u64,
    pub round_ends: u64,
    /// Bytes that arrived here and that the session's acknowledgement does not cover yet.
    pub held: u64,
    /// Losses found so far; a timeout is one.
    pub losses: u64,
    pub counters: PathCounters,
}

impl Subflow {
    pub fn new(path: &PathConfig, config: &Config) -> Self {
        Self {
            config: *path,
            phase: Phase::Closed,
            state: PathState::unconfirmed(config.failure),
            rtt: RttEstimator::with_rule(config.rto, config.rto_rule),
            rate: DeliveryRate::default(),
            forward: ForwardDelay::default(),
            sent: SentQueue::new(FIRST_SEQ),
            flights: Flights::default(),
            received: Receiver::default(),
            rack: Rack::default(),
            tail: TailProbe::default(),
            undo: config.undo(),
            by_timer: false,
            timer: None,
            recovery_exit: None,
            fast_credit: false,
            duplicates: 0,
            inflation: 0,
            probe: None,
            last_sent_at: Time::ZERO,
            limited: false,
            loss: LossEstimate::default(),
            acked_to: 0,
            round: 0,
            round_ends: 0,
            held: 0,
            losses: 0,
            counters: PathCounters::default(),
        }
    }

    /// Bytes on their way.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.flights.bytes().saturating_sub(self.inflation)
    }

    /// Whether it carries data.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether recovery lasts; ends it when its exit point is passed.
    pub fn in_recovery(&mut self) -> bool {
        self.recovery_exit = self.recovery_exit.filter(|exit| self.sent.una() < *exit);
        if self.recovery_exit.is_none() {
            self.inflation = 0;
        }
        self.recovery_exit.is_some()
    }

    /// Starts the timer anew, or stops it when nothing is in flight (RFC 6298, 5.2, 5.3).
    pub fn restart_timer(&mut self, now: Time, most: Duration) {
        let wait = self.rtt.rto().min(most);
        self.timer = (!self.flights.is_empty()).then(|| now + wait);
    }

    /// What of `piece` is on its way no longer counts: it is sent once more. False if nothing was.
    pub fn end_transmission(&mut self, piece: u64) -> bool {
        match self.sent.get(piece).map(|p| p.standing) {
            Some(Standing::InFlight { number }) => self.flights.end(number).is_some(),
            _ => false,
        }
    }

    /// It is no more.
    pub fn end(&mut self) {
        self.phase = Phase::Ended;
        self.timer = None;
    }
}
