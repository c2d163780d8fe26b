//! State of the sender per path.

use ropewalk_base::{Duration, Rate, Time};

use super::ack_requests::{AckRequests, PeerAcks};
use crate::congestion::Delivery;
use crate::measurements::PathCounters;
use crate::path::{
    DeliveryRate, DrainRate, Estimates, ForwardDelay, LossEstimate, Pacer, PathConfig, PathState,
    PathStatus, RttEstimator,
};
use crate::recovery::{Flight, Flights, Prr, Rack, RoundTrips, TailProbe};
use crate::scheduler::DelaySource;

/// Mean deviations of the round trip after which an acknowledgement is overdue (RFC 6298, 2.3: K).
const DEVIATIONS: u64 = 4;
/// Time without any acknowledgement before one is overdue.
const QUIET: Duration = Duration::from_millis(20);
/// Allowance for timers and for the time between two packets of a slow path.
const GRAIN: Duration = Duration::from_millis(5);

/// The sending side of one path.
///
/// `repr(C)` keeps the order of the fields, with those that each data packet and each acknowledgement
/// accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct TxPath {
    /// Transmissions in flight.
    pub flights: Flights,
    pub state: PathState,
    /// Packets that may still be sent in response to the current input (Max.Burst).
    pub burst_left: u32,
    /// The retransmission timer expired, and nothing sent since has been acknowledged. RFC 9260, 7.2.3: no
    /// more than one packet may be in flight.
    pub one_packet: bool,
    /// One retransmission may exceed the congestion window (RFC 9260, 7.2.4 (3); RFC 6675, 5, step 4.3).
    pub fast_credit: bool,
    /// The last drain left space in the congestion window: the data or the receive window was the limit.
    pub limited: bool,
    /// The data was the limit.
    pub out_of_data: bool,
    /// Bytes of this path's data that the peer has received but not acknowledged cumulatively.
    pub held: u64,
    /// Bytes sent on or assigned to this path that its cumulative acknowledgement does not cover. TCP
    /// only.
    pub unacknowledged: u64,
    /// Highest transmission number acknowledged so far, plus one.
    pub acked_to: u64,
    /// Rounds of the sender on this path: one per window of data acknowledged, and one per timeout.
    pub round: u64,
    pub round_ends: u64,
    pub last_sent_at: Time,
    pub rtt: RttEstimator,
    pub config: PathConfig,
    pub rate: DeliveryRate,
    pub drain: DrainRate,
    pub counters: PathCounters,
    /// Recovery lasts until this transmission (SCTP) or sequence number (TCP) has been acknowledged or given up.
    pub recovery_exit: Option<u64>,
    /// The reduction of the window during the current recovery, if it is proportional.
    pub prr: Option<Box<Prr>>,
    /// Bytes that have left the network according to duplicate acknowledgements (RFC 6582, 3.2).
    pub inflation: u64,
    pub loss: LossEstimate,
    /// Requests for acknowledgements, if the peer acknowledges on request.
    pub requests: AckRequests,
    /// Losses found so far; a timeout counts as one.
    pub losses: u64,
    pub tail: TailProbe,
    /// Loss detection by time.
    pub rack: Rack,
    pub forward: ForwardDelay,
    pub pacer: Pacer,
}

impl TxPath {
    /// An unused path.
    pub fn new(config: PathConfig, state: PathState, rtt: RttEstimator) -> Self {
        Self {
            flights: Flights::default(),
            held: 0,
            unacknowledged: 0,
            rate: DeliveryRate::default(),
            drain: DrainRate::default(),
            acked_to: 0,
            round: 0,
            round_ends: 0,
            recovery_exit: None,
            prr: None,
            last_sent_at: Time::ZERO,
            inflation: 0,
            loss: LossEstimate::default(),
            state,
            burst_left: u32::MAX,
            one_packet: false,
            fast_credit: false,
            limited: false,
            out_of_data: false,
            tail: TailProbe::default(),
            rack: Rack::default(),
            rtt,
            forward: ForwardDelay::default(),
            pacer: Pacer::default(),
            losses: 0,
            requests: AckRequests::default(),
            config,
            counters: PathCounters::default(),
        }
    }

