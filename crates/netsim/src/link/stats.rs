//! What a link counts.

use core::fmt;

use ropewalk_base::Duration;

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropCause {
    /// The queue was full.
    Full,
    /// The queue's management (RED, CoDel) dropped it early.
    Early,
    /// The loss model took it.
    Loss,
    /// It arrived damaged.
    Corruption,
    /// The link was down.
    Outage,
    /// The last attempt of a radio link went without an acknowledgement.
    Retries,
}

impl DropCause {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::Full, Self::Early, Self::Loss, Self::Corruption, Self::Outage, Self::Retries];

    /// Its name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Early => "early",
            Self::Loss => "loss",
            Self::Corruption => "corruption",
            Self::Outage => "outage",
            Self::Retries => "retries",
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Packets dropped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops([u64; 6]);

impl Drops {
    /// Dropped for `cause`.
    pub const fn by(&self, cause: DropCause) -> u64 {
        self.0[cause as usize]
    }

    /// Dropped altogether.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    #[inline]
    pub(crate) fn count(&mut self, cause: DropCause) {
        self.0[cause as usize] += 1;
    }
}

/// Counters of one link from the beginning of the run until one instant.
///
/// Always: `offered + duplicated = queued + in_flight + delivered + dropped.total()`, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkStats {
    /// Packets offered.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Bytes delivered, copies included.
    pub delivered_bytes: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets dropped, by cause.
    pub dropped: Drops,
    /// Packets marked by the queue instead of dropped.
    pub marked: u64,
    /// Packets waiting; one in transmission does not wait.
    pub queued: u64,
    /// Packets in transmission or propagation.
    pub in_flight: u64,
    /// The most packets that ever waited.
    pub queue_max_packets: u64,
    /// The most bytes that ever waited.
    pub queue_max_bytes: u64,
    /// Waiting packets, averaged over time.
    pub queue_mean_packets: f64,
    /// Waiting bytes, averaged over time.
    pub queue_mean_bytes: f64,
    /// Bytes whose transmission is complete, lost later or not.
    pub sent_bytes: u64,
    /// Time spent in transmission. On a trace-driven link, whose opportunities take no time, only the
    /// waiting of packets that need several.
    pub busy: Duration,
    /// Bytes that could have been sent; `None` without a limit.
    pub capacity_bytes: Option<u64>,
}

impl LinkStats {
    /// The share of the capacity that transmissions took; 0 if there is no capacity or no limit.
    pub fn utilisation(&self) -> f64 {
        match self.capacity_bytes {
            Some(capacity) if capacity > 0 => self.sent_bytes as f64 / capacity as f64,
            _ => 0.0,
        }
    }
}
