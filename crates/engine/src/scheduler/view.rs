//! The input of a scheduler. All values are copies: a scheduler cannot touch the engine.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::{Decision, Reason};
use crate::path::{DelaySource, PathConfig, PathUse};

/// The kind of data of the decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionKind {
    /// New data is waiting. The decision may take any position of the unassigned queue.
    NewData,
    /// One lost chunk must be retransmitted. Position 0 is that chunk; there is no other.
    Retransmission {
        /// The path it was lost on.
        lost_on: PathId,
    },
}

/// A scheduler's view of one path. Bytes count the payload of full chunks, the unit of the congestion
/// window (RFC 9260, 7.2).
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Confirmed, and neither failed nor potentially failed.
    pub usable: bool,
    /// Price of a byte: lower is better.
    pub cost: u32,
    /// When the path carries data.
    pub usage: PathUse,
    /// Whether paths of an earlier use or a lower cost have room, so that this one, which is used only when needed,
    /// carries no new data.
    pub reserved: bool,
    /// Configured share for `weighted`, any positive scale.
    pub weight: f64,
    /// Time for which the acknowledgement of the first transmission after all acknowledged ones is overdue:
    /// in excess of the round trip, four mean deviations of it, and the maximum delay of an acknowledgement.
    /// Zero if none is overdue.
    pub overdue: Duration,
    /// Smoothed round trip, `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The last round trip as measured, unsmoothed; `None` before the first sample.
    pub last_rtt: Option<Duration>,
    /// Mean deviation of the round trip.
    pub rttvar: Duration,
    /// The part of the delay due to queueing, in our own queue or that of other flows.
    pub queueing: Duration,
    /// Time since the last round-trip sample. Estimates become less reliable with age.
    pub rtt_age: Duration,
    /// One-way delay of a data packet, relative to a common clock of all paths; see `delay_source`.
    pub forward_delay: Option<Duration>,
    /// Source of `forward_delay`.
    pub delay_source: DelaySource,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// The part of the congestion window that the window manager permits, bytes.
    pub window: u64,
    /// Sent and not yet acknowledged, nor given up as lost, bytes.
    pub in_flight: u64,
    /// Sent and not yet acknowledged cumulatively, bytes: data in flight, lost, or reported by selective
    /// acknowledgements. SCTP has no such acknowledgement per path, so it equals the data in flight.
    pub unacknowledged: u64,
    /// Bytes that the path has delivered since it was created, as reported by acknowledgements.
    pub delivered: u64,
    /// Bytes that may still be sent in this burst (Max.Burst, pacing); 0 closes the path.
    pub burst_room: u64,
    /// Measured delivery rate, `None` before the first measurement.
    pub rate: Option<Rate>,
    /// Rate at which congestion control paces the path: its estimate of the path's rate, times the gain of
    /// its current state. Zero if it does not pace.
    pub pacing_rate: Rate,
    /// Rate at which the queue of the path drains, while the queue grows and this is less than half of
    /// `rate`: the path has become slower.
    pub drain: Option<Rate>,
    /// Reliability of `rate`, 0 to 1: below 1 while it was limited by the application or the receive
    /// window rather than by the path.
    pub rate_confidence: f64,
    /// Estimated loss rate, as a fraction of the packets sent.
    pub loss: f64,
    /// Largest packet, bytes on the wire.
    pub mtu: u32,
    /// Whether congestion control sends faster than the path delivers, to find more bandwidth, or has
    /// just done so (`ProbeBW_UP` and `ProbeBW_DOWN` of `bbr`). The resulting queue drains within a few
    /// round trips without further action.
    pub probing: bool,
}

impl PathView {
    /// The constant part of a path's view. All other values are unknown, and the path may not carry data.
    pub(crate) const fn blank(id: PathId, config: &PathConfig, delay_source: DelaySource) -> Self {
        Self {
            id,
            usable: false,
            cost: config.cost,
            usage: config.usage,
            reserved: false,
            overdue: Duration::ZERO,
            weight: config.weight,
            srtt: None,
            last_rtt: None,
            rttvar: Duration::ZERO,
            queueing: Duration::ZERO,
            rtt_age: Duration::ZERO,
            forward_delay: None,
            delay_source,
            cwnd: 0,
            ssthresh: 0,
            window: 0,
            in_flight: 0,
            unacknowledged: 0,
            delivered: 0,
            burst_room: 0,
            rate: None,
            pacing_rate: Rate::ZERO,
            drain: None,
            rate_confidence: 0.0,
            loss: 0.0,
            mtu: config.mtu,
            probing: false,
        }
    }

    /// Opens all paths if none is open. With nothing in flight no acknowledgement would change the limits
    /// of a window manager, so some path must be able to send, if only a zero-window probe.
    pub(crate) fn allow_one_chunk(views: &mut [Self]) {
        if !views.iter().any(Self::is_open) {
            views.iter_mut().for_each(|view| view.window = view.cwnd);
        }
    }