    /// Bytes in flight.
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.flights.bytes().saturating_sub(self.inflation)
    }

    /// Bytes that Max.Burst and pacing permit now, in packets of `full` bytes.
    #[inline]
    pub fn burst_room(&self, now: Time, full: u64) -> u64 {
        (self.burst_left as u64 * full).min(self.pacer.room(now))
    }

    /// Records that `bytes` bytes are sent.
    #[inline]
    pub fn on_bytes_sent(&mut self, bytes: u64) {
        self.pacer.on_sent(bytes);
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
        }
    }

    /// The congestion window `window`, or in recovery the limit of the reduction.
    #[inline]
    pub fn in_reduction(&self, window: u64) -> u64 {
        match (&self.prr, self.recovery_exit) {
            (Some(prr), Some(_)) => prr.window(),
            _ => window,
        }
    }

    /// `window`, or the data in flight if no more may be sent.
    #[inline]
    pub const fn within_one_packet(&self, window: u64) -> u64 {
        let in_flight = self.flights.bytes();
        if self.one_packet && 0 < in_flight && in_flight < window { in_flight } else { window }
    }

    /// Starts another round: a packet of the last round was acknowledged, or a timeout shows that this
    /// will not happen.
    #[inline]
    pub fn begin_round(&mut self) {
        self.round += 1;
        self.round_ends = self.flights.next_number();
    }

    /// When the acknowledgement of the first transmission after all acknowledged ones is overdue, `None`
    /// if nothing is in flight or no round trip is known.
    #[inline]
    pub fn overdue_from(&self, peer: PeerAcks) -> Option<Time> {
        let srtt = self.rtt.srtt()?;
        let (number, first, followed) = self.flights.first_from(self.acked_to)?;
        let delayed = self.ack_delay(number, !followed, peer);
        let due = first.sent_at + srtt + self.rtt.rttvar() * DEVIATIONS + delayed + GRAIN;
        // While acknowledgements arrive, they are delayed by a growing queue and not by a failure.
        Some(due.max(self.rtt.sampled_at() + QUIET))
    }

    /// Maximum delay of the peer's acknowledgement of transmission `number`. `alone`: no other
    /// transmission follows it.
    #[inline]
    fn ack_delay(&self, number: u64, alone: bool, peer: PeerAcks) -> Duration {
        let delayed = if peer.on_request { !self.requests.covers(number) } else { alone };
        if delayed { peer.delay } else { Duration::ZERO }
    }

    /// Time since a data packet was sent.
    #[inline]
    pub fn idle(&self, now: Time) -> Duration {
        now.since(self.last_sent_at)
    }

    /// Finds transmissions lost by time (RFC 8985, 6.2) and puts their numbers into `lost`. Finds no
    /// losses while the round trip is unknown.
    pub fn find_lost_by_time(&mut self, now: Time, in_recovery: bool, lost: &mut Vec<u64>) {
        lost.clear();
        if let (Some(smoothed), Some(least)) = (self.rtt.srtt(), self.rtt.base()) {
            let trips = RoundTrips { smoothed, least };
            self.rack.find_lost(now, trips, in_recovery, &mut self.flights, lost);
        }
    }

    /// The RACK reordering timer, or else the tail loss probe timer (RFC 8985, 6.3 and 7.2).
    #[inline]
    pub fn loss_deadline(&self, peer: PeerAcks) -> Option<Time> {
        let probes = self.recovery_exit.is_none() && self.state.status() == PathStatus::Active;
        let newest = self.flights.next_number().saturating_sub(1);
        let alone = self.flights.count() == 1;
        let delay = self.ack_delay(newest, alone, peer);
        let probe = || {
            let srtt = self.rtt.srtt().filter(|_| !self.flights.is_empty());
            self.tail.deadline(srtt, delay)
        };
        self.rack.deadline().or_else(|| probes.then(probe)?)
    }

    /// The delivery rate according to an acknowledgement. `newest`: number and transmission of the newest
    /// packet that it covers. `sure`: the packet arrived on this path. `rate`: the resulting sample.
    #[inline]
    pub fn delivery(&self, newest: (u64, &Flight), sure: bool, rate: Option<Rate>) -> Delivery {
        let oldest = self.flights.oldest().map(|(number, _)| number);
        Delivery {
            newest: sure.then_some(newest.0),
            oldest: oldest.unwrap_or_else(|| self.flights.next_number()),
            delivered: self.rate.delivered(),
            prior_delivered: newest.1.snapshot.delivered(),
            rate,
            in_flight: self.flights.bytes(),
        }
    }

    /// Records for [`DrainRate`] that a transmission sent at `sent_at` is the newest that an
    /// acknowledgement covers.
    #[inline]
    pub fn note_ack(&mut self, now: Time, sent_at: Time) {
        if let Some(trip) = self.rtt.base() {
            self.drain.on_ack(now, sent_at, self.rate.delivered(), trip);
        }
    }

    /// The path works again: earlier measurements no longer apply.
    pub fn forget_estimates(&mut self) {
        self.rtt.forget();
        self.rate.forget();
        self.drain = DrainRate::default();
        self.loss.forget();
    }

    /// The delay estimators together.
    #[inline]
    pub const fn estimates(&self, source: DelaySource) -> Estimates<'_> {
        Estimates {
            rtt: &self.rtt,
            forward: &self.forward,
            config: &self.config,
            idle: self.flights.is_empty(),
            source,
        }
    }
}
