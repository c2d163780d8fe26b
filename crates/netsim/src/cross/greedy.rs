//! A greedy source with a TCP-like window: slow start, additive increase, multiplicative decrease, NewReno
//! recovery.
//!
//! The receiver acknowledges each packet with the lowest number that is missing. Rules: RFC 5681 (congestion
//! control), RFC 6582 (NewReno), RFC 6298 (timer). The source models background traffic, so it has no options,
//! no delayed acknowledgements and no payload.

use std::collections::VecDeque;

use ropewalk_base::{Duration, RangeSet, Time};

use super::CrossStats;
use crate::ids::{LinkId, RouteId};

/// Return path of acknowledgements.
#[derive(Clone, Debug, PartialEq)]
pub enum Feedback {
    /// After this delay, without loss.
    Delay(Duration),
    /// As packets of `size` bytes over these links, subject to their queues and loss.
    Links {
        /// In order from receiver to sender.
        links: Vec<LinkId>,
        /// Bytes per acknowledgement; 40 for TCP over IPv4 without options.
        size: u32,
    },
}

/// Parameters of a greedy source.
#[derive(Clone, Debug, PartialEq)]
pub struct Greedy {
    /// Return path of acknowledgements.
    pub feedback: Feedback,
    /// Initial window in packets; 10 (RFC 6928).
    pub initial_window: u32,
    /// Largest number of packets in flight: the receiver's window.
    pub max_window: u32,
}

impl Greedy {
    /// A source with an initial window of 10 packets and a practically unlimited receive window.
    pub const fn new(feedback: Feedback) -> Self {
        Self { feedback, initial_window: 10, max_window: 1 << 20 }
    }
}

/// Bounds of the retransmission timeout: RFC 6298, section 2, with the minimum that is common in
/// practice.
const RTO_MIN: Duration = Duration::from_millis(200);
const RTO_INITIAL: Duration = Duration::from_millis(1000);
const RTO_MAX: Duration = Duration::from_millis(60_000);
/// Number of duplicate acknowledgements that indicate a loss: RFC 5681, section 3.2.
const DUP_THRESHOLD: u32 = 3;

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) round: u64,
}

/// An acknowledgement to send as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckPacket {
    pub(super) route: RouteId,
    pub(super) size: u32,
    /// The lowest missing number.
    pub(super) next: u64,
}

/// Acknowledgements in transit.
#[derive(Clone, Debug)]
enum Back {
    Delay { delay: Duration, pending: VecDeque<(Time, u64)> },
    Route { route: RouteId, size: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Fast recovery until `recover` is acknowledged.
    Recovery {
        recover: u64,
    },
}

/// Sender and receiver of a greedy source.
#[derive(Clone, Debug)]
pub(super) struct GreedySource {
    back: Back,
    start: Time,
    stop: Time,
    max_window: f64,
    // Receiver.
    received: RangeSet,
    expected: u64,
    // Sender.
    window: f64,
    threshold: f64,
    phase: Phase,
    /// Losses below this number belong to a recovery that has already begun (`recover` in RFC
    /// 6582).
    answered: u64,
    una: u64,
    next: u64,
    /// One more than the highest number sent.
    highest: u64,
    resend: Option<u64>,
    dups: u32,
    round: u64,
    round_ends: u64,
    timer: Timer,
    retransmitted: u64,
    timeouts: u64,
}

/// The retransmission timer of RFC 6298, with one sample per round trip. Karn's algorithm: no sample from
/// retransmitted packets.
#[derive(Clone, Debug)]
struct Timer {
    srtt: Option<(Duration, Duration)>,
    rto: Duration,
    deadline: Option<Time>,
    sample: Option<(u64, Time)>,
}

impl GreedySource {
    pub(super) fn new(greedy: &Greedy, back: Option<RouteId>, start: Time, stop: Time) -> Self {
        let back = match (&greedy.feedback, back) {
            (Feedback::Links { size, .. }, Some(route)) => Back::Route { route, size: *size },
            (Feedback::Delay(delay), _) => Back::Delay { delay: *delay, pending: VecDeque::new() },
            (Feedback::Links { .. }, None) => unreachable!("the world makes the route back"),
        };
        let timer = Timer { srtt: None, rto: RTO_INITIAL, deadline: None, sample: None };
        Self {
            back,
            start,
            stop,
            max_window: f64::from(greedy.max_window.max(1)),
            received: RangeSet::new(),
            expected: 0,
            window: f64::from(greedy.initial_window.max(1)),
            threshold: f64::INFINITY,
            phase: Phase::Open,
            answered: 0,
            una: 0,
            next: 0,
            highest: 0,
            resend: None,
            dups: 0,
            round: 0,
            round_ends: 0,
            timer,
            retransmitted: 0,
            timeouts: 0,
        }
    }

    pub(super) fn add_to(&self, stats: &mut CrossStats) {
        stats.in_order = self.expected;
        stats.retransmitted = self.retransmitted;
        stats.timeouts = self.timeouts;
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        let begin = (self.highest == 0 && self.start < self.stop).then_some(self.start);
        let ack = match &self.back {
            Back::Delay { pending, .. } => pending.front().map(|(at, _)| *at),
            Back::Route { .. } => None,
        };
        [begin, ack, self.timer.deadline].into_iter().flatten().min()
    }

