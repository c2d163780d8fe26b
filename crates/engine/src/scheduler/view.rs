//! What a scheduler may look at. Everything here is a copy: a scheduler cannot touch the engine.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::{Decision, Reason};
use crate::path::{DelaySource, PathConfig};

/// Why the scheduler is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionKind {
    /// New data waits; the decision may take any position of the unassigned queue.
    NewData,
    /// One lost chunk is to be sent again; position 0 is that chunk, there is no other.
    Retransmission {
        /// The path it was lost on.
        lost_on: PathId,
    },
}

/// One path as a scheduler sees it. Bytes count whole chunks on the wire's payload side, the unit
/// of the congestion window (RFC 9260, 7.2).
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Which path.
    pub id: PathId,
    /// Confirmed, and neither failed nor potentially failed.
    pub usable: bool,
    /// Priority for `backup`: lower is better.
    pub cost: u32,
    /// Configured share for `weighted`, any positive scale.
    pub weight: f64,
    /// Smoothed round trip; none before the first sample.
    pub srtt: Option<Duration>,
    /// The last round trip as measured, unsmoothed; none before the first sample.
    pub last_rtt: Option<Duration>,
    /// Mean deviation of the round trip.
    pub rttvar: Duration,
    /// What of the delay is queueing, our own or others'.
    pub queueing: Duration,
    /// Time since the last round-trip sample: an estimate is worth less as it ages.
    pub rtt_age: Duration,
    /// One-way delay of a data packet, all clocks read as one; see `delay_source`.
    pub forward_delay: Option<Duration>,
    /// Where `forward_delay` comes from.
    pub delay_source: DelaySource,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// The window that the window manager leaves of it, bytes.
    pub window: u64,
    /// Sent and not yet acknowledged, nor given up as lost, bytes.
    pub in_flight: u64,
    /// Bytes that the path has delivered since it exists, as acknowledgements tell.
    pub delivered: u64,
    /// Bytes that may still go in this burst (Max.Burst, pacing); 0 closes the path.
    pub burst_room: u64,
    /// Measured delivery rate; none before there is one.
    pub rate: Option<Rate>,
    /// How far `rate` can be trusted, 0 to 1: below 1 while the application or the peer's window,
    /// and not the path, limited it.
    pub rate_confidence: f64,
    /// Estimated loss, as a fraction of what was sent.
    pub loss: f64,
    /// Largest packet, bytes on the wire.
    pub mtu: u32,
    /// The least position of the unassigned queue that the receive-window guard lets this path
    /// take: what lies before it, faster paths deliver sooner. 0 with the guard off.
    pub earliest_position: u64,
}

impl PathView {
    /// What of a path's view never changes; nothing is known of the rest, and it may carry nothing.
    pub(crate) const fn blank(id: PathId, config: &PathConfig, delay_source: DelaySource) -> Self {
        Self {
            id,
            usable: false,
            cost: config.cost,
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
            delivered: 0,
            burst_room: 0,
            rate: None,
            rate_confidence: 0.0,
            loss: 0.0,
            mtu: config.mtu,
            earliest_position: 0,
        }
    }

    /// With nothing on its way nothing will come that changes the guard's mind: some path must be
    /// let go, if only with the probe of a shut window.
    pub(crate) fn let_one_go(views: &mut [Self]) {
        if !views.iter().any(|v| v.is_open() && v.earliest_position == 0) {
            for view in views {
                (view.window, view.earliest_position) = (view.cwnd, 0);
            }
        }
    }

    /// Whether the path could carry a chunk now. The window may be overrun by less than one chunk
    /// (RFC 9260, 6.1 B), so what counts is that it is not full yet.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.usable && self.in_flight < self.window && self.burst_room > 0
    }

    /// What the path would carry if the peer's window allowed, bytes per nanosecond: what it was seen
    /// to deliver, or what its window gives where it was never seen full. 0 before a round trip is
    /// known.
    pub fn potential_rate(&self) -> f64 {
        let Some(srtt) = self.srtt else { return 0.0 };
        // Signed numbers are converted in one step, and neither a time nor a rate is half of the range.
        let by_window = self.cwnd as f64 / srtt.as_nanos().max(1) as i64 as f64;
        let Some(rate) = self.rate else { return by_window };
        let seen = rate.as_bps() as i64 as f64 / 8e9;
        // Queueing shows that what was seen is all there is.
        if self.queueing > srtt / 9 { seen } else { seen.max(by_window) }
    }

    /// Bytes of window that are free.
    #[inline]
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.in_flight)
    }
}