    /// Whether the path could carry a chunk now. RFC 9260, 6.1 B permits exceeding the congestion window by
    /// less than one packet, so a path is open while its window is not full.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.may_send() && !self.reserved
    }

    /// Whether the path is usable and has room, even if it is reserved.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.usable && self.in_flight < self.window && self.burst_room > 0
    }

    /// Whether this path is preferred to `other`, which then carries only data that exceeds this one.
    #[inline]
    pub fn is_before(&self, other: &Self) -> bool {
        let rank = |path: &Self| match path.usage {
            PathUse::Always => (PathUse::Always, 0),
            usage => (usage, path.cost),
        };
        rank(self) < rank(other)
    }

    /// The rate that the path would have without a receive window, bytes per nanosecond: the measured
    /// delivery rate, or the rate that the congestion window and pacing allow if the path was never full.
    /// 0 before a round trip is known.
    pub fn potential_rate(&self) -> f64 {
        let Some(srtt) = self.srtt else { return 0.0 };
        // Conversion from a signed integer takes one instruction; no time or rate reaches half of the range.
        let bytes_per_nano = |rate: Rate| rate.as_bps() as i64 as f64 / 8e9;
        // A congestion control that models the path has a window of more than its bandwidth-delay
        // product, and paces at the rate of the path.
        let is_paced = self.pacing_rate > Rate::ZERO;
        let paced = if is_paced { bytes_per_nano(self.pacing_rate) } else { f64::MAX };
        let by_window = (self.cwnd as f64 / srtt.as_nanos().max(1) as i64 as f64).min(paced);
        let Some(rate) = self.rate else { return by_window };
        let seen = bytes_per_nano(rate);
        // Queueing shows that the measured rate is the maximum that the path can deliver.
        if self.queueing > srtt / 9 { seen } else { seen.max(by_window) }
    }

    /// Free bytes of the window.
    #[inline]
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.in_flight)
    }
}

/// The last chunk of data that is assigned to one path together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentEnd {
    /// Its position in the unassigned queue.
    pub position: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// All input of a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The current time.
    pub now: Time,
    /// The kind of data to decide on.
    pub occasion: DecisionKind,
    /// Chunks in the unassigned queue (at most the content of the send buffer).
    pub backlog_chunks: u64,
    /// Bytes in the unassigned queue.
    pub backlog_bytes: u64,
    /// The first position of the unassigned queue that the span rule excludes. Positions below it may be sent
    /// now.
    pub sendable: u64,
    /// Whether all queued data consists of unordered messages, which the receiver delivers on arrival, or
    /// the window check counts only unacknowledged data. `sendable` is then the number of chunks that may
    /// be sent, taken from any position.
    pub unordered: bool,
    /// Bytes of the peer's receive buffer that no outstanding or buffered data occupies.
    pub window_room: u64,
    /// The peer's total receive buffer, bytes.
    pub receive_buffer: u64,
    /// Number of chunks from the beginning of the stream that the peer has received without a gap, which is
    /// the number of the first chunk that it may lack. Numbered as in [`SentReport`](super::SentReport).
    pub acknowledged_chunks: u64,
    /// Whether the application has declared that no data follows the queued data.
    pub closing: bool,
    /// Size of a full chunk, bytes.
    pub chunk_bytes: u64,
    /// Counts losses, failures and all other events that invalidate an old plan.
    pub epoch: u64,
    /// Chunks of the unassigned queue, in its order, that end data which the protocol assigns to one path
    /// together. Empty if there is no such data, or without
    /// [`reads_fragment_ends`](super::Schedule::reads_fragment_ends).
    pub fragment_ends: &'a [FragmentEnd],
    /// The paths, in the order of their identifiers.
    pub paths: &'a [PathView],
}

impl View<'_> {
    /// Paths that could carry the next chunk now.
    pub fn open(&self) -> impl Iterator<Item = &PathView> {
        self.paths.iter().filter(|p| p.is_open())
    }

    /// Whether the decision is for new data, not for a lost chunk.
    #[inline]
    pub fn is_new_data(&self) -> bool {
        self.occasion == DecisionKind::NewData
    }

    /// Number of chunks from the head that may be sent now under the span rule. A lost chunk was within
    /// the span when it was first sent, so it may always be retransmitted.
    #[inline]
    pub fn takeable(&self) -> u64 {
        match self.occasion {
            DecisionKind::NewData => self.sendable.min(self.backlog_chunks),
            DecisionKind::Retransmission { .. } => 1,
        }
    }

    /// The first position that may not be sent.
    #[inline]
    pub fn reach(&self) -> u64 {
        match self.takeable() {
            0 => 0,
            _ if self.unordered && self.is_new_data() => self.backlog_chunks,
            takeable => takeable,
        }
    }

    /// The position that a path takes if its schedule selects `wanted`: that position, or the lost chunk.
    /// `None` if the span rule or the end of the queue excludes it.
    #[inline]
    pub fn admit(&self, wanted: u64) -> Option<u64> {
        let position = if self.is_new_data() { wanted } else { 0 };
        (position < self.reach()).then_some(position)
    }

    /// Paths that may take the head of the queue, or the lost chunk, now.
    #[inline]
    pub fn open_for_head(&self) -> impl Iterator<Item = &PathView> {
        let anything = self.reach() > 0;
        self.open().filter(move |_| anything)
    }

    /// The path with this identifier, if there is one.
    #[inline]
    pub fn path(&self, id: PathId) -> Option<&PathView> {
        // Identifiers are nearly always equal to the indices; removed paths leave gaps.
        match self.paths.get(id.index()) {
            Some(path) if path.id == id => Some(path),
            _ => self.paths.iter().find(|p| p.id == id),
        }
    }

    /// The decision of a scheduler that takes only from the head and found no path for it.
    pub fn nobody(&self) -> Decision {
        let reason = if self.takeable() == 0 {
            if self.backlog_chunks == 0 { Reason::NoData } else { Reason::WindowBlocked }
        } else if self.open().next().is_some() {
            Reason::FasterSoon
        } else {
            Reason::AllFull
        };
        Decision::blocked(reason)
    }
}