    /// Processes packet `number` at the receiver; returns the acknowledgement if it travels as a packet.
    pub(super) fn receive(&mut self, now: Time, number: u64) -> Option<AckPacket> {
        if number >= self.expected {
            self.received.insert(number);
        }
        if let Some(first) = self.received.first_range().filter(|r| r.start == self.expected) {
            self.expected = first.end;
            self.received.remove_below(first.end);
        }
        let next = self.expected;
        match &mut self.back {
            Back::Delay { delay, pending } => {
                pending.push_back((now + *delay, next));
                None
            }
            Back::Route { route, size } => Some(AckPacket { route: *route, size: *size, next }),
        }
    }

    /// Processes the acknowledgements that are due, then an expired timer.
    pub(super) fn wake(&mut self, now: Time) {
        while let Back::Delay { pending, .. } = &mut self.back
            && pending.front().is_some_and(|(at, _)| *at <= now)
        {
            let Some((_, next)) = pending.pop_front() else { return };
            self.on_ack(now, next);
        }
        if self.timer.deadline.is_some_and(|deadline| deadline <= now) {
            self.on_timeout(now);
        }
    }

    /// The next packet that the window allows, retransmissions first.
    pub(super) fn poll_send(&mut self, now: Time) -> Option<Segment> {
        if now < self.start || now >= self.stop {
            return None;
        }
        let number = match self.resend.take() {
            Some(number) => number,
            None => {
                let in_flight = self.next - self.una;
                if in_flight as f64 + 1.0 > self.window.min(self.max_window) {
                    return None;
                }
                self.next += 1;
                self.next - 1
            }
        };
        if number < self.highest {
            self.retransmitted += 1;
            // From here on a sample could belong to either transmission (Karn's algorithm).
            self.timer.sample = None;
        } else if self.timer.sample.is_none() {
            self.timer.sample = Some((number, now));
        }
        self.highest = self.highest.max(number + 1);
        self.timer.deadline.get_or_insert(now + self.timer.rto);
        Some(Segment { number, round: self.round })
    }

    pub(super) fn on_ack(&mut self, now: Time, next: u64) {
        if next > self.una {
            self.on_new_ack(now, next);
        } else if next == self.una && self.highest > self.una {
            self.on_duplicate();
        }
    }

    fn on_new_ack(&mut self, now: Time, next: u64) {
        let acked = next - self.una;
        self.una = next;
        self.next = self.next.max(next);
        self.dups = 0;
        if next > self.round_ends {
            self.round += 1;
            self.round_ends = self.next;
        }
        self.timer.on_ack(now, next);
        match self.phase {
            Phase::Recovery { recover } if next < recover => {
                // RFC 6582, section 3.2, step 3: a partial acknowledgement indicates the next lost packet;
                // resend it.
                self.resend = Some(next);
                self.window = (self.window - acked as f64 + 1.0).max(1.0);
            }
            Phase::Recovery { .. } => {
                self.window = self.threshold;
                self.phase = Phase::Open;
            }
            // RFC 5681, section 3.1, equations 2 and 3.
            Phase::Open if self.window < self.threshold => self.window += 1.0,
            Phase::Open => self.window += 1.0 / self.window,
        }
        self.window = self.window.min(self.max_window);
        let outstanding = self.highest > self.una;
        self.timer.deadline = outstanding.then(|| now + self.timer.rto);
    }

    fn on_duplicate(&mut self) {
        self.dups += 1;
        match self.phase {
            // RFC 5681, section 3.2: each further duplicate means that a packet has left the network.
            Phase::Recovery { .. } => self.window += 1.0,
            Phase::Open if self.dups == DUP_THRESHOLD && self.una >= self.answered => {
                self.halve();
                self.answered = self.highest;
                self.phase = Phase::Recovery { recover: self.highest };
                self.window = self.threshold + f64::from(DUP_THRESHOLD);
                self.resend = Some(self.una);
            }
            Phase::Open => {}
        }
    }

    fn on_timeout(&mut self, now: Time) {
        self.timeouts += 1;
        self.halve();
        self.window = 1.0;
        self.phase = Phase::Open;
        self.answered = self.highest;
        self.dups = 0;
        self.resend = None;
        // Resend everything outstanding as the window opens.
        self.next = self.una;
        self.round += 1;
        self.round_ends = self.una;
        self.timer.back_off();
        // After `stop` the source does not recover its last packets.
        self.timer.deadline = (now < self.stop).then(|| now + self.timer.rto);
    }

    /// RFC 5681, equation 4: half the flight size, at least two packets.
    fn halve(&mut self) {
        let in_flight = (self.next - self.una) as f64;
        self.threshold = (in_flight / 2.0).max(2.0);
    }
}

impl Timer {
    fn on_ack(&mut self, now: Time, next: u64) {
        let Some((_, sent)) = self.sample.filter(|(number, _)| *number < next) else { return };
        self.sample = None;
        let rtt = now.since(sent);
        // RFC 6298, equations 2.2 and 2.3, in integers.
        let (srtt, var) = match self.srtt {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => ((srtt * 7 + rtt) / 8, (var * 3 + srtt.abs_diff(rtt)) / 4),
        };
        self.srtt = Some((srtt, var));
        self.rto = (srtt + var * 4).clamp(RTO_MIN, RTO_MAX);
    }

    fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(RTO_MAX);
        self.sample = None;
    }
}