/// All that a scheduler may look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Time,
    /// Why it is asked.
    pub occasion: DecisionKind,
    /// Chunks in the unassigned queue (at most what the send buffer holds).
    pub backlog_chunks: u64,
    /// Bytes in the unassigned queue.
    pub backlog_bytes: u64,
    /// The first position of the unassigned queue that the span rule shuts out: positions below it
    /// may be sent now.
    pub sendable: u64,
    /// All that waits are unordered messages, which the peer's user has as they arrive, or the window is checked
    /// with unacknowledged data alone: `sendable` then says how many may go, and any of the queue may be among
    /// them.
    pub unordered: bool,
    /// Bytes of the peer's receive buffer that no outstanding or buffered data claims.
    pub window_room: u64,
    /// The receive buffer that the peer offered, whole, bytes.
    pub receive_buffer: u64,
    /// Chunks at the beginning of the stream that the peer holds without a gap: the number of the
    /// first chunk that it is not known to have. Numbered as in [`SentReport`](super::SentReport).
    pub acknowledged_chunks: u64,
    /// The application has said that nothing follows what is queued.
    pub closing: bool,
    /// Size of a full chunk, bytes.
    pub chunk_bytes: u64,
    /// Counts losses, failures and whatever else makes an old plan worthless.
    pub epoch: u64,
    /// The paths, in the order of their identifiers.
    pub paths: &'a [PathView],
}

impl View<'_> {
    /// Paths that could carry the next chunk now.
    pub fn open(&self) -> impl Iterator<Item = &PathView> {
        self.paths.iter().filter(|p| p.is_open())
    }

    /// Whether new data is asked for, and not a lost chunk.
    #[inline]
    pub fn is_new_data(&self) -> bool {
        self.occasion == DecisionKind::NewData
    }

    /// How many chunks, from the head, may be taken now: what the span rule leaves of the queue. A
    /// lost chunk lay within the span when it was first sent, so it may always go.
    #[inline]
    pub fn takeable(&self) -> u64 {
        match self.occasion {
            DecisionKind::NewData => self.sendable.min(self.backlog_chunks),
            DecisionKind::Retransmission { .. } => 1,
        }
    }

    /// The first position that may not be taken.
    #[inline]
    pub fn reach(&self) -> u64 {
        match self.takeable() {
            0 => 0,
            _ if self.unordered && self.is_new_data() => self.backlog_chunks,
            takeable => takeable,
        }
    }

    /// The position that `path` may take when its schedule says `wanted`: that one, or the later one
    /// from which the guard lets it start; none if the span rule or the end of the queue comes
    /// first. The guard speaks of unassigned data only, so it does not hold a lost chunk back.
    #[inline]
    pub fn admit(&self, path: &PathView, wanted: u64) -> Option<u64> {
        let position = match self.occasion {
            DecisionKind::NewData => wanted.max(path.earliest_position),
            DecisionKind::Retransmission { .. } => 0,
        };
        (position < self.reach()).then_some(position)
    }

    /// Paths that may take the head of the queue, or the lost chunk, now.
    #[inline]
    pub fn open_for_head(&self) -> impl Iterator<Item = &PathView> {
        self.open().filter(|p| self.admit(p, 0) == Some(0))
    }

    /// The path with this identifier, if there is one.
    #[inline]
    pub fn path(&self, id: PathId) -> Option<&PathView> {
        // Identifiers are nearly always the indices; paths that were removed leave gaps.
        match self.paths.get(id.index()) {
            Some(path) if path.id == id => Some(path),
            _ => self.paths.iter().find(|p| p.id == id),
        }
    }

    /// The answer of a scheduler that takes from the head only and found no path that may.
    pub fn nobody(&self) -> Decision {
        let reason = if self.takeable() == 0 {
            if self.backlog_chunks == 0 { Reason::NoData } else { Reason::WindowShut }
        } else if self.open().next().is_some() {
            Reason::FasterSoon
        } else {
            Reason::AllFull
        };
        Decision::blocked(reason)
    }
}
